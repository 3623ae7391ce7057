package stats

import (
	"io"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// lock keeps a lock on the region's file until the process ends.
func lock(region *ring.Region) error {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	return unix.FcntlFlock(uintptr(region.Fd()), unix.F_OFD_SETLK, &l)
}

// locked reports whether a process has that lock.
func locked(region *ring.Region) (bool, error) {
	l := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	err := unix.FcntlFlock(uintptr(region.Fd()), unix.F_OFD_GETLK, &l)
	return l.Type != unix.F_UNLCK, err
}
