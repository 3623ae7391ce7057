//perf:hot

package matcher

import (
	"sync/atomic"
	"unsafe"

	"posttrade/ring"
)

// maxBatch is how many commands are decided before their events are published
// and their slots go back: enough to hide the cost of both.
const maxBatch = 256

// Stage is the live engine's loop: input ring to engine to output ring. It owns
// the engine from Run on.
//
// Nothing is published that is not whole, except that a command with more events
// than the output ring has room for is published in parts; its last event says so.
type Stage struct {
	engine *Engine
	in     *ring.MPSC[Command]
	out    *ring.Fanout[Event]
	outlet Outlet
	idle   *ring.Idler // waits for commands
	wait   *ring.Idler // waits for room
	cpu    int

	stopping atomic.Bool // writer: Stop
	applied  ring.Sequence
	stalls   ring.Sequence
}

// loop decides until it is asked to stop and nothing is left to decide.
func (s *Stage) loop() {
	for {
		lo, hi := s.in.Ready(maxBatch)
		if lo == hi {
			if s.stopping.Load() && s.in.Empty() {
				return
			}
			s.idle.Idle(s.in)
			continue
		}
		s.idle.Reset()
		for slot := lo; slot < hi; {
			batch := s.batch(slot, hi)
			s.engine.ApplyBatch(batch, &s.outlet)
			slot += int64(len(batch))
		}
		s.publish()
		s.in.Release(hi)
	}
}

// batch is the slots from lo on, up to hi or to the end of the ring's memory.
func (s *Stage) batch(lo, hi int64) []Command {
	capacity := int64(s.in.Cap())
	n := min(hi-lo, capacity-lo&(capacity-1))
	return unsafe.Slice(s.in.At(lo), int(n))
}

// publish makes the events written so far visible. What they say is applied
// before anybody can see it, so that Applied is never behind what a view shows.
func (s *Stage) publish() {
	s.applied.Release(int64(s.engine.applied))
	s.out.PublishTo(s.outlet.Next)
}

// more makes room in the output ring. It publishes first, so that the recorder
// can take what is there: a command may have more events than the ring has slots.
func (s *Stage) more(o *Outlet) {
	if o.Limit = s.out.Limit(); o.Limit > o.Next {
		return
	}
	s.publish()
	if o.Limit = s.out.Limit(); o.Limit > o.Next {
		return
	}
	s.stalls.Release(s.stalls.Load() + 1)
	s.wait.Reset()
	for o.Limit <= o.Next {
		s.wait.Idle((*room)(s))
		o.Limit = s.out.Limit()
	}
}

// room is the output ring as something to wait for.
type room Stage

// Empty reports that there is no room yet.
func (r *room) Empty() bool { return r.out.Limit() <= r.outlet.Next }
