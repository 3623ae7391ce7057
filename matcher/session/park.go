package session

import (
	"sync/atomic"

	"posttrade/ring"
)

// sleepNs bounds one sleep of poller or feeder, in case a peer crashes or misbehaves. 50 ms:
// between correct peers no sleep lasts until then while there is work (Metrics.Rescues counts).
const sleepNs = 50_000_000

// parker is the sleep of the poller: on its own waiter, which the committer and the connections
// ring, and on the doorbell of every session (ring.MultiWaiter).
type parker struct {
	_       [128]byte
	waiter  ring.MultiWaiter
	waits   [1 + MaxSessions]*session // the sessions of the doorbells, in the order of their waiters
	lease   ring.Lease                // of the poller's sessions
	sleeps  atomic.Uint64
	rescues atomic.Uint64 // sleeps that ran out although there was work
}

// borrow takes the resting poller's sessions. It returns false when the poller works or another
// goroutine has them. A goroutine that has answers for them writes these itself, so that an answer
// does not wait for the poller's thread.
func (p *parker) borrow() bool { return p.lease.Borrow() == ring.Taken }

// giveBack ends what borrow began. The caller wakes the poller if work is left.
func (p *parker) giveBack() { p.lease.Return() }

// nap sleeps with the sessions open for loans, at most ns nanoseconds. woken is the doorbell that
// ended it, -1 when that is not known; late: the time has run out.
func (p *parker) nap(ns int64) (woken int, late bool) {
	p.lease.Lend()
	woken, late = p.waiter.Wait(ns)
	p.lease.Regain()
	return woken, late
}

// yield gives the core to another thread, with the sessions open for loans.
func (p *parker) yield() {
	p.lease.Lend()
	ring.YieldThread()
	p.lease.Regain()
}

// wake ends the poller's sleep, if it sleeps. Any goroutine.
func (p *parker) wake() { p.waiter.Own.Notify() }

// sleep waits until wake, a doorbell or the time-out. When all words are armed it calls busy, and
// does not wait if busy reports work: a command that came before its doorbell was armed has not
// rung. The barrier may not reach every client, so a first short sleep and a second look follow.
//
// A session that has no room for another command is not waited for by its doorbell, because a
// command could not be taken. One whose client is out of room for answers shortens the sleep,
// because that client makes room without ringing.
func (p *parker) sleep(sessions []*session, busy func() bool) {
	p.waiter.Arm(&p.waiter.Own)
	n, ns := 1, int64(sleepNs)
	for _, one := range sessions {
		room := one.spacious()
		if !room {
			ns = ring.NapNs // its client makes room without ringing
		}
		if one.unarmed = !room || one.full(); one.unarmed || one.alarms >= falseAlarms {
			continue
		}
		p.waiter.Arm(one.doorbell)
		p.waits[n] = one
		n++
	}
	p.waiter.Barrier()
	woken := -1
	if !busy() {
		p.sleeps.Add(1)
		late := false
		if woken, late = p.nap(ring.DrainNs); late && !busy() {
			if woken, late = p.nap(ns); late && ns == sleepNs && p.waiter.Own.Parked() && busy() {
				p.rescues.Add(1)
			}
		}
	}
	p.waiter.Disarm(woken, func(place int) {
		one := p.waits[place]
		if one == nil { // the poller's own
			return
		}
		if one.alarms++; !one.commands.Empty() {
			one.alarms = 0
		}
	})
	clear(p.waits[:n])
}

// falseAlarms is how often in a row a doorbell may wake the poller without a command. After that
// the poller does not wait on it any more and looks at its session after every sleep.
const falseAlarms = 64
