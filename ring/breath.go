package ring

import "time"

// Breather lets work on a thread of low priority give its core to waiting threads while it runs.
//
// A thread that yields its core to such a thread, or wakes up while the other runs, gets the core
// when the other thread breathes. Without a breath it gets the core at the scheduler's next tick,
// milliseconds later. So work of low priority breathes after every piece of some ten microseconds.
//
// The scheduler treats a yield as giving up the share that is due. Among threads that never sleep,
// a thread that yields all the time gets next to nothing. Therefore, after every breath the work
// continues without another for a part of the time that the breath took. Measured on two cores,
// each with one thread that never sleeps: work of nice 10 gets 17 % of a core when it does not
// breathe, 0.3 % when it yields every ten microseconds, and 11 % with a Breather. Work of nice 19
// gets 1.4 %, 0.2 % and 1.4 %.
//
// The zero Breather never yields. A Breather belongs to one goroutine.
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

// NewBreather returns a Breather for work on the calling thread. On a thread of normal priority the
// Breather does nothing.
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

// hold sets the time before which the next Breathe does not yield.
func (b *Breather) hold(begun, ended time.Time) {
	b.until = ended.Add(min(ended.Sub(begun)/holdPart, holdMost))
}

// Points is how often work of low priority called Breathe.
func (b *Breather) Points() int { return b.points }

// Breaths is how many of those calls yielded.
func (b *Breather) Breaths() int { return b.breaths }
