package journal

import (
	"fmt"
	"runtime/debug"

	"posttrade/ring"
)

// The nice values of work beside the path of an order. Bulk runs only when no other work wants the
// processor, and may be delayed for minutes. Background gets a tenth of a busy processor, so that
// work that must keep up does so on a machine that has other work as well.
const (
	Bulk       = 19
	Background = 10
)

// Politely runs f on a thread of its own at a low priority, so that on a machine with few cores f
// takes only the time that the path of an order leaves over. The thread ends with f, because the
// runtime must not reuse a thread of that priority. If the system does not allow the change, f runs
// at the usual priority: so on every system but Linux.
//
// A panic of f is a panic of Politely, with a *Panic: a caller that recovers from its own panics
// recovers from those of f.
func Politely(nice int, f func() error) (err error) {
	done := make(chan *Panic, 1)
	go func() {
		lower(nice)
		done <- caught(func() { err = f() })
	}()
	if met := <-done; met != nil {
		panic(met)
	}
	return err
}

// Panic is the panic of a goroutine that works for another one, which panics with it.
type Panic struct {
	Cause any    // the value that the goroutine panicked with
	Stack []byte // of the goroutine
}

// Error is cause and stack: so the runtime prints both when nothing recovers.
func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Cause, p.Stack) }

// caught runs f and returns its panic, nil for none.
func caught(f func()) (met *Panic) {
	defer func() {
		switch cause := recover().(type) {
		case nil:
		case *Panic:
			met = cause
		default:
			met = &Panic{cause, debug.Stack()}
		}
	}()
	f()
	return nil
}

// alike starts f on a goroutine with the caller's priority: work that a polite caller gives to a
// helper must not run at full priority. join waits for the end of f, and panics when f has.
func alike(f func()) (join func()) {
	nice := ring.Niceness()
	done := make(chan *Panic, 1)
	go func() {
		if nice >= Background {
			lower(nice)
		}
		done <- caught(f)
	}()
	return func() {
		if met := <-done; met != nil {
			panic(met)
		}
	}
}
