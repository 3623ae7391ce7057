package journal

import (
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Created reports whether dir holds a journal that has its genesis: the anchor is made after the
// genesis. It checks only that the file exists; Open judges its content. A nil fs is the disk's. It
// takes no lock and leaves no file behind.
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
