//perf:hot

package ring

import "sync/atomic"

// Fanout is a ring with one producer, one gating reader and any number of free readers. The
// producer never overwrites what the gating reader has not released; the free readers cost the
// producer nothing, and each detects when it has been overtaken.
//
// Producer: Limit, Slots and Mask, write, PublishTo. Gating reader: Ready, At,
// Release. Free readers: Reader, Next.
//
// Invariants, of the producer: published <= writing < Limit <= published+capacity/2, and Limit <=
// consumed+capacity. Because of the half lap, a free reader knows how far behind the published
// cursor a slot is certainly still whole.
type Fanout[T any] struct {
	slots  []T // constant, read by all sides
	mask   int64
	region *Region // keeps the mapping reachable
	waiter *Waiter

	_         [cacheLine]byte
	sent      int64   // writer: the producer. What it last published
	limit     int64   // writer: the producer. Gate plus capacity, as last read
	published *cursor // our cursor, read by all readers
	parked    *uint32 // the gating reader's word
	gate      *cursor // the gating reader's cursor

	consumer
}

// Slots is the whole ring: position p is Slots()[p&Mask()]. Producer and gating reader.
func (r *Fanout[T]) Slots() []T { return r.slots }

// Mask turns a position into an index of Slots.
func (r *Fanout[T]) Mask() int64 { return r.mask }

// Limit is the end of the slots that the producer may write now: the gating cursor plus the
// capacity, and at most half a lap beyond what is published. Limit reads the gate's line, so the
// caller keeps the result: it stays valid, and only more slots may have become free. A producer
// that needs more publishes first. A cursor that no correct reader can have written frees nothing.
// Producer only.
func (r *Fanout[T]) Limit() int64 {
	capacity := int64(len(r.slots))
	limit := r.gate.v.Load() + capacity
	if limit < r.limit || limit > r.sent+capacity {
		limit = r.limit
	}
	r.limit = limit
	return min(limit, r.sent+capacity/2)
}

// At is the slot at a position that the producer may write or that Ready returned.
func (r *Fanout[T]) At(pos int64) *T { return &r.slots[pos&r.mask] }

// PublishTo makes the slots before pos visible to all readers, in one store,
// and wakes the gating reader if it is parked. Producer only.
func (r *Fanout[T]) PublishTo(pos int64) {
	r.PublishQuietlyTo(pos)
	if atomic.LoadUint32(r.parked) != awake {
		wakeParked(r.parked)
	}
}

// PublishQuietlyTo is PublishTo without the wake, for a producer that borrows the reader next.
func (r *Fanout[T]) PublishQuietlyTo(pos int64) {
	if Checks {
		mustNotPass("publish", pos, r.sent, min(r.limit, r.sent+int64(len(r.slots))/2))
	}
	r.sent = pos
	storeRelease(word(&r.published.v), pos)
	storeFence() // before the overwrites that this publication allows
}

// Published is the end of the published slots. Any goroutine.
func (r *Fanout[T]) Published() int64 { return r.published.v.Load() }
