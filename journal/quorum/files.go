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

// writeFile makes a small file durable under its name: whole or not at all. It writes another name,
// syncs, renames and syncs the directory, in this order. What an interrupted call has left under
// the other name is overwritten by the next.
func writeFile(fs vfs.FS, dir, name string, content []byte) error {
	path := fs.PathJoin(dir, name)
	f, err := fs.Create(path+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(path+".new", path); err != nil {
		return err
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
