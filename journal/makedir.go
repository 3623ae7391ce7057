package journal

import (
	"errors"
	"fmt"
	iofs "io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// makeDir makes a directory and the parents that are missing, from the top down, and makes the name
// of each durable before it makes the next: what lies in a directory is only as durable as every
// name on the way to it.
//
// A process that was killed in between has left one directory whose name may not be durable. That
// is dir, or the lowest of its parents that exist, so that one is synced too; a parent whose own
// parent this process may not read was made by another. Errors name the directory.
func makeDir(fs vfs.FS, dir string) error {
	missing := []string{dir}
	above := fs.PathDir(dir)
	for ; above != fs.PathDir(above); above = fs.PathDir(above) {
		if _, err := fs.Stat(above); err == nil {
			break
		} else if !notExist(err) {
			return fmt.Errorf("journal: stat dir=%s: %w", above, err)
		}
		missing = append(missing, above)
	}
	err := syncDir(fs, fs.PathDir(above))
	if err != nil && !errors.Is(err, iofs.ErrPermission) {
		return err
	}
	for _, name := range slices.Backward(missing) {
		if err := fs.MkdirAll(name, 0o700); err != nil {
			return fmt.Errorf("journal: make dir=%s: %w", name, err)
		}
		if err := syncDir(fs, fs.PathDir(name)); err != nil {
			return err
		}
	}
	return nil
}
