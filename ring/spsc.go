//perf:hot

package ring

// SPSC is a ring with one producer and one consumer, in one process or two.
//
// Producer: Claim or ClaimSome, write, Publish or PublishTo. Consumer: Ready, At, Release. The two
// ends keep their private numbers on lines of their own, away from the fields that both read.
type SPSC[T any] struct {
	slots  []T // constant, as is the rest of this block
	mask   int64
	region *Region // keeps the mapping reachable
	waiter *Waiter

	producer
	consumer
}

// Claim returns the next free slot, or nil when the ring is full. The consumer
// cannot see the slot before Publish. Producer only.
func (r *SPSC[T]) Claim() *T {
	pos := r.claimed
	if pos == r.limit && !r.reopen(pos+1) {
		return nil
	}
	r.claimed = pos + 1
	return &r.slots[pos&r.mask]
}

// At is the slot at a position that this side has claimed or that Ready returned.
func (r *SPSC[T]) At(pos int64) *T {
	if Checks {
		consumed := r.tail.v.Load()
		mustBeReady("access", pos, consumed, consumed+r.capacity)
	}
	return &r.slots[pos&r.mask]
}
