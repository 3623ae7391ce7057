//perf:hot

package session

import (
	"posttrade/matcher"
	"posttrade/ring"
)

// tap moves events from the recorder to the feeder and never holds up the recorder: it is a ring in
// which the writer is also the gating reader. A feeder that is more than half the ring behind has
// lost events, and knows how many.
type tap struct {
	region *ring.Region
	events *ring.Fanout[matcher.Event]
	next   int64 // writer: the recorder
	limit  int64 // writer: the recorder
}

// put copies an event in and publishes it. Recorder only. It never waits: every half lap it
// releases the slots to itself.
func (t *tap) put(ev *matcher.Event) {
	if t.next == t.limit {
		t.reopen()
	}
	*t.events.At(t.next) = *ev
	t.next++
	t.events.PublishTo(t.next)
}

// reopen releases the slots to the writer itself, once every half lap.
func (t *tap) reopen() {
	_, hi := t.events.Ready(t.events.Cap())
	t.events.Release(hi)
	t.limit = t.events.Limit()
}
