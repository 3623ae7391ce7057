package ring

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Futex operations, without the private flag: the word may be shared between processes.
const (
	futexWait = 0
	futexWake = 1
)

// Commands of membarrier(2).
const (
	membarrierGlobalExpedited         = 1 << 1
	membarrierRegisterGlobalExpedited = 1 << 2
)

const (
	// backstopNs bounds one sleep: no wake-up is lost between correct peers, but
	// a peer in another process may crash or misbehave.
	backstopNs = 50_000_000
	// drainNs is the first sleep where membarrier is not available: much longer
	// than any store buffer takes to drain.
	drainNs = 100_000
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
func (w *Waiter) park(q Source, timeoutNs int64, barrier bool, lease *Lease) (rescued bool) {
	if !w.word.CompareAndSwap(awake, parked) {
		w.word.Store(awake) // the word was nudged, or left over from a crash
		return false
	}
	if needsBarrier {
		if !barrier || !membarrier(membarrierGlobalExpedited) {
			w.drain(q)
			if w.word.Load() != parked {
				w.word.Store(awake)
				return false
			}
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

// drain replaces membarrier: after one short sleep, every store that preceded a publisher's look at
// the word is visible.
func (w *Waiter) drain(q Source) {
	if q.Empty() {
		futexWaitFor(w.addr(), drainNs)
	}
}

// futexWaitFor sleeps while the word says parked; true when the time ran out.
func futexWaitFor(word *uint32, timeoutNs int64) bool {
	ts := unix.NsecToTimespec(timeoutNs)
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)),
		futexWait, parked, uintptr(unsafe.Pointer(&ts)), 0, 0)
	return errno == syscall.ETIMEDOUT
}

// futexWakeOne wakes the consumer that sleeps on the word. It wakes one thread only, because one
// consumer parks on a Waiter. In shared memory a peer may let thousands of threads sleep on the
// word, and a publisher would otherwise wake them all. The call never blocks, so the scheduler is
// not told.
func futexWakeOne(word *uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// registerBarrier makes this process take part in the barriers of parking
// consumers, its own and those of other processes; false when the kernel refuses.
func registerBarrier() bool {
	return needsBarrier && membarrier(membarrierRegisterGlobalExpedited)
}

func membarrier(command uintptr) bool {
	_, _, errno := unix.RawSyscall(unix.SYS_MEMBARRIER, command, 0, 0)
	return errno == 0
}

// nap sleeps for a while.
func nap(ns int64) {
	ts := unix.NsecToTimespec(ns)
	unix.Nanosleep(&ts, nil)
}

// YieldThread gives the core to another thread, if one waits for it; the goroutine keeps its
// thread.
func YieldThread() {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
}
