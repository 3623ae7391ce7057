package load

import "golang.org/x/sys/unix"

// promptTimers takes the slack from the timers of the calling thread: the kernel would otherwise
// end a short sleep up to 50 us later, to wake several threads at once (prctl(2),
// PR_SET_TIMERSLACK). The change stays with the thread.
func promptTimers() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
