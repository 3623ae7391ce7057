package engine

import (
	"errors"
	"fmt"
	"runtime/debug"

	"posttrade/journal"
)

// ErrEnded reports that a thread of the engine cannot do its work. Without it no command is decided
// or answered any more, so the engine is given up as a whole.
var ErrEnded = errors.New("engine: a thread has ended")

// run is the goroutine of a part of the path. done gets the loop's result, which End receives.
//
// A part that fails by itself ends the engine: the waiting callers are told, then Options.Fatal is
// called. A failed journal has done both already. done has its result before Fatal is called,
// because Fatal need not return.
func (c *Engine) run(part string, loop func() error, done chan<- error) {
	err := loop()
	if err == nil || errors.Is(err, journal.ErrPoisoned) {
		done <- err
		return
	}
	err = fmt.Errorf("%w: %s: %w", ErrEnded, part, err)
	c.Fail(err)
	done <- err
	if c.Options.Fatal == nil {
		panic(err)
	}
	c.Options.Fatal(err)
}

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
