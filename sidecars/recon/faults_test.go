package recon

import (
	"context"
	"errors"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// While another session holds the write lock nothing is written, counted or lost.
func TestLockedDatabaseLosesNothing(t *testing.T) {
	for _, dialect := range storetest.Dialects(t) {
		t.Run(dialect.String(), func(t *testing.T) {
			o := storetest.Options(t, dialect)
			o.BusyTimeout = 50 * time.Millisecond
			g := newRig(t, storetest.OpenWith(t, o), 1000, 50)
			g.journal.add(g.rng, 100)
			g.project(1, 90)
			g.edit("update trades set price = 1 where trade_seq = 5")
			g.insert(stray("x", 500))
			unlock := storetest.Lock(t, g.db)
			for range 3 {
				if err := g.Sweep(context.Background()); err == nil {
					t.Error("a sweep succeeded while the database was locked")
				} else if dialect == store.SQLite && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%v, want ErrUnavailable", err)
				}
				if _, err := g.OrphanSweep(context.Background()); err == nil {
					t.Error("an orphan sweep succeeded while the database was locked")
				}
			}
			if m := g.Metrics(); m != (Metrics{Lag: 100}) {
				t.Errorf("metrics %+v while locked", m)
			}
			unlock()
			g.want(tallies{lag: 100})
			g.sweep()
			g.sweepOrphans()
			g.want(tallies{cursor: 90, matched: 89, mismatch: 1, orphans: 1, lag: 10})
			want := Metrics{MatchedTotal: 89, FieldMismatchTotal: 1, OrphanTotal: 1, Lag: 10, OpenBreaks: 2}
			if m := g.Metrics(); m != want {
				t.Errorf("metrics %+v, want %+v", m, want)
			}
		})
	}
}

// A network that is cut repeatedly in the middle of a chunk: every walk is tried until it succeeds,
// and in the end nothing is missing or counted twice.
func TestCutConnectionsLoseNothing(t *testing.T) {
	for _, dialect := range storetest.Dialects(t) {
		if dialect == store.SQLite {
			continue
		}
		t.Run(dialect.String(), func(t *testing.T) {
			db, network := storetest.Cut(t)
			g := newRig(t, db, 1000, 51)
			g.journal.add(g.rng, 400)
			g.project(1, 400)
			g.edit("update trades set price = 1 where trade_seq in (5, 301)")
			g.edit("delete from trades where trade_seq % 50 = 0")
			g.insert(stray("x", 500))
			pages := 0
			g.entries.blotter = hooked{g.journal, func() {
				if pages++; g.rng.IntN(8) == 0 { // in the middle of a chunk
					network.Cut()
					network.Heal()
				}
			}}
			failures := 0
			for pages < 60 || g.books().swept < 400 {
				if err := g.Sweep(context.Background()); err != nil {
					failures++
				}
			}
			g.entries.blotter = g.journal
			if failures == 0 {
				t.Error("no connection ended during a sweep")
			}
			g.o.Grace = 0
			g.sweep()
			g.sweepOrphans()
			g.want(tallies{cursor: 400, matched: 390, missing: 8, mismatch: 2, orphans: 1})
			want, _ := g.full()
			sameBreaks(t, g.breaks(""), want)
		})
	}
}

// hooked is a blotter that calls hook before each read.
type hooked struct {
	*fakeJournal
	hook func()
}

func (h hooked) Page(sinceSeq uint64, limit int, dst []matcher.Fill) (
	[]matcher.Fill, uint64, uint64) {
	h.hook()
	return h.fakeJournal.Page(sinceSeq, limit, dst)
}

// Another process sweeps between this one's snapshot and its transaction. So the data that this one
// has read is stale: it writes nothing of it, and reads again.
func TestStaleFindingsAreGivenUp(t *testing.T) {
	each(t, 1000, 53, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 20)
		g.project(1, 15)
		o := g.o
		o.Grace = -1
		other := New(o)
		times := 0
		g.entries.blotter = hooked{g.journal, func() {
			if times++; times == 1 {
				g.must(other.Sweep(context.Background()))
			}
		}}
		g.sweep()
		g.want(tallies{cursor: 20, matched: 15, missing: 5})
		if m := g.Metrics(); m != (Metrics{OpenBreaks: 5}) {
			t.Errorf("metrics %+v: the other one made the transitions", m)
		}
		g.edit("update trades set price = price + 1 where trade_seq = 3")
		g.entries.journal = hookedJournal{g.journal, func() {
			if times++; times < 100 { // the books never stay unchanged
				g.must(other.VerifyStep(context.Background()))
				g.edit("update trades set price = price + 1 where trade_seq = 3")
			}
		}}
		if err := g.VerifyStep(context.Background()); !errors.Is(err, errMoved) {
			t.Errorf("%v, want that the books moved", err)
		}
		g.entries.journal = g.journal
		g.verifyAll()
		g.want(tallies{cursor: 20, matched: 14, missing: 5, mismatch: 1})
	})
}

type hookedJournal struct {
	*fakeJournal
	hook func()
}

func (h hookedJournal) Fills(from uint64, fn func([]matcher.Fill) error) error {
	h.hook()
	return h.fakeJournal.Fills(from, fn)
}

func TestHolesInTheHistoryAreErrors(t *testing.T) {
	each(t, 0, 52, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 30)
		g.project(1, 30)
		g.journal.fail = errFake
		if err := g.Sweep(context.Background()); !errors.Is(err, errFake) {
			t.Errorf("sweep: %v, want the journal's error", err)
		}
		g.journal.fail = nil
		g.journal.fills[12].TradeSeq = 99
		if err := g.Sweep(context.Background()); !errors.Is(err, errHole) {
			t.Errorf("sweep: %v, want a hole", err)
		}
		g.journal.fills[12].TradeSeq = 13
		good := g.journal.fills
		g.journal.fills = good[:20]
		g.journal.durable = 20
		g.o.Journal = longHead{g.journal}
		if err := g.Sweep(context.Background()); !errors.Is(err, errHole) {
			t.Errorf("sweep: %v, want a hole at the end", err)
		}
		g.o.Journal = g.journal
		g.journal.fills, g.journal.durable = good, 30
		g.sweep()
		g.want(tallies{cursor: 30, matched: 30})
		g.journal.fail = errFake
		if err := g.VerifyStep(context.Background()); !errors.Is(err, errFake) {
			t.Errorf("verify: %v, want the journal's error", err)
		}
		g.want(tallies{cursor: 30, matched: 30})
	})
}

// longHead reports a head beyond the end of its journal.
type longHead struct{ *fakeJournal }

func (longHead) Head() (inputSeq, tradeSeq uint64) { return 60, 30 }

// A ticker that is not known yet is looked up again.
func TestTickersAreAskedForUntilKnown(t *testing.T) {
	asked := 0
	r := New(Options{Ticker: func(id uint32) string {
		if asked++; asked == 1 {
			return ""
		}
		return tickerOf(id)
	}})
	for _, want := range []string{"", "T7", "T7"} {
		if got := r.ticker(7); got != want {
			t.Errorf("ticker %q, want %q", got, want)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	if got := r.ticker(maxTickers + 1); got != tickerOf(maxTickers+1) || len(r.tickers) > 8 {
		t.Errorf("ticker %q of a far id, %d kept", got, len(r.tickers))
	}
}
