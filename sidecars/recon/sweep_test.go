package recon

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"posttrade/sidecars/store"
)

func TestNothingToCompare(t *testing.T) {
	each(t, 100, 1, func(t *testing.T, g *rig) {
		g.want(tallies{})
		if s, err := g.Status(context.Background()); err != nil || s != (Status{}) {
			t.Errorf("status %+v, %v before the first sweep", s, err)
		}
		g.sweep()
		g.must(g.VerifyStep(context.Background()))
		if s, _ := g.Status(context.Background()); s != (Status{LastSweepMillis: g.millis}) {
			t.Errorf("status %+v after an empty sweep", s)
		}
		if generation := g.books().generation; generation != 0 {
			t.Errorf("%d transactions where nothing was found", generation)
		}
	})
}

func TestProjectedEntriesMatchAtOnce(t *testing.T) {
	each(t, 1000, 2, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 100)
		g.project(1, 100)
		g.want(tallies{lag: 100})
		g.sweep()
		g.want(tallies{cursor: 100, matched: 100})
		g.journal.add(g.rng, 33)
		g.project(101, 133)
		g.sweep()
		g.want(tallies{cursor: 133, matched: 133})
		if g.journal.read != 0 {
			t.Errorf("%d fills read from the journal, the blotter had them", g.journal.read)
		}
		if m := g.Metrics(); m != (Metrics{MatchedTotal: 133}) {
			t.Errorf("metrics %+v", m)
		}
		generation := g.books().generation
		g.sweep()
		g.verifyAll()
		g.want(tallies{cursor: 133, matched: 133})
		if m := g.Metrics(); m != (Metrics{MatchedTotal: 133}) {
			t.Errorf("metrics %+v after comparing everything again", m)
		}
		if b := g.books(); b.generation > generation+133/smallBounds.page+1 {
			t.Errorf("%d transactions to find nothing", b.generation-generation)
		}
	})
}

// An entry is pending for the grace, then missing, then matched; the others do not wait for it.
func TestMissingEntryCountsAfterItsGraceAndHeals(t *testing.T) {
	each(t, 1000, 3, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 50)
		g.project(1, 19)
		g.project(21, 50)
		start := g.millis
		g.sweep()
		g.want(tallies{cursor: 49, matched: 49, lag: 1})
		g.pass(DefaultGrace - time.Millisecond)
		g.restart()
		g.sweep()
		g.want(tallies{cursor: 49, matched: 49, lag: 1})
		if all := g.breaks(""); all != nil {
			t.Fatalf("%d breaks within the grace", len(all))
		}
		g.pass(time.Millisecond)
		g.sweep()
		g.want(tallies{cursor: 50, matched: 49, missing: 1})
		all := g.breaks("")
		want, _ := g.full()
		sameBreaks(t, all, want)
		if all[0].FirstSeenMillis != start || all[0].LastSeenMillis != g.millis {
			t.Errorf("seen from %d to %d, want %d to %d", all[0].FirstSeenMillis, all[0].LastSeenMillis,
				start, g.millis)
		}
		if m := g.Metrics(); m != (Metrics{MissingInProjectionTotal: 1, OpenBreaks: 1}) {
			t.Errorf("metrics %+v", m)
		}
		g.project(20, 20)
		g.sweep()
		g.want(tallies{cursor: 50, matched: 50})
		if m := g.Metrics(); m != (Metrics{MatchedTotal: 1, MissingInProjectionTotal: 1}) {
			t.Errorf("metrics %+v after healing", m)
		}
	})
}

func TestWithoutGraceAbsenceCountsAtOnce(t *testing.T) {
	each(t, 1000, 4, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 9)
		g.sweep()
		g.want(tallies{cursor: 9, missing: 9})
	})
	if r := New(Options{Grace: -1}); r.o.Grace != 0 {
		t.Errorf("grace %v, want none", r.o.Grace)
	}
}

