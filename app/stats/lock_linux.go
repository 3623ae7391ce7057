package stats

import (
	"io"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// lock keeps a lock on the region's file until the process ends.
//
// The lock belongs to the open file, and not to the process, so another open of the same file in
// this process does not end it. It does not block: a lock that another writer holds is an error.
func lock(region *ring.Region) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	return unix.FcntlFlock(uintptr(region.Fd()), unix.F_OFD_SETLK, &l)
}

// locked reports whether a process has that lock.
//
// It asks without taking the lock, so readers do not hold up a writer that starts.
func locked(region *ring.Region) (bool, error) {
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(uintptr(region.Fd()), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}
