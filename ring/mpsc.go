//perf:hot

package ring

import (
	"sync/atomic"
)

// MPSC is a bounded ring with many producers and one consumer. A full ring refuses at once; no
// producer ever waits in it.
//
// Producers: ClaimN or ClaimLeaving, At, write, Publish. Consumer: Ready, At, Release.
//
// A producer that is preempted between ClaimN and Publish holds up the consumer at its first slot,
// and a producer that dies there stops the ring for good. So only plain stores belong between the
// two, and a process that may crash must not produce into a ring that other processes share.
//
// Invariants: consumed <= seen <= claimed <= consumed+capacity; the lap word of
// a slot says p>>shift + 1 exactly when position p was published there last.
type MPSC[T any] struct {
	slots    []T // constant, as is the rest of this block
	laps     []uint32
	mask     int64
	shift    uint
	capacity int64
	claimed  *cursor // writers: the producers, by compare and swap
	tail     *cursor // writer: the consumer
	waiter   *Waiter
	region   *Region // keeps the mapping reachable

	_    [cacheLine]byte
	gate atomic.Int64 // writers: the producers. A value tail once had
	_    [cacheLine]byte

	consumed int64 // writer: the consumer. Slots before it are released
	seen     int64 // writer: the consumer. Slots before it are known to be published
	_        [cacheLine]byte
}

// ClaimN claims n slots, all or none, and returns the first position. False
// when the ring has no room for n: refuse the caller's request. Any goroutine.
func (r *MPSC[T]) ClaimN(n int) (lo int64, ok bool) { return r.ClaimLeaving(n, 0) }

// ClaimLeaving is ClaimN for a producer that leaves spare slots free for others. It also returns
// false when fewer than spare would be left. Any goroutine.
func (r *MPSC[T]) ClaimLeaving(n, spare int) (lo int64, ok bool) {
	if Checks {
		mustBePositive("claim", n)
	}
	room := r.capacity - int64(spare)
	for {
		lo = r.claimed.v.Load()
		hi := lo + int64(n)
		if hi-r.gate.Load() > room && !r.reopen(hi, room) {
			return lo, false
		}
		if r.claimed.v.CompareAndSwap(lo, hi) {
			return lo, true
		}
	}
}

// reopen is the slow path of a claim: it reads the consumer's line. Two
// producers may store their gates in either order; an older gate is smaller and
// only makes the next claim look again.
func (r *MPSC[T]) reopen(hi, room int64) bool {
	gate := r.tail.v.Load()
	storeRelease(word(&r.gate), gate)
	return hi-gate <= room
}

// At is the slot at a position that the caller has claimed or that Ready returned.
func (r *MPSC[T]) At(pos int64) *T {
	if Checks {
		consumed := r.tail.v.Load()
		mustBeReady("access", pos, consumed, consumed+r.capacity)
	}
	return &r.slots[pos&r.mask]
}

// Publish makes the n slots from lo, claimed by the caller, visible to the consumer and wakes it if
// it is parked. Producers may publish in any order.
func (r *MPSC[T]) Publish(lo int64, n int) {
	r.PublishQuietly(lo, n)
	if r.waiter.word.Load() != awake {
		wakeParked(r.waiter.addr())
	}
}

// PublishQuietly is Publish without the wake, for a producer that borrows the consumer next.
func (r *MPSC[T]) PublishQuietly(lo int64, n int) {
	if Checks {
		mustNotPass("publish", lo+int64(n), lo, r.claimed.v.Load())
	}
	at := lo & r.mask
	first := min(int64(n), r.capacity-at)
	lap := uint32(lo>>r.shift) + 1
	markLaps(&r.laps[at], int(first), lap)
	if rest := int64(n) - first; rest > 0 {
		markLaps(&r.laps[0], int(min(rest, r.capacity)), lap+1)
	}
}

// Ready returns the slots [lo, hi) that may be read, at most max; lo == hi when
// the next one is not published yet. Consumer only.
func (r *MPSC[T]) Ready(max int) (lo, hi int64) {
	lo = r.consumed
	if r.seen-lo < int64(max) {
		r.scan(lo + int64(max))
	}
	return lo, min(r.seen, lo+int64(max))
}

// scan moves seen over published slots, up to hi. It costs one load a slot;
// each slot is scanned once.
func (r *MPSC[T]) scan(hi int64) {
	hi = min(hi, r.consumed+r.capacity)
	pos := r.seen
	for pos < hi && r.published(pos) {
		pos++
	}
	r.seen = pos
}

// published loads the lap word of a position; the slot's content is visible if it is true.
func (r *MPSC[T]) published(pos int64) bool {
	return atomic.LoadUint32(&r.laps[pos&r.mask]) == uint32(pos>>r.shift)+1
}

// Release gives the slots before hi back to the producers. Consumer only; hi is
// at most the last hi of Ready.
func (r *MPSC[T]) Release(hi int64) {
	if Checks {
		mustNotPass("release", hi, r.consumed, r.seen)
	}
	r.consumed = hi
	storeRelease(word(&r.tail.v), hi)
}

// Empty reports that nothing is published beyond what Ready has shown: the last
// look before parking. Consumer only.
func (r *MPSC[T]) Empty() bool {
	return r.seen-r.consumed == r.capacity || !r.published(r.seen)
}

// Consumed is the end of the slots that have been released. Consumer only.
func (r *MPSC[T]) Consumed() int64 { return r.consumed }

// PublishedAt reports that the slot at a position is published, for a borrower that was the
// consumer until a moment ago and has released the slots before it. A lap later it is false again:
// another owner has consumed the slot by then. Any goroutine.
func (r *MPSC[T]) PublishedAt(pos int64) bool { return r.published(pos) }

// Cap is the capacity in slots. Any goroutine.
func (r *MPSC[T]) Cap() int { return int(r.capacity) }

// Depth is the number of slots claimed and not released, as of now. Any goroutine.
func (r *MPSC[T]) Depth() int { return depth(r.claimed, r.tail, r.capacity) }
