//go:build unix

package journal

import (
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// placeOf is the number that the file system has given to a file; false when there is no such file,
// or it is not one of the system's.
func placeOf(fs vfs.FS, name string) (uint64, bool) {
	info, err := fs.Stat(name)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Ino), true
}