func TestMismatchNamesItsFieldsAndHeals(t *testing.T) {
	each(t, 1000, 5, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 40)
		g.project(1, 40)
		g.edit(
			"update trades set price = price + 1, side = case side when 'Buy' then 'Sell' else 'Buy' end " +
				"where trade_seq = 11")
		start := g.millis
		g.sweep()
		g.want(tallies{cursor: 40, matched: 39, mismatch: 1})
		want, _ := g.full()
		sameBreaks(t, g.breaks(FieldMismatch), want)

		g.pass(time.Second)
		// another field of the same row
		g.edit("update trades set quantity = quantity + 5 where trade_seq = 11")
		g.sweep()
		g.want(tallies{cursor: 40, matched: 39, mismatch: 1})
		want, _ = g.full()
		got := g.breaks(FieldMismatch)
		sameBreaks(t, got, want)
		if got[0].FirstSeenMillis != start || got[0].LastSeenMillis != g.millis {
			t.Errorf("seen from %d to %d, want %d to %d", got[0].FirstSeenMillis, got[0].LastSeenMillis,
				start, g.millis)
		}
		// a mismatch becomes missing: it had a row, no grace
		g.edit("delete from trades where trade_seq = 11")
		g.sweep()
		g.want(tallies{cursor: 40, matched: 39, missing: 1})
		g.project(11, 11)
		g.sweep()
		g.want(tallies{cursor: 40, matched: 40})
		if m := g.Metrics(); m != (Metrics{MatchedTotal: 40, MissingInProjectionTotal: 1,
			FieldMismatchTotal: 1}) {
			t.Errorf("metrics %+v", m)
		}
	})
}

// A backlog larger than the blotter is compared with the fills of the journal.
func TestBacklogLargerThanTheBlotter(t *testing.T) {
	for _, kept := range []int{0, 1, 30} {
		each(t, kept, 6, func(t *testing.T, g *rig) {
			g.journal.add(g.rng, 200)
			g.project(1, 200)
			g.edit("update trades set account_id = account_id + 1 where trade_seq in (3, 150, 170, 200)")
			g.sweep()
			g.want(tallies{cursor: 200, matched: 196, mismatch: 4})
			want, _ := g.full()
			sameBreaks(t, g.breaks(""), want)
		})
	}
}

func TestEntriesThatAreNotDurableAreNotCompared(t *testing.T) {
	each(t, 100, 7, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 30)
		g.project(1, 20)
		g.journal.durable = 20
		g.sweep()
		g.want(tallies{cursor: 20, matched: 20})
		if b := g.books(); b.swept != 20 || b.pending != 0 {
			t.Errorf("swept to %d with %d pending, durable are 20", b.swept, b.pending)
		}
		g.journal.durable = 30
		g.project(21, 30)
		g.sweep()
		g.want(tallies{cursor: 30, matched: 30})
	})
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

func TestVerificationFindsLaterEdits(t *testing.T) {
	each(t, 10, 10, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 60)
		g.project(1, 60)
		g.sweep()
		g.edit("delete from trades where trade_seq in (1, 30, 31)")
		g.edit("update trades set security = 'OTHER' where trade_seq = 60")
		g.edit("update trades set id = 'trd-0' where trade_seq = 45")
		g.sweep() // nothing is new and nothing is open
		g.want(tallies{cursor: 60, matched: 60})
		g.must(g.VerifyStep(context.Background()))
		g.want(tallies{cursor: 60, matched: 59, missing: 1})
		g.restart()
		g.verifyAll()
		g.want(tallies{cursor: 60, matched: 55, missing: 4, mismatch: 1})
		want, _ := g.full()
		sameBreaks(t, g.breaks(""), want[:5]) // the sixth is the orphan: not for this walk
		g.edit("update trades set security = 'T1' where trade_seq = 60")
		g.edit("delete from trades")
		g.project(1, 60)
		g.sweep()
		g.want(tallies{cursor: 60, matched: 60})
	})
}

// A journal that lost a suffix issues the same trade sequences again.
func TestShorterJournalIsForgottenBehindItsHead(t *testing.T) {
	each(t, 1000, 11, func(t *testing.T, g *rig) {
		g.o.Grace = 0
		g.journal.add(g.rng, 100)
		g.project(1, 100)
		g.edit("delete from trades where trade_seq between 60 and 80")
		g.edit("update trades set price = price + 1 where trade_seq in (10, 90)")
		g.sweep()
		g.want(tallies{cursor: 100, matched: 77, missing: 21, mismatch: 2})
		g.must(g.VerifyStep(context.Background()))
		g.journal.fills, g.journal.durable = g.journal.fills[:70], 70
		g.sweep()
		g.want(tallies{cursor: 70, matched: 58, missing: 11, mismatch: 1})
		g.journal.add(g.rng, 30)
		g.sweep()
		g.verifyAll()
		want, matched := g.full()
		sameBreaks(t, g.breaks(""), want)
		g.want(tallies{cursor: 100, matched: matched, missing: 21, mismatch: 100 - 21 - matched})
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
