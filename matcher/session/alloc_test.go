package session

import (
	"runtime"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// A round trip does not allocate on either side: client, poller, desk and feeder.
func TestRoundTripDoesNotAllocate(t *testing.T) {
	if raceEnabled {
		return // the race detector allocates
	}
	r := newRig(t, enforced)
	c := r.dial(r.token(true), client.Options{})
	feed := r.dial(r.token(true), client.Options{Role: wire.DropCopy})
	n := uint64(0)
	for range 100 {
		trip(t, c, feed, &n)
	}
	if got := allocated(func() {
		for range 2000 {
			trip(t, c, feed, &n)
		}
	}); got > 200 { // allocations of the runtime itself during 10000 commands
		t.Errorf("%d allocations in 10000 commands", got)
	}
}

// trip is an order, its replace and cancel, and two commands that are turned down.
func trip(t *testing.T, c, feed *client.Client, n *uint64) {
	*n++
	o := client.NewOrder{Account: 1, Security: aaa, Side: matcher.Buy, Qty: 1, LimitPx: 100_000_000}
	ref := roundTrip(t, c, c.Order(*n, &o, "")).OrderRef
	roundTrip(t, c, c.Replace(*n, 1, ref, 2, 100_000_000, ""))
	roundTrip(t, c, c.Cancel(*n, 1, ref))
	roundTrip(t, c, c.Cancel(*n, 1, 1<<31)) // no such order
	o.Qty = 0
	roundTrip(t, c, c.Order(*n, &o, "")) // malformed
	for range 3 {
		must.Get(feed.Next())(t)
	}
}

func roundTrip(t *testing.T, c *client.Client, sent error) *wire.Record {
	if sent != nil {
		t.Fatal(sent)
	}
	c.Flush()
	return must.Get(c.Next())(t)
}

// allocated is how many objects all goroutines allocated during f.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
