//perf:hot

package journal

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// Ahead is an Observer that can prefetch the memory which it needs to observe a later event. Nearly
// all of the time that recording takes is waiting for such memory: the events lie in another core's
// cache, and the rows that they refer to are in no cache. When requested early, many lines are
// loaded at the same time.
//
// Both calls change nothing and wait for nothing. AheadOf comes first: it fetches the memory that
// the event's own fields refer to. CloseTo fetches the memory which that refers to in turn. Called
// by the recorder.
type Ahead interface {
	AheadOf(ev *matcher.Event)
	CloseTo(ev *matcher.Event)
}

// How many events ahead of its turn an event is fetched, its fields are followed, and the memory
// that they refer to is followed. A shorter round ends before a prefetch would have helped.
const (
	eventAhead  = 64
	fieldsAhead = 32
	rowsAhead   = 16
)

// lookAhead fetches what the events behind pos will need, up to seen.
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
