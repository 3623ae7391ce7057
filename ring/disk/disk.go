package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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

// MoveAside gives a file or directory a new name, which it returns: aside and the lowest number
// from 1 on that nothing there has. The name is durable.
func MoveAside(name, aside string) (to string, err error) {
	for n := 1; ; n++ {
		to = fmt.Sprint(aside, n)
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return "", err
		}
	}
	if err := os.Rename(name, to); err != nil {
		return "", err
	}
	return to, SyncDir(filepath.Dir(to))
}

// MakeDir makes a directory and the parents that are missing, and makes the name of each durable.
//
// They are made from the top down, each name synced before the next directory is made. A process
// that was killed in between has left one whose name may not be durable: the name of the lowest
// directory that exists is synced too, unless its parent may not be read; another made it then.
func MakeDir(name string, mode fs.FileMode) error { return makeDir(name, mode, SyncDir) }

// makeDir is MakeDir with a sync of directories.
func makeDir(name string, mode fs.FileMode, sync func(dir string) error) error {
	missing := []string{name}
	above := filepath.Dir(name)
	for ; above != filepath.Dir(above); above = filepath.Dir(above) {
		if _, err := os.Stat(above); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		missing = append(missing, above)
	}
	if err := sync(filepath.Dir(above)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for _, dir := range slices.Backward(missing) {
		if err := os.MkdirAll(dir, mode); err != nil {
			return err
		}
		if err := sync(filepath.Dir(dir)); err != nil {
			return err
		}
	}
	return nil
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
