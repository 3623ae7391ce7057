package journal

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReplaceFile makes a small file of a directory durable under its name: whole or not at all. What
// an interrupted call has left beside it is overwritten by the next one.
func ReplaceFile(fs vfs.FS, dir, name string, text []byte) error {
	path := fs.PathJoin(dir, name)
	if err := replace(fs, path+".new", path, filled(text)); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

// replace writes a file under another name, syncs it, and gives it its name, on which there may be
// an older one. The name is durable when the caller has synced the directory. After an error the
// older file is as it was, and the other name may be left.
func replace(fs vfs.FS, temp, path string, fill func(io.Writer) error) error {
	f, err := fs.Create(temp, writeCategory)
	if err != nil {
		return fmt.Errorf("journal: create file=%s: %w", temp, err)
	}
	if err := fill(f); err != nil {
		return errors.Join(fmt.Errorf("journal: write file=%s: %w", temp, err), f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: sync file=%s: %w", temp, err)
	}
	if err := fs.Rename(temp, path); err != nil {
		return fmt.Errorf("journal: rename file=%s: %w", temp, err)
	}
	return nil
}

// filled is a fill of replace that writes text.
func filled(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}
