package journal

import (
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A file's blocks are given back in steps of eraseStep bytes, with a rest of eraseRest after each.
const (
	eraseStep = 1 << 20
	eraseRest = 2 * time.Millisecond
)

// erase removes a file that is no longer needed, a piece at a time. A file system that is mounted
// with discard tells the disk about every freed block, and the disk syncs nothing else until it has
// processed that. erase may take half a second and more.
func erase(fs vfs.FS, name string) error {
	if vfs.Root(fs) != vfs.Default {
		return fs.Remove(name)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fs.Remove(name) // Remove reports what is wrong
	}
	defer f.Close()
	if err := fs.Remove(name); err != nil {
		return err
	}
	giveBack(f, func() { time.Sleep(eraseRest) })
	return nil
}

// giveBack shortens a file that has no name any more from its end, and rests after each piece. A
// file that has another name, or that is still open elsewhere, stays as it is: its blocks are freed
// when the last of those is gone. The closing frees what giveBack fails to free.
func giveBack(f *os.File, rest func()) {
	for size := orphanBytes(f); size > eraseStep; {
		size -= eraseStep
		if f.Truncate(size) != nil {
			return
		}
		rest()
	}
}
