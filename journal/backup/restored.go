package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"posttrade/ring/disk"
)

// Restored says what a data directory was restored from; nil without an error when it was not, or
// when everything that a restore asks for was done.
//
// The first start asks. The folder stays until Forget, so when that process ends in the middle, the
// next start finds the same work.
func Restored(data string) (*Origin, error) {
	name := filepath.Join(data, RestoredName, originName)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var o Origin
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return nil, fmt.Errorf("backup: read file=%s: %w", name, err)
	}
	return &o, nil
}

// RestoredTables are the rows that a restore has left; nil for none. The caller closes them.
func RestoredTables(data string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(data, RestoredName, tablesName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	return f, nil
}

// Forget notes that everything is done. The origin goes first: without it the rest says nothing, so
// a process that ends in between does nothing twice. Calling it again is harmless.
func Forget(data string) error {
	folder := filepath.Join(data, RestoredName)
	err := os.Remove(filepath.Join(folder, originName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("backup: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return disk.SyncDir(data)
}

// keptPrefix begins the name of each folder that Keep makes; a number follows.
const keptPrefix = "restored-"

// Keep notes that everything is done but for the rows, which were not put back: what a restore has
// left stays in another folder of the data directory, which is returned.
func Keep(data string) (folder string, err error) {
	folder, err = disk.MoveAside(filepath.Join(data, RestoredName), filepath.Join(data, keptPrefix))
	if err != nil {
		return "", fmt.Errorf("backup: %w", err)
	}
	return folder, nil
}
