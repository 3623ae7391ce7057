//perf:hot

package ring

import "sync/atomic"

// producer is the writing end of an SPSC.
//
// claimed and limit are private to the producer goroutine: it never reads its
// own shared cursor back, and what it reads of the consumer's is checked in
// reopen before use.
//
// Invariant: published <= claimed <= limit <= consumed+capacity.
type producer struct {
	_         [cacheLine]byte
	claimed   int64   // writer: the producer. The next position to claim
	limit     int64   // writer: the producer. Positions before it are known to be free
	room      int64   // constant: the capacity
	published *cursor // our cursor, read by the consumer
	parked    *uint32 // the consumer's word
	gate      *cursor // the consumer's cursor
	foul      atomic.Bool
}

// ClaimN claims n slots, all or none, and returns the first position; reach them
// by At. Producer only.
func (p *producer) ClaimN(n int) (lo int64, ok bool) {
	if checks {
		mustBePositive("claim", n)
	}
	lo = p.claimed
	hi := lo + int64(n)
	if hi > p.limit && !p.reopen(hi) {
		return lo, false
	}
	p.claimed = hi
	return lo, true
}

// reopen is the slow path of the claims: it reads the consumer's line, which
// costs a cache miss, about once a lap instead of once a slot. A cursor that no
// correct consumer can have written marks the ring corrupt and frees nothing.
//
//go:noinline
func (p *producer) reopen(hi int64) bool {
	gate := p.gate.v.Load()
	if gate > p.claimed || gate+p.room < p.limit {
		p.foul.Store(true)
		return false
	}
	p.limit = gate + p.room
	return hi <= p.limit
}

// Publish makes every claimed slot visible to the consumer, in one store, and
// wakes the consumer if it is parked. Producer only.
func (p *producer) Publish() { publish(word(&p.published.v), p.claimed, p.parked) }

// PublishTo makes the claimed slots before pos visible. Producer only.
func (p *producer) PublishTo(pos int64) {
	if checks {
		mustNotPass("publish", pos, p.published.v.Load(), p.claimed)
	}
	publish(word(&p.published.v), pos, p.parked)
}
