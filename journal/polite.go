package journal

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lowestPriority is the nice value of a thread that gets what nobody else wants.
const lowestPriority = 19

// Politely runs f on a thread of its own at the lowest priority, so that on a
// machine with few cores a shadow engine takes only the time that the path of
// an order leaves over. The thread ends with f: its priority cannot stay with
// the runtime. A system that does not allow it runs f as it is.
func Politely(f func() error) error {
	done := make(chan error, 1)
	go func() {
		lower()
		done <- f()
	}()
	return <-done
}

// lower gives the goroutine a thread of its own, for good, at the lowest priority.
func lower() {
	runtime.LockOSThread() // never unlocked
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestPriority)
}

// alike starts f on a goroutine that is as polite as the caller: what a polite
// caller hands to a helper must not come back at full priority.
func alike(f func()) {
	polite := lowered()
	go func() {
		if polite {
			lower()
		}
		f()
	}()
}

// lowered reports whether the calling thread has the lowest priority. The system
// call gives 20 less the nice value.
func lowered() bool {
	p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return err == nil && p == 20-lowestPriority
}
