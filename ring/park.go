package ring

import "sync/atomic"

const (
	// backstopNs bounds one sleep: no wake-up is lost between correct peers, but
	// a peer in another process may crash or misbehave.
	backstopNs = 50_000_000
	// DrainNs is the first sleep where the barrier may not reach every publisher: much longer than
	// any store buffer takes to drain.
	DrainNs = 100_000
)

// reach is whose threads the barrier of a parking consumer reaches (doc.go).
type reach uint8

const (
	nowhere      reach = iota // the kernel has no barrier
	ownProcess                // those of this process, all of them
	allProcesses              // those of other processes too, but not surely all
)

// wakeParked is the slow path of publish: the consumer has announced that it
// parks. The winner of the exchange pays for the wake.
//
//go:noinline
func wakeParked(word *uint32) {
	if atomic.CompareAndSwapUint32(word, parked, awake) {
		futexWakeOne(word)
	}
}

// Wake makes the consumer return from its park, or from its next one if it is
// not parked: for stopping, after the stop flag is set. Any goroutine.
func (w *Waiter) Wake() {
	w.word.Store(nudged)
	futexWakeOne(w.addr())
}

// park sleeps until a publisher or Wake ends the sleep, or timeoutNs have passed. It returns at
// once when q is not empty. Consumer only.
//
// rescued reports a sleep that ran to its timeout although q was not empty: a lost wake-up, which
// does not happen between correct peers.
//
// With a lease the consumer is lent while it sleeps, from its last look on.
func (w *Waiter) park(q Queue, timeoutNs int64, publishers reach, lease *Lease) (rescued bool) {
	if !w.word.CompareAndSwap(awake, parked) {
		w.word.Store(awake) // the word was nudged, or left over from a crash
		return false
	}
	if needsBarrier && !publishers.barrier() {
		w.drain(q)
		if w.word.Load() != parked {
			w.word.Store(awake)
			return false
		}
	}
	if !q.Empty() {
		w.settle()
		return false
	}
	if lease != nil {
		lease.Lend()
	}
	timedOut := futexWaitFor(w.addr(), timeoutNs) && w.word.Load() == parked
	w.settle()
	if lease != nil {
		lease.Regain()
	}
	return timedOut && !q.Empty()
}

// settle leaves the parked state. It also clears a nudge that came meanwhile, because park returns
// now.
func (w *Waiter) settle() { w.word.Store(awake) }

// drain replaces the barrier: after one short sleep, every store that preceded a publisher's look
// at the word is visible.
func (w *Waiter) drain(q Queue) {
	if q.Empty() {
		futexWaitFor(w.addr(), DrainNs)
	}
}
