package recon

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"posttrade/sidecars/store"
)

// What is in the blotter is not read from the journal, and looks that find nothing write little.
func TestFindingNothingCostsLittle(t *testing.T) {
	each(t, 1000, 2, func(t *testing.T, g *rig) {
		g.sweep()
		g.verifyAll()
		if generation := g.books().generation; generation != 0 {
			t.Errorf("%d transactions where nothing was found", generation)
		}
		g.journal.add(g.rng, 133)
		g.project(1, 133)
		g.sweep()
		if g.journal.read != 0 {
			t.Errorf("%d fills read from the journal, the blotter had them", g.journal.read)
		}
		generation := g.books().generation
		g.sweep()
		g.verifyAll()
		if b := g.books(); b.generation > generation+133/smallBounds.page+1 {
			t.Errorf("%d transactions to find nothing", b.generation-generation)
		}
	})
}

func TestAGraceIsNotNegative(t *testing.T) {
	if r := New(Options{Grace: -1}); r.o.Grace != 0 {
		t.Errorf("grace %v, want none", r.o.Grace)
	}
}

// A projection that is far behind costs one range, not one range per entry, and no fill is read for
// an entry that has no row.
func TestProjectionFarBehindIsOneRange(t *testing.T) {
	n := size(60_000, 9_000)
	all, third := uint64(n), uint64(n/3)
	each(t, 0, 8, func(t *testing.T, g *rig) {
		g.Recon.bounds = defaultBounds
		g.journal.block = 1000
		g.journal.add(g.rng, n)
		g.sweep()
		g.want(tallies{lag: all})
		g.pass(DefaultGrace)
		g.sweep()
		g.want(tallies{cursor: all, missing: all})
		if ranges := g.count("recon_gaps"); ranges != 1 || g.journal.read != 0 {
			t.Errorf("%d ranges and %d fills read, want one and none", ranges, g.journal.read)
		}
		if b := g.books(); b.generation != 2 {
			t.Errorf("%d transactions, want 2", b.generation)
		}
		for to := third; to <= all; to += third {
			g.project(to-third+1, to)
			g.sweep()
			g.want(tallies{cursor: all, matched: to, missing: all - to})
		}
		if ranges := g.count("recon_gaps"); ranges != 0 {
			t.Errorf("%d ranges after everything has arrived", ranges)
		}
		if m := g.Metrics(); m != (Metrics{MatchedTotal: all, MissingInProjectionTotal: all}) {
			t.Errorf("metrics %+v", m)
		}
	})
}

func (g *rig) count(table string) (n int64) {
	g.t.Helper()
	g.must(g.db.Read(context.Background(), func(tx *store.Tx) error {
		return tx.Query("select count(*) from "+table,
			func(r *store.Row) error { n = r.Int64(0); return nil })
	}))
	return n
}

// More entries are open than one sweep may check: the next sweep continues, and none is left out.
func TestRecheckContinuesWhereItStopped(t *testing.T) {
	each(t, 1000, 9, func(t *testing.T, g *rig) {
		g.Recon.bounds.rechecks, g.Recon.bounds.near = 5, 1
		g.journal.add(g.rng, 120)
		g.project(1, 120)
		g.edit("delete from trades where trade_seq % 4 = 0")
		g.edit("update trades set price = price + 1 where trade_seq % 4 = 2")
		g.o.Grace = 0
		g.sweep()
		g.want(tallies{cursor: 120, matched: 60, missing: 30, mismatch: 30})
		first := g.millis
		g.edit("delete from trades")
		g.project(1, 120) // all healed, five of sixty a sweep
		for sweeps := uint64(1); sweeps <= 12; sweeps++ {
			g.pass(time.Second)
			g.sweep()
			if got := g.tallies(); got.missing+got.mismatch != 60-5*sweeps || got.cursor != 120 {
				t.Fatalf("tallies %+v after %d sweeps", got, sweeps)
			}
			g.check()
			if sweeps == 11 {
				if b := g.breaks("")[0]; b.LastSeenMillis != first {
					t.Errorf("last seen at %d before the round has ended, want %d", b.LastSeenMillis, first)
				}
			}
		}
		g.want(tallies{cursor: 120, matched: 120})
	})
}

// A list of gaps that was cut off delays the mismatches after its end; otherwise the gaps in
// between would be skipped.
func TestOpenEntriesAreListedInOrder(t *testing.T) {
	each(t, 1000, 13, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 200)
		g.project(1, 200)
		g.edit("delete from trades where trade_seq in (1, 3, 5, 7, 9, 150, 151)")
		g.edit("update trades set price = price + 1 where trade_seq in (4, 100)")
		g.sweep()
		for _, tt := range []struct {
			after uint64
			limit int
			near  uint64
			want  []span
			last  bool
		}{
			{0, 3, 10, []span{{1, 5}}, false},
			{0, 100, 10, []span{{1, 9}, {100, 100}, {150, 151}}, true},
			{0, 100, 1, []span{{1, 1}, {3, 5}, {7, 7}, {9, 9}, {100, 100}, {150, 151}}, true},
			{5, 2, 1, []span{{7, 7}, {9, 9}}, false},
			{9, 3, 1, []span{{100, 100}, {150, 151}}, true},
			{150, 3, 1, []span{{151, 151}}, true}, // the rest of a gap
			{151, 3, 1, nil, true},
		} {
			var got []span
			var last bool
			g.must(g.db.Read(context.Background(), func(tx *store.Tx) (err error) {
				got, last, err = nextOpen(tx, tt.after, tt.limit, tt.near)
				return err
			}))
			if !slices.Equal(got, tt.want) || last != tt.last {
				t.Errorf("after %d, limit %d, near %d: %v last %v, want %v %v",
					tt.after, tt.limit, tt.near, got, last, tt.want, tt.last)
			}
		}
	})
}

func TestTwoReconsDoNotCountTwice(t *testing.T) {
	each(t, 1000, 12, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 300)
		g.project(1, 290)
		errs := make(chan error)
		for range 4 {
			other := New(g.o)
			other.bounds = smallBounds
			go func() {
				var err error
				for range 5 {
					for {
						if err = other.Sweep(context.Background()); !errors.Is(err, errMoved) &&
							!errors.Is(err, store.ErrUnavailable) {
							break
						}
					}
				}
				errs <- err
			}()
		}
		for range 4 {
			g.must(<-errs)
		}
		g.want(tallies{cursor: 290, matched: 290, lag: 10})
	})
}
