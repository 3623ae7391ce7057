//perf:hot

package session

import (
	"posttrade/matcher"
	"posttrade/ring"
)

// tap takes events from the recorder to the feeder without ever holding the recorder
// up: a ring whose writer is also its gate. A feeder that is more than half of it
// behind has lost something, and knows how much.
type tap struct {
	region *ring.Region
	events *ring.Fanout[matcher.Event]
	next   int64 // writer: the recorder
	limit  int64 // writer: the recorder
}

// put copies an event in and shows it. Recorder only.
func (t *tap) put(ev *matcher.Event) {
	if t.next == t.limit {
		t.reopen()
	}
	*t.events.At(t.next) = *ev
	t.next++
	t.events.PublishTo(t.next)
}

// reopen gives the slots back to itself, once in half a lap.
func (t *tap) reopen() {
	_, hi := t.events.Ready(t.events.Cap())
	t.events.Release(hi)
	t.limit = t.events.Limit()
}
