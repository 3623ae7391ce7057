//perf:hot

package ring

import (
	"sync/atomic"
	"unsafe"
)

// producer is the writing end of an SPSC.
//
// claimed, limit, free and warm are private to the producer goroutine. It never reads its own
// shared cursor back. look checks the consumer's cursor before use.
//
// Invariant: published <= claimed <= limit <= free <= consumed+capacity, warm <= free.
type producer struct {
	_       [cacheLine]byte
	claimed int64 // writer: the producer. The next position to claim
	// writer: the producer. Positions before it are claimed without a check
	limit     int64
	published *int64         // our cursor, read by the consumer
	parked    *uint32        // the consumer's word
	free      int64          // writer: the producer. Positions before it are known to be free
	warm      int64          // writer: the producer. Lines before it have been asked for
	gate      *cursor        // the consumer's cursor
	room      int64          // constant: the capacity
	base      unsafe.Pointer // constant: the first slot
	slotBytes int64          // constant
	foul      atomic.Bool
}

const (
	// strideSlots is how many claims of one slot go by between two calls of reopen.
	strideSlots = 16
	// warmSlots is how far ahead of the claims lines are asked for. Filling so many slots takes longer
	// than a line takes to arrive from another core.
	warmSlots = strideSlots + 64
)

// ClaimSome claims free slots, at most max, and returns them as [lo, hi); lo == hi when the ring is
// full. It may return fewer slots than are free: the caller asks again. It is for a producer of
// many messages, which writes its slots by At and publishes each, or several, by PublishTo. A claim
// and a publication then cost one store. Producer only.
func (p *producer) ClaimSome(max int) (lo, hi int64) {
	if Checks {
		mustBePositive("claim", max)
	}
	lo = p.claimed
	if lo == p.limit {
		p.reopen(lo + 1)
	}
	hi = min(p.limit, lo+int64(max))
	p.claimed = hi
	return lo, hi
}

// reopen is the slow path of the claims, taken once every strideSlots. It makes sure that there is
// room up to hi and asks for the lines of the next slots.
//
//go:noinline
func (p *producer) reopen(hi int64) bool {
	if hi > p.free && !p.look(hi) {
		return false
	}
	p.limit = max(hi, min(p.claimed+strideSlots, p.free))
	p.warmUp(min(p.claimed+warmSlots, p.free))
	return true
}

// look reads the consumer's line, a cache miss, about once a lap instead of once a slot. A cursor
// that no correct consumer can have written marks the ring corrupt and frees nothing.
func (p *producer) look(hi int64) bool {
	gate := p.gate.v.Load()
	if gate > p.claimed || gate+p.room < p.free {
		p.foul.Store(true)
		return false
	}
	p.free = gate + p.room
	return hi <= p.free
}

// warmUp asks for the lines of the free slots before to, to write to them. They are in the
// consumer's cache since the last lap. A store to such a line holds up the stores after it, and so
// the next publication; therefore the lines are fetched ahead, side by side.
func (p *producer) warmUp(to int64) {
	from := max(p.warm, p.claimed)
	if from >= to {
		return
	}
	p.warm = to
	at := from & (p.room - 1)
	first := min(to-from, p.room-at)
	prefetchWrite(unsafe.Add(p.base, at*p.slotBytes), first*p.slotBytes)
	prefetchWrite(p.base, (to-from-first)*p.slotBytes)
}

// Publish makes every claimed slot visible to the consumer, in one store, and
// wakes the consumer if it is parked. Producer only.
func (p *producer) Publish() {
	storeRelease(p.published, p.claimed)
	if atomic.LoadUint32(p.parked) != awake {
		wakeParked(p.parked)
	}
}

// PublishTo makes the claimed slots before pos visible. Producer only.
func (p *producer) PublishTo(pos int64) {
	if Checks {
		mustNotPass("publish", pos, atomic.LoadInt64(p.published), p.claimed)
	}
	storeRelease(p.published, pos)
	if atomic.LoadUint32(p.parked) != awake {
		wakeParked(p.parked)
	}
}
