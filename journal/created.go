package journal

import (
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Created reports whether dir holds a journal that has its genesis. It looks for
// files alone; what they hold is for Open to judge. fs nil is the disk's.
func Created(dir string, fs vfs.FS) (bool, error) {
	if fs == nil {
		fs = vfs.Default
	}
	_, err := fs.Stat(fs.PathJoin(dir, anchorName))
	if oserror.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}
