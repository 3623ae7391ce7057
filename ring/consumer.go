//perf:hot

package ring

import "sync/atomic"

// consumer is the reading end of a ring with one producer; SPSC and Fanout embed it.
//
// consumed and seen are private to the consumer goroutine. It never reads its own shared cursor
// back. refresh checks the producer's cursor before use.
//
// Invariant: consumed <= seen <= consumed+capacity.
type consumer struct {
	_        [cacheLine]byte
	consumed int64   // writer: the consumer. Slots before it are released
	seen     int64   // writer: the consumer. Slots before it are known to be published
	capacity int64   // constant
	head     *cursor // the producer's published cursor
	tail     *cursor // our consumed cursor, read by the producer
	pace     pacer
	broken   atomic.Bool
	_        [cacheLine]byte
}

// Ready returns the slots [lo, hi) that may be read, at most max; lo == hi when there is none. It
// reads the producer's line only when all slots known to be published are used up. Consumer only.
func (c *consumer) Ready(max int) (lo, hi int64) {
	lo, hi = c.consumed, c.seen
	if lo == hi {
		hi = c.refresh()
	}
	return lo, min(hi, lo+int64(max))
}

// refresh reads the producer's line, which is a cache miss when it has changed. While messages
// flow, it keeps a distance between two reads (pace.go). A cursor that no correct producer can have
// written marks the ring corrupt and reads as unchanged.
func (c *consumer) refresh() int64 {
	if c.pace.flowing() {
		c.pace.await()
	}
	head := c.head.v.Load()
	if head == c.seen {
		c.pace.short = 0
		return head
	}
	if ahead := head - c.consumed; head < c.seen || ahead > c.capacity {
		c.broken.Store(true)
		return c.seen
	}
	c.pace.note(head - c.seen)
	c.seen = head
	return head
}

// Release gives the slots before hi back to the producer. Consumer only; hi is
// at most the last hi of Ready.
func (c *consumer) Release(hi int64) {
	if Checks {
		mustNotPass("release", hi, c.consumed, c.seen)
	}
	c.consumed = hi
	storeRelease(word(&c.tail.v), hi)
}

// Empty reports that nothing is published beyond what Ready has shown: the last
// look before parking. Consumer only.
func (c *consumer) Empty() bool {
	head := c.head.v.Load()
	return head <= c.seen || head-c.consumed > c.capacity // the latter: a corrupt ring
}

// Consumed is the end of the slots that have been released. Consumer only.
func (c *consumer) Consumed() int64 { return c.consumed }

// Published is the end of the slots that have been published. Any goroutine.
func (c *consumer) Published() int64 { return c.head.v.Load() }

// Cap is the capacity in slots. Any goroutine.
func (c *consumer) Cap() int { return int(c.capacity) }

// Depth is the number of slots published and not released, as of now. Any goroutine.
func (c *consumer) Depth() int { return depth(c.head, c.tail, c.capacity) }

// depth clamps the difference, because the two loads happen at different moments.
func depth(head, tail *cursor, capacity int64) int {
	t := tail.v.Load()
	return int(min(max(head.v.Load()-t, 0), capacity))
}
