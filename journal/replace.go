package journal

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
)

// Replace makes the journal that was received into incoming the one in dir, and removes the journal
// that dir held before: see transfer.Replacement. A nil fs is the disk's. Every start calls Replace
// before Open, to complete what a crash has interrupted.
//
// Errors: ErrLocked when either journal is in use, and transfer.ErrReplace. An incoming that was
// not received in full is left for the next Receive.
func Replace(dir, incoming string, fs vfs.FS) error {
	if fs == nil {
		fs = vfs.Default
	}
	r := transfer.Replacement{
		FS: fs, Dir: dir, Incoming: incoming,
		Whole: func(dir string) (bool, error) { return received(fs, dir) },
		Lock:  func(dir string) (io.Closer, error) { return lockDir(fs, dir) },
		Sync:  func(dir string) error { return syncDir(fs, dir) },
	}
	return r.Run()
}

// received reports that dir holds a whole journal: Receive writes the anchor last, and then removes
// its mark.
func received(fs vfs.FS, dir string) (bool, error) {
	anchored, err := exists(fs, fs.PathJoin(dir, anchorName))
	if err != nil || !anchored {
		return false, err
	}
	err = refuseUnfinished(fs, dir)
	if errors.Is(err, ErrUnfinished) {
		return false, nil
	}
	return err == nil, err
}
