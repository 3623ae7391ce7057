package engine

import (
	"fmt"
	"runtime/debug"
)

// failStop is drive, with the end of the process for a panic below it. Whoever drives may
// recover from one, as an HTTP handler does; then the engine would stay half-way through a
// command, and lent out for good.
func failStop(drive func()) func() {
	return func() {
		defer func() {
			if met := recover(); met != nil {
				text := fmt.Sprintf("driver: %v\n\n%s", met, debug.Stack())
				go func() { panic(text) }() // nobody's to recover from
				select {}
			}
		}()
		drive()
	}
}
