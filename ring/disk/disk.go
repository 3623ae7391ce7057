package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file with that mode in the place of the one that has its name, if there is one.
func Replace(name string, mode fs.FileMode, write func(io.Writer) error) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write file=%s: %w", f.Name(), err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(name))
}

// ReplaceText is Replace by a text.
func ReplaceText(name string, mode fs.FileMode, text []byte) error {
	return Replace(name, mode, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// SyncDir makes the names in a directory durable.
func SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync dir=%s: %w", name, err)
	}
	return nil
}
