package journal

import "posttrade/ring"

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
func Politely(nice int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		lower(nice)
		done <- f()
	}()
	return <-done
}

// alike starts f on a goroutine with the caller's priority: work that a polite caller gives to a
// helper must not run at full priority.
func alike(f func()) {
	nice := ring.Niceness()
	go func() {
		if nice >= Background {
			lower(nice)
		}
		f()
	}()
}
