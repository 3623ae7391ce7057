package engine

import (
	"fmt"
	"runtime/debug"
)

// failStop wraps drive so that a panic below it ends the process. A caller of drive may recover
// from a panic, as an HTTP handler does. Without failStop the engine would then stay half-way
// through a command, and no other driver could ever take it.
//
// The panic is raised on another goroutine and the caller's is parked for good, so the process
// ends with the stack of the failure in the text and exit code 2 of the Go runtime. A restart
// recovers from the journal, which has no half of a command.
func failStop(drive func()) func() {
	return func() {
		defer func() {
			if met := recover(); met != nil {
				text := fmt.Sprintf("driver: %v\n\n%s", met, debug.Stack())
				go func() { panic(text) }() // on a goroutine of its own no caller can recover from it
				select {}
			}
		}()
		drive()
	}
}
