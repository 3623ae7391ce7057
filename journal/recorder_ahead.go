//perf:hot

package journal

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// Ahead is an Observer that can fetch the memory an event to come will be observed with.
// Nearly all of the time that recording a flow takes is waiting for such memory: the events
// lie in another core's cache, the rows that they are about in none. Asked for early, many
// lines come at a time.
//
// Both calls change nothing and wait for nothing. AheadOf comes first: it fetches what the
// event's own fields lead to; CloseTo what that leads to in turn. Called by the recorder.
type Ahead interface {
	AheadOf(ev *matcher.Event)
	CloseTo(ev *matcher.Event)
}

// How many events before its own an event is fetched, its fields are followed, and what
// they led to is followed. A round that is shorter is over before it would have helped.
const (
	eventAhead  = 64
	fieldsAhead = 32
	rowsAhead   = 16
)

// lookAhead fetches what the events behind the one at pos will need, up to seen.
func (r *Recorder) lookAhead(pos, seen int64) {
	if pos+rowsAhead >= seen {
		return
	}
	near := r.out.At(pos + rowsAhead)
	for _, a := range r.ahead {
		a.CloseTo(near)
	}
	if pos+fieldsAhead >= seen {
		return
	}
	far := r.out.At(pos + fieldsAhead)
	for _, a := range r.ahead {
		a.AheadOf(far)
	}
	if pos+eventAhead < seen {
		ev := unsafe.Pointer(r.out.At(pos + eventAhead))
		ring.Prefetch(ev, unsafe.Add(ev, matcher.EventBytes/2), nil, nil)
	}
}
