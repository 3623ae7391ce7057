package journal

import (
	"runtime"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// The nice values of work beside the path of an order. Bulk gets what nobody else
// wants, also for minutes; Background gets a tenth of a busy processor, so that
// what must keep up does so on a machine that has other work as well.
const (
	Bulk       = 19
	Background = 10
)

// Politely runs f on a thread of its own at a low priority, so that on a machine
// with few cores it takes only the time that the path of an order leaves over.
// The thread ends with f: its priority cannot stay with the runtime. A system
// that does not allow it runs f as it is.
func Politely(nice int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		lower(nice)
		done <- f()
	}()
	return <-done
}

// lower gives the goroutine a thread of its own, for good, at a low priority.
func lower(nice int) {
	runtime.LockOSThread() // never unlocked
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

// alike starts f on a goroutine that is as polite as the caller: what a polite
// caller hands to a helper must not come back at full priority.
func alike(f func()) {
	nice := ring.Niceness()
	go func() {
		if nice >= Background {
			lower(nice)
		}
		f()
	}()
}
