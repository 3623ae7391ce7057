package ring

import "time"

// Breather has work on a thread of a low priority let others go first, in the middle of it.
//
// Who gives its core away to such a thread, or wakes up behind it, has the core back when that
// thread breathes, or else at the scheduler's next tick, which is milliseconds later. So polite
// work breathes after every piece of some ten microseconds.
//
// The scheduler takes a yield as giving up the share that is due: among threads that never rest,
// one that yields all the time gets next to nothing. After every breath the work therefore goes on
// without one for a part of the time that the breath has taken. Beside a thread on each of two
// cores that never rests, work of nice 10 gets 17 % of a core when it does not breathe, 0.3 when it
// yields every ten microseconds, and 11 like this; work of nice 19 gets 1.4, 0.2 and 1.4.
//
// The zero Breather never lets anybody go first. It belongs to one goroutine.
type Breather struct {
	polite  bool
	until   time.Time // no breath before
	steps   int
	points  int
	breaths int
}

const (
	holdPart = 8                    // of what the breath took
	holdMost = 4 * time.Millisecond // about a tick
)

// NewBreather is for work on the calling thread. On one of the usual priority it does nothing.
func NewBreather() Breather { return Breather{polite: Niceness() > 0} }

// Breathe gives the core to a thread that waits for it.
func (b *Breather) Breathe() {
	if !b.polite {
		return
	}
	b.points++
	begun := time.Now()
	if begun.Before(b.until) {
		return
	}
	b.breaths++
	YieldThread()
	b.hold(begun, time.Now())
}

// Step is Breathe at every so many steps.
func (b *Breather) Step(every int) {
	if b.steps++; b.steps >= every {
		b.steps = 0
		b.Breathe()
	}
}

// hold is what follows a breath.
func (b *Breather) hold(begun, ended time.Time) {
	b.until = ended.Add(min(ended.Sub(begun)/holdPart, holdMost))
}

// Points is how often polite work came to where it may let others go first.
func (b *Breather) Points() int { return b.points }

// Breaths is how often it did.
func (b *Breather) Breaths() int { return b.breaths }
