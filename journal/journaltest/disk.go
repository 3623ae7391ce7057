package journaltest

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Op is an operation on the disk, before it is done. Neither Write nor Sync: it only reads.
type Op struct {
	Path  string
	Write bool // it changes the disk
	Sync  bool // it waits for the disk
}

// Disk is the system's disk with a function that is called before each operation. The function may
// wait, and its error becomes the operation's, which is then not done. It is called on any
// goroutine, on several at the same time.
func Disk(before func(Op) error) vfs.FS {
	return errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		return before(Op{
			Path: op.Path, Write: op.Kind.ReadOrWrite() == errorfs.OpIsWrite,
			Sync: op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData ||
				op.Kind == errorfs.OpFileSyncTo,
		})
	}))
}
