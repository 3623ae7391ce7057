//perf:hot

package matcher

import (
	"sync/atomic"
	"unsafe"

	"posttrade/ring"
)

// maxBatch is how many commands are decided before their events are published and their slots are
// released: enough to hide the cost of both.
const maxBatch = 256

// Stage is the live engine's loop: input ring to engine to output ring. It owns the engine from Run
// on. With a strategy that rests, Run lends the engine to a driver while it rests (Drive).
//
// The stage publishes only whole commands. The exception is a command with more events than the
// output ring has room for: it is published in parts, and its last event is marked.
type Stage struct {
	// Set by NewStage and never replaced. The engine, the reading side of in, the writing side of out
	// and the outlet belong to the holder of the lease.
	engine *Engine
	in     *ring.MPSC[Command]
	out    *ring.Fanout[Event]
	outlet Outlet
	idle   *ring.Idler // waits for commands
	wait   *ring.Idler // waits for room
	cpu    int

	lease  ring.Lease // of all fields but stopping
	driven bool       // the holder of the lease is not Run
	next   func()     // drives the reader of the output ring; nil: the stage wakes it

	// Writer: Stop, from any goroutine. The loop reads it when it has found no command.
	stopping atomic.Bool
	// Writers: the holder of the lease. Readers: any goroutine. Stalls counts the waits in more.
	applied ring.Sequence
	stalls  ring.Sequence
}

// loop decides until Stop has been called and no command is left to decide. It looks at stopping
// only when the ring is empty, so every command that was published before Stop is decided.
func (s *Stage) loop() {
	for {
		if s.turn(maxBatch) {
			s.idle.Reset()
			continue
		}
		if s.stopping.Load() && s.in.Empty() {
			return
		}
		s.idle.Idle(s.in)
	}
}

// turn decides at most max of the commands that are there. It returns false if there are none. The
// events are published before the slots go back: a producer that sees a free slot can rely on the
// events of the command that had it.
func (s *Stage) turn(max int) bool {
	lo, hi := s.in.Ready(max)
	if lo == hi {
		return false
	}
	for slot := lo; slot < hi; {
		batch := s.batch(slot, hi)
		s.engine.ApplyBatch(batch, &s.outlet)
		slot += int64(len(batch))
	}
	s.publish()
	s.in.Release(hi)
	return true
}

// DriveAtMost is how many commands are few enough for the submitter to drive. More are a flow, for
// which two threads side by side are faster than one.
const DriveAtMost = 16

// A driver decides a few commands and leaves a flow of them to the stage's own thread. The driver
// is a goroutine with a request to answer, so both bounds keep it from working for others for long.
const (
	drivenBatch = 64
	drivenTurns = 4
)

// Drive decides on the calling goroutine what has been published quietly, if the stage's thread
// rests. If the thread does not rest, Drive notifies it. Drive never waits for the thread; it waits
// only for room in the output ring. Any goroutine may call it.
func (s *Stage) Drive() {
	for range drivenTurns {
		switch s.lease.Borrow() {
		case ring.Lent:
			return
		case ring.Kept:
			s.in.Waiter().Notify()
			return
		}
		worked := s.roomy()
		if worked {
			s.driven = true
			worked = s.turn(drivenBatch)
			s.driven = false
		}
		next := s.in.Consumed()
		s.lease.Return()
		if worked && s.next != nil {
			s.next()
		}
		if !s.in.PublishedAt(next) {
			return
		}
		if !worked {
			break
		}
	}
	s.in.Waiter().Notify()
}

// roomy reports that a driver will hardly have to wait for room in the output ring: a quarter of it
// is free. The lease holder calls it.
func (s *Stage) roomy() bool {
	if s.outlet.Limit-s.outlet.Next < int64(len(s.outlet.Slots))/4 {
		s.outlet.Limit = s.out.Limit()
	}
	return s.outlet.Limit-s.outlet.Next >= int64(len(s.outlet.Slots))/4
}

// batch returns the slots from lo on, up to hi or to the end of the ring's memory. The engine gets
// commands that lie side by side, so a batch that wraps around the ring is decided in two.
func (s *Stage) batch(lo, hi int64) []Command {
	capacity := int64(s.in.Cap())
	n := min(hi-lo, capacity-lo&(capacity-1))
	return unsafe.Slice(s.in.At(lo), int(n))
}

// publish makes the events written so far visible. It stores Applied before a reader can see them,
// so that Applied is never behind what a view shows. A driver that drives the reader next does not
// wake the reader's thread.
func (s *Stage) publish() {
	s.applied.Release(int64(s.engine.applied))
	if s.driven && s.next != nil {
		s.out.PublishQuietlyTo(s.outlet.Next)
		return
	}
	s.out.PublishTo(s.outlet.Next)
}

// more makes room in the output ring. It publishes first, so that the recorder can take the events:
// a command may have more events than the ring has slots. It blocks until the ring's slowest gating
// reader has released slots; without such a reader it would not return.
func (s *Stage) more(o *Outlet) {
	if o.Limit = s.out.Limit(); o.Limit > o.Next {
		return
	}
	s.driven = false // the recorder's thread has to be woken
	s.publish()
	if o.Limit = s.out.Limit(); o.Limit > o.Next {
		return
	}
	s.stalls.Release(s.stalls.Load() + 1)
	s.wait.Reset()
	for o.Limit <= o.Next {
		s.wait.Idle((*outputRoom)(s))
		o.Limit = s.out.Limit()
	}
}

// outputRoom is the output ring as a condition to wait for: an Idler waits while it is Empty.
type outputRoom Stage

// Empty reports that there is no room yet.
func (r *outputRoom) Empty() bool { return r.out.Limit() <= r.outlet.Next }
