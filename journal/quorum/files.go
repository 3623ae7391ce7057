package quorum

import (
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readFile returns the content of a small file. A missing one is an error that oserror.IsNotExist
// knows.
func readFile(fs vfs.FS, path string) (_ []byte, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(f)
}
