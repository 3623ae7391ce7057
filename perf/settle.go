package perf

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

// settle removes what earlier rows left behind: folders, dirty pages, garbage and memory that the
// collector would return gradually, and scheduler processors that a row requested and did not
// return.
//
// It takes as long as the disk needs for all dirty pages, those of other processes too, and for the
// removed files. Without it, the first seconds of a row would share the disk with the row before.
func (r *Run) settle() error {
	if now := runtime.GOMAXPROCS(0); r.env.Procs > 0 && now != r.env.Procs {
		runtime.GOMAXPROCS(r.env.Procs)
		r.note(fmt.Sprintf("a row before has left gomaxprocs at %d", now))
	}
	debug.FreeOSMemory()
	for _, dir := range r.left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	r.left = nil
	writeBack()
	return r.quietDisk()
}

// leave gives a folder of the run to the next settle, and frees its name. It is not removed at
// once: a file system with the option discard makes the disk erase what removed files held, and on
// some machines all writes wait for that, a millisecond a MiB.
func (r *Run) leave(dir string) error {
	left := fmt.Sprintf("%s.left-%d", dir, r.leaves)
	if err := os.Rename(dir, left); err != nil {
		return err
	}
	r.leaves++
	r.left = append(r.left, left)
	return nil
}

// The disk is quiet when so many syncs in a row took less than quietSync. It is not waited for
// longer than quietWait: a slow disk never is.
const (
	quietSyncs = 10
	quietSync  = 5 * time.Millisecond
	quietWait  = 5 * time.Second
)

// quietDisk waits until the disk has done what was left to it.
func (r *Run) quietDisk() (err error) {
	f, err := os.CreateTemp(r.o.Dir, "quiet-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	var page [4096]byte
	start := time.Now()
	for quiet := 0; quiet < quietSyncs && time.Since(start) < r.duration(quietWait); quiet++ {
		begun := time.Now()
		if _, err := f.WriteAt(page[:], 0); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if time.Since(begun) > quietSync {
			quiet = -1
		}
	}
	return nil
}
