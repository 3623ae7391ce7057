package journal

import (
	"os"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"
)

// How a file's blocks are given back: that many bytes, then as long a rest.
const (
	eraseStep = 1 << 20
	eraseRest = 2 * time.Millisecond
)

// erase removes a file that nobody needs any more, a piece at a time: a file system that
// is mounted with discard tells the disk about every block, and until the disk has taken
// that in it syncs nothing else. It may take half a second and more.
func erase(fs vfs.FS, name string) error {
	if vfs.Root(fs) != vfs.Default {
		return fs.Remove(name)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return fs.Remove(name) // which says what is wrong
	}
	defer f.Close()
	if err := fs.Remove(name); err != nil {
		return err
	}
	giveBack(f, func() { time.Sleep(eraseRest) })
	return nil
}

// giveBack cuts a file that has no name any more off from its end, with a rest behind each
// piece. One that has another name, or that somebody still reads, stays as it is: its
// blocks go with the last who has it. What fails is left to the closing.
func giveBack(f *os.File, rest func()) {
	var st syscall.Stat_t
	if syscall.Fstat(int(f.Fd()), &st) != nil || st.Nlink != 0 || !unshared(f) {
		return
	}
	// A log's blocks are reserved beyond its end, and go when the file becomes shorter.
	for size := max(st.Size, st.Blocks*512); size > eraseStep; {
		size -= eraseStep
		if f.Truncate(size) != nil {
			return
		}
		rest()
	}
}

// unshared reports whether nobody else has the file open. A write lease is given for such
// a file only; without a name nobody can come to it afterwards.
func unshared(f *os.File) bool {
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}
