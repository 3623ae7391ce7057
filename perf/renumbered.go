package perf

import (
	"time"

	"posttrade/perf/load"
)

// renumbered gives every request of several runs a number of its own, so that no client order id is
// used twice: the server would answer a repeated one with its first decision, and faster.
type renumbered struct {
	target load.Target
	// base is the number of the current run's request 0. Send sets it when a run begins.
	base int
	// next is one above the highest number sent.
	next int
}

// Send gives request n of this run a number above all of the runs before; request 0 begins a run. A
// request that finds no room keeps its number for the next try.
func (r *renumbered) Send(n int) (bool, error) {
	if n == 0 {
		r.base = r.next
	}
	ok, err := r.target.Send(r.base + n)
	if ok {
		r.next = r.base + n + 1
	}
	return ok, err
}

func (r *renumbered) Poll(answered func(n int, at time.Duration)) error {
	return r.target.Poll(func(n int, at time.Duration) { answered(n-r.base, at) })
}
