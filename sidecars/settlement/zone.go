package settlement

import (
	"math"
	"time"

	"posttrade/sidecars/store"
)

const dayMillis = 24 * 60 * 60 * 1000

// A zone turns moments into local dates without a time.Time: it stores every change of the offset
// from UTC between 1970 and the end of its tables.
//
// Invariants: spans is in ascending order of from, and no moment is in its last one; spanAt[i] is
// the span in force when day i in UTC begins.
type zone struct {
	spans      []span
	spanAt     []uint16
	lastMillis int64 // the last moment of the tables
}

// A span is a time during which the zone's offset stays the same.
type span struct {
	fromMillis   int64
	offsetMillis int64 // local = UTC + offset
}

// newZone reads the zone where up to the end of last in UTC, less a day, so that the local date
// there is not after last in any zone.
//
// Two spans that follow one another differ in their offset; a change of the zone's name alone makes
// none.
func newZone(where *time.Location, last store.Date) zone {
	z := zone{lastMillis: int64(last)*dayMillis - 1}
	for t := time.UnixMilli(0).In(where); !t.IsZero() &&
		t.UnixMilli() <= z.lastMillis; t = nextBound(t) {
		_, seconds := t.Zone()
		offset := int64(seconds) * 1000
		if n := len(z.spans); n == 0 || z.spans[n-1].offsetMillis != offset {
			z.spans = append(z.spans, span{t.UnixMilli(), offset})
		}
	}
	z.spans = append(z.spans, span{fromMillis: math.MaxInt64})
	z.spanAt = make([]uint16, last)
	at := 0
	for day := range z.spanAt {
		for z.spans[at+1].fromMillis <= int64(day)*dayMillis {
			at++
		}
		z.spanAt[day] = uint16(at)
	}
	return z
}

// nextBound returns a later time up to which the offset at t holds, or zero when it holds for ever.
// Where a zone follows a rule, ZoneBounds counts 365 days for every year: on the last day of a leap
// year it returns a time that is not later. The offset then holds until that day is over.
func nextBound(t time.Time) time.Time {
	_, end := t.ZoneBounds()
	if end.IsZero() || end.After(t) {
		return end
	}
	return t.Truncate(dayMillis * time.Millisecond).Add(dayMillis * time.Millisecond)
}

// date returns the local date of a moment, limited to the tables. It reads two arrays and allocates
// nothing.
func (z *zone) date(millis int64) store.Date {
	millis = min(max(millis, 0), z.lastMillis)
	at := int(z.spanAt[millis/dayMillis])
	for z.spans[at+1].fromMillis <= millis {
		at++
	}
	local := millis + z.spans[at].offsetMillis
	// rounds down: west of Greenwich 1970 begins in 1969
	return store.Date((local+dayMillis)/dayMillis - 1)
}
