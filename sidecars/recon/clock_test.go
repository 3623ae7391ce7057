package recon

import (
	"testing"
	"time"
)

// A clock that was ahead is set right, before or at a restart: the times that it has written do not
// outlast the first sweep, in Status, in Breaks, and in what a later process reads.
func TestTimesOfAClockThatWasAheadDoNotStay(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		each(t, 1000, 51, func(t *testing.T, g *rig) {
			g.journal.add(g.rng, 20)
			g.project(1, 18)
			g.edit("delete from trades where trade_seq = 3")
			g.edit("update trades set price = price + 1 where trade_seq = 5")
			right := g.millis
			g.pass(time.Hour)
			g.sweep() // 3, 19 and 20 are absent and pending, 5 differs
			g.sweep()
			g.millis = right
			if restarts {
				g.restart()
			}
			g.sweep()
			g.want(tallies{cursor: 17, matched: 16, mismatch: 1, lag: 3})
			g.pass(DefaultGrace - time.Millisecond)
			g.sweep()
			g.want(tallies{cursor: 17, matched: 16, mismatch: 1, lag: 3})
			g.pass(time.Millisecond)
			g.sweep()
			g.want(tallies{cursor: 20, matched: 16, missing: 3, mismatch: 1})
			g.wantTimes(right, g.millis)

			// The books keep the times of the sweep before the last one that wrote.
			g.edit("delete from trades where trade_seq = 7")
			last := g.millis
			g.pass(time.Second)
			g.verifyAll()
			g.restart()
			if s, err := g.Status(t.Context()); err != nil || s.LastSweepMillis != last {
				t.Errorf("a later process: last sweep at %d, want %d; %v", s.LastSweepMillis, last, err)
			}
		})
	}
}

// The same where the sweeps after it find nothing to write, so that the books keep its times.
func TestTimesInTheBooksYieldToThoseOfTheProcess(t *testing.T) {
	for _, restarts := range []bool{false, true} {
		each(t, 1000, 52, func(t *testing.T, g *rig) {
			g.journal.add(g.rng, 20)
			g.project(1, 20)
			g.edit("update trades set price = price + 1 where trade_seq = 5")
			g.sweep()
			first := g.millis
			g.pass(time.Hour)
			g.sweep()
			g.edit("delete from trades where trade_seq = 7")
			g.verifyAll()
			g.project(7, 7)
			g.sweep()
			g.millis = first + 1000
			if restarts {
				g.restart()
			}
			before := g.books()
			g.sweep()
			if after := g.books(); after != before || after.recheckedMillis <= g.millis ||
				after.sweptMillis <= g.millis {
				t.Errorf("the books are %+v, they were %+v", after, before)
			}
			g.wantTimes(first, g.millis)
		})
	}
}

// wantTimes checks the times of the last sweep and of every break.
func (g *rig) wantTimes(first, last int64) {
	g.t.Helper()
	s, err := g.Status(g.t.Context())
	g.must(err)
	if s.LastSweepMillis != last {
		g.t.Errorf("last sweep at %d, want %d", s.LastSweepMillis, last)
	}
	for _, b := range g.breaks("") {
		if b.FirstSeenMillis != first || b.LastSeenMillis != last {
			g.t.Errorf("%s seen from %d to %d, want %d to %d", b.TradeID, b.FirstSeenMillis,
				b.LastSeenMillis, first, last)
		}
	}
}
