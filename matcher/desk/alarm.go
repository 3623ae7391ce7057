package desk

import (
	"sync/atomic"
	"time"
)

// token wakes the holder of a ticket.
type token bool

// A holder must know why it was woken: a nudge from an earlier wait can still be in the channel.
const (
	ended token = true  // the submission has ended, and the holder waited for it: the state says how
	nudge token = false // the holder's time may be up: the holder looks at the clock
)

// tokens is the capacity of Ticket.wake, so that no sender ever blocks.
const tokens = 2

// take waits for the next token and reports whether the submission has ended.
func (t *Ticket) take() bool {
	if <-t.wake == nudge {
		t.alarm.nudged.Store(false)
		return false
	}
	return true
}

// end waits, without a limit, for the token of a submission that has ended or will end.
func (t *Ticket) end() {
	for !t.take() {
	}
}

// alarm bounds how long the holder of a ticket waits. To set a timer and stop it again would cost
// more than the rest of a wait that ends in time, as nearly all do. So the timer keeps running when
// a wait has ended. The next wait leaves the timer alone if it goes off early enough: then it
// nudges the holder, which looks at the clock and sets the timer again. In this way a ticket in
// steady use sets its timer once per time-out.
type alarm struct {
	timer  *time.Timer  // writer: the holder
	due    atomic.Int64 // when the holder's time is up; 0: it does not wait. Writer: the holder
	set    atomic.Int64 // when the timer goes off, 0 if it does not; at worst 0 while it still does
	nudged atomic.Bool  // a nudge is in the channel
}

// now is the desk's own clock, cheaper than the time of day. Never 0.
func (d *Desk) now() int64 { return int64(time.Since(d.epoch)) + 1 }

// begin starts a wait and returns when its time is up, on the desk's clock. Only the holder calls
// begin, again and disarm.
func (a *alarm) begin(t *Ticket, timeout time.Duration) (due int64) {
	due = t.desk.now() + int64(timeout)
	a.due.Store(due)
	a.wind(t, due, timeout)
	return due
}

// again looks at the clock after a nudge: false when the time is up.
func (a *alarm) again(t *Ticket, due int64) bool {
	left := due - t.desk.now()
	if left <= 0 {
		return false
	}
	a.wind(t, due, time.Duration(left))
	return true
}

// disarm ends a wait. The timer runs on; when it goes off it finds no wait, unless the next one has
// begun.
func (a *alarm) disarm() { a.due.Store(0) }

// wind makes the timer go off at due or before. The holder stores due and then reads set; ring
// stores set and then reads due. So at least one of the two sees the other's store.
func (a *alarm) wind(t *Ticket, due int64, left time.Duration) {
	if set := a.set.Load(); set != 0 && set <= due {
		return
	}
	a.set.Store(due)
	if a.timer == nil {
		a.timer = time.AfterFunc(left, t.ring)
		return
	}
	a.timer.Reset(left)
}

// ring runs on the timer's goroutine: it nudges a holder that waits.
func (t *Ticket) ring() {
	a := &t.alarm
	a.set.Store(0)
	if a.due.Load() != 0 && a.nudged.CompareAndSwap(false, true) {
		t.wake <- nudge
	}
}
