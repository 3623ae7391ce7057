//go:build !linux

package load

// promptTimers does nothing: naps are as long as the system makes them, and requests that are due
// meanwhile are charged for it.
func promptTimers() {}
