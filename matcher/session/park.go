package session

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/ring"
)

// States of a doorbell. It is the waiter word of package ring, at which a publisher in another
// process looks and through which it wakes the sleeper.
const (
	awake  = 0
	parked = 1
)

const (
	// sleepNs bounds one sleep of poller or feeder, in case a peer crashes or misbehaves.
	sleepNs = 50_000_000
	// napNs is the sleep while a client has left no room for its records, and on a kernel that cannot
	// wait on several words.
	napNs = 500_000

	futexWake       = 1
	futex2Size32    = 2
	globalExpedited = 1 << 1 // of membarrier(2); each ring registers its process
)

// waitWord is struct futex_waitv.
type waitWord struct {
	value uint64
	addr  uint64
	flags uint32
	_     uint32
}

// parker is the sleep of the poller: on its own word, which the committer and the connections ring,
// and on the doorbell of every session.
//
// A client wakes the server only by the doorbell in its own command region, so it cannot delay,
// wake or stop another client. The kernel waits on all doorbells at once. No wake-up is lost,
// because the order is that of package ring: the poller sets the doorbells, issues a barrier on all
// cores, looks a last time and sleeps; the publisher stores its cursor, then looks at its doorbell.
type parker struct {
	_       [128]byte
	word    atomic.Uint32 // writers: the poller, and the goroutines that wake it
	_       [128]byte
	words   [MaxSessions + 1]waitWord
	waits   [MaxSessions]*session // the sessions of the doorbells from words[1] on
	plain   bool                  // the kernel cannot wait on several words: nap
	lease   ring.Lease            // of the poller's sessions
	sleeps  atomic.Uint64
	rescues atomic.Uint64 // sleeps that ran out although there was work
}

// borrow takes the resting poller's sessions. It returns false when the poller works or another
// goroutine has them. A goroutine that has answers for them writes these itself, so that an answer
// does not wait for the poller's thread.
func (p *parker) borrow() bool { return p.lease.Borrow() == ring.Taken }

func (p *parker) giveBack() { p.lease.Return() }

// rest sleeps with the sessions open for loans.
func (p *parker) rest(n int, ns int64) (rung int, late bool) {
	p.lease.Lend()
	rung, late = p.wait(n, ns)
	p.lease.Regain()
	return rung, late
}

// yield gives the core to another thread, with the sessions open for loans.
func (p *parker) yield() {
	p.lease.Lend()
	ring.YieldThread()
	p.lease.Regain()
}

// wake ends the poller's sleep, if it sleeps. Any goroutine.
func (p *parker) wake() {
	if p.word.Load() == parked && p.word.CompareAndSwap(parked, awake) {
		futexWakeOne(&p.word)
	}
}

// sleep waits until wake, a doorbell or the time-out. When all words are armed it calls busy, and
// does not wait if busy reports work.
func (p *parker) sleep(sessions []*session, busy func() bool) {
	p.word.Store(parked)
	n, ns := 0, int64(sleepNs)
	for _, one := range sessions {
		room := one.spacious()
		if !room {
			ns = napNs // its client makes room without ringing
		}
		if one.deaf = !room || one.full(); one.deaf || one.alarms >= falseAlarms {
			continue
		}
		one.doorbell.Store(parked)
		p.waits[n] = one
		n++
	}
	membarrier()
	rung := 0
	if !busy() {
		late := false
		if rung, late = p.rest(n, ns); late && ns == sleepNs && p.word.Load() == parked && busy() {
			p.rescues.Add(1)
		}
	}
	p.word.Store(awake)
	for i, one := range p.waits[:n] {
		// A client may wake the sleeper without a change of the word on which it sleeps.
		if one.doorbell.Swap(awake) == parked && i+1 != rung {
			continue
		}
		if one.alarms++; !one.commands.Empty() {
			one.alarms = 0
		}
	}
	clear(p.waits[:n])
}

// falseAlarms is how often in a row a doorbell may wake the poller without a command. After that
// the poller does not wait on it any more and looks at its session after every sleep.
const falseAlarms = 64

// wait sleeps on the poller's word and n doorbells. rung is the doorbell that ended the sleep, from
// 1 on; 0 for the poller's own word or when it is not known. late reports that the time ran out.
func (p *parker) wait(n int, ns int64) (rung int, late bool) {
	p.sleeps.Add(1)
	if p.plain {
		nap()
		return 0, false
	}
	p.words[0] = waitWord{value: parked, addr: addressOf(&p.word), flags: futex2Size32}
	for i, one := range p.waits[:n] {
		p.words[i+1] = waitWord{value: parked, addr: addressOf(one.doorbell), flags: futex2Size32}
	}
	var until unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &until); err != nil {
		nap()
		return 0, false
	}
	until = unix.NsecToTimespec(until.Nano() + ns)
	index, _, errno := unix.Syscall6(unix.SYS_FUTEX_WAITV, uintptr(unsafe.Pointer(&p.words[0])),
		uintptr(n+1), 0,
		uintptr(unsafe.Pointer(&until)), unix.CLOCK_MONOTONIC, 0)
	if errno == syscall.ENOSYS || errno == syscall.EPERM {
		p.plain = true
	}
	if errno != 0 {
		return 0, errno == syscall.ETIMEDOUT
	}
	return int(index), false
}

// nap sleeps for napNs.
func nap() {
	ts := unix.NsecToTimespec(napNs)
	unix.Nanosleep(&ts, nil)
}

// word is the waiter's state, its first field, which lies in shared memory.
func word(w *ring.Waiter) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(w)) }

func addressOf(word *atomic.Uint32) uint64 { return uint64(uintptr(unsafe.Pointer(word))) }

// futexWakeOne wakes the sleeper. It never blocks.
func futexWakeOne(word *atomic.Uint32) {
	unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// membarrier makes every core that runs a thread of a registered process pass a full barrier. Where
// the kernel refuses it, the time-out of the sleep bounds the delay.
func membarrier() {
	unix.RawSyscall(unix.SYS_MEMBARRIER, globalExpedited, 0, 0)
}
