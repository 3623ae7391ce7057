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
		runtime.LockOSThread() // never unlocked
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, lowestPriority)
		done <- f()
	}()
	return <-done
}
