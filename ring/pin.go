package ring

import "runtime"

// CanPin returns the error of PinThread for a thread of this process; -1 asks for nothing. A start
// asks it for its settings before it begins anything. It does not bind the caller's thread: it
// binds another one, which then ends.
func CanPin(cpu int) error {
	if cpu == -1 {
		return nil
	}
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the bound thread ends with the goroutine
		result <- PinThread(cpu)
	}()
	return <-result
}
