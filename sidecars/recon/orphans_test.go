package recon

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"posttrade/sidecars/store"
)

// stray is a row that no fill of the rig's journal gives, unless its id and sequence say so.
func stray(id string, seq uint64) store.Trade {
	return store.Trade{
		ID: id, Seq: seq, AccountID: 1, Security: "T1", Quantity: 1, Price: 1,
		ExecutedAt: 1, BookedAt: 1, UpdatedAt: 1,
	}
}

func TestOrphanSweepOfCleanRows(t *testing.T) {
	each(t, 10, 20, func(t *testing.T, g *rig) {
		if _, found, err := g.LastOrphanSweep(context.Background()); found || err != nil {
			t.Fatalf("a result before the first sweep: %v", err)
		}
		want := SweepResult{SweptMillis: g.millis, OrphanIDs: []string{}}
		if got := g.sweepOrphans(); got.OrphanCount != 0 || got.LocalTradeCount != 0 || got.Truncated {
			t.Errorf("result %+v of nothing", got)
		}
		if got, found, err := g.LastOrphanSweep(context.Background()); !found || err != nil ||
			!reflect.DeepEqual(got, want) {
			t.Errorf("last result %+v %v %v, want %+v", got, found, err, want)
		}
		g.journal.add(g.rng, 50)
		g.project(1, 50)
		g.sweep()
		g.pass(time.Second)
		if at := g.Before(50); at != 99 { // two commands a trade
			t.Errorf("before the command of trade 50 is %d, want 99", at)
		}
		if at := g.Before(51); at != 0 {
			t.Errorf("before a trade that is not there is %d, want 0", at)
		}
		got := g.sweepOrphans()
		if got.LocalTradeCount != 50 || got.FullHistoryTradeCount != 50 || got.OrphanCount != 0 {
			t.Errorf("result %+v of 50 clean rows", got)
		}
		s, err := g.Status(context.Background())
		if g.must(err); s.LastOrphanSweepMillis != g.millis {
			t.Errorf("last orphan sweep at %d, want %d", s.LastOrphanSweepMillis, g.millis)
		}
	})
}

// All ways in which a row can have no fill, and the effect on the entries that should have had
// these rows.
func TestOrphansOfEveryKind(t *testing.T) {
	each(t, 10, 21, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 40)
		g.project(1, 40)
		g.sweep()
		g.insert(stray("trd-900", 900))                                   // beyond the history
		g.insert(stray("hand-made", 901))                                 // not an id of the projection
		g.edit("update trades set id = 'trd-7x' where trade_seq = 7")     // id edited
		g.edit("update trades set trade_seq = 1000 where id = 'trd-8'")   // sequence edited
		g.edit("update trades set id = 'trd-09' where trade_seq = 9")     // leading zero
		g.edit("update trades set trade_seq = 5000 where trade_seq = 20") // two rows exchanged
		g.edit("update trades set trade_seq = 20 where trade_seq = 21")
		g.edit("update trades set trade_seq = 21 where trade_seq = 5000")
		g.edit("update trades set price = 1, quantity = 2 where trade_seq = 30")
		result := g.sweepOrphans()
		want, matched := g.full()
		sameBreaks(t, g.breaks(""), want)
		g.want(tallies{cursor: 40, matched: matched, missing: 5, mismatch: 1, orphans: 7})
		ids := []string{"hand-made", "trd-09", "trd-20", "trd-21", "trd-7x", "trd-8", "trd-900"}
		if !slices.Equal(result.OrphanIDs, ids) || result.OrphanCount != 7 || result.Truncated {
			t.Errorf("result %+v, want the ids %v", result, ids)
		}
		if result.LocalTradeCount != 42 || result.FullHistoryTradeCount != 40 {
			t.Errorf("%d local rows and %d fills", result.LocalTradeCount, result.FullHistoryTradeCount)
		}
		g.restart()
		last, found, err := g.LastOrphanSweep(context.Background())
		if !found || err != nil || !reflect.DeepEqual(last, result) {
			t.Errorf("last result %+v, want %+v (%v)", last, result, err)
		}
		if m := g.Metrics(); m.OrphanTotal != 0 {
			t.Errorf("%d orphans counted by a new process", m.OrphanTotal)
		}

		first := g.breaks(OrphanInProjection)[0].FirstSeenMillis
		g.pass(time.Minute)
		if again := g.sweepOrphans(); again.OrphanCount != 7 {
			t.Errorf("%d orphans on a second look", again.OrphanCount)
		}
		if b := g.breaks(OrphanInProjection)[0]; b.FirstSeenMillis != first ||
			b.LastSeenMillis != g.millis {
			t.Errorf("seen from %d to %d, want %d to %d", b.FirstSeenMillis, b.LastSeenMillis,
				first, g.millis)
		}
		if m := g.Metrics(); m.OrphanTotal != 0 || m.OpenBreaks != 13 {
			t.Errorf("metrics %+v: none of the orphans is new", m)
		}

		// heal: the re-check closes the orphans, without another orphan sweep
		g.edit("delete from trades")
		g.project(1, 40)
		g.sweep()
		g.want(tallies{cursor: 40, matched: 40})
		if last, _, _ := g.LastOrphanSweep(context.Background()); last.OrphanCount != 7 {
			t.Errorf("the last result became %+v", last)
		}
		if last := g.sweepOrphans(); last.OrphanCount != 0 || last.LocalTradeCount != 40 {
			t.Errorf("result %+v after healing", last)
		}
	})
}

// An orphan that only the next orphan sweep finds gone is closed by that sweep.
func TestOrphanSweepClosesWhatIsGone(t *testing.T) {
	each(t, 10, 22, func(t *testing.T, g *rig) {
		g.insert(stray("a", 1))
		g.insert(stray("b", 2))
		g.sweepOrphans()
		if m := g.Metrics(); m.OrphanTotal != 2 {
			t.Errorf("metrics %+v", m)
		}
		g.edit("delete from trades where id = 'a'")
		g.insert(stray("c", 1))
		if result := g.sweepOrphans(); !slices.Equal(result.OrphanIDs, []string{"b", "c"}) {
			t.Errorf("result %+v", result)
		}
		g.want(tallies{orphans: 2})
		if m := g.Metrics(); m.OrphanTotal != 3 {
			t.Errorf("metrics %+v", m)
		}
	})
}

func TestOrphanIDsAreTheFirstInByteOrder(t *testing.T) {
	each(t, 10, 23, func(t *testing.T, g *rig) {
		g.Recon.bounds = defaultBounds
		var rows []store.Trade
		var ids []string
		for i := range 2100 {
			row := stray(fmt.Sprintf("%c-%d", "Zazé"[i%3], (i*7919)%10007), uint64(i+1))
			rows, ids = append(rows, row), append(ids, row.ID)
		}
		g.must(g.db.Write(context.Background(), func(tx *store.Tx) error {
			_, err := tx.InsertTrades(rows)
			return err
		}))
		slices.Sort(ids)
		result := g.sweepOrphans()
		if result.OrphanCount != 2100 || !result.Truncated ||
			!slices.Equal(result.OrphanIDs, ids[:maxOrphanIDs]) {
			t.Errorf("%d orphans, truncated %v, %d ids", result.OrphanCount, result.Truncated,
				len(result.OrphanIDs))
		}
		g.want(tallies{orphans: 2100})
		if last, _, err := g.LastOrphanSweep(context.Background()); err != nil ||
			!reflect.DeepEqual(last, result) {
			t.Errorf("the stored result differs: %v", err)
		}
	})
}

// Rows that are projected while the sweep runs are newer than the index and have fills.
func TestRowsProjectedDuringTheSweepAreNoOrphans(t *testing.T) {
	each(t, 100, 24, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 20)
		g.project(1, 20)
		g.sweep()
		g.insert(stray("trd-60", 60)) // no fill, now or at the end
		heads := 0
		g.journal.onHead = func() {
			if heads++; heads == 1 { // the walk beyond the index has read its first page
				g.journal.onHead = nil
				g.journal.add(g.rng, 10)
				g.project(21, 30)
			}
		}
		g.journal.reindex = func() { g.journal.reindex = nil }
		g.journal.indexed = 20
		result, err := g.OrphanSweep(context.Background())
		if g.must(err); !slices.Equal(result.OrphanIDs, []string{"trd-60"}) ||
			result.LocalTradeCount != 21 {
			t.Errorf("result %+v", result)
		}

		g.journal.reindex = func() { // after the index was built, before the rows are read
			g.journal.reindex = nil
			g.journal.add(g.rng, 5)
		}
		frozen := g.journal.durable
		g.History(frozen)
		g.project(31, 35)
		result, err = g.OrphanSweep(context.Background())
		if g.must(err); !slices.Equal(result.OrphanIDs, []string{"trd-60"}) ||
			result.FullHistoryTradeCount != frozen {
			t.Errorf("result %+v", result)
		}

		g.journal.add(g.rng, 100) // the history reaches the row that was ahead of it
		g.project(36, 59)
		g.project(61, 135)
		g.sweep()
		g.want(tallies{cursor: 135, matched: 134, mismatch: 1})
		want, _ := g.full()
		sameBreaks(t, g.breaks(""), want)
	})
}

// History makes the rig's index end at last from now on.
func (g *rig) History(last uint64) {
	g.journal.reindex()
	g.o.History = frozenIndex{g.journal, last}
	g.entries.index = g.o.History
}

type frozenIndex struct {
	*fakeJournal
	last uint64
}

func (f frozenIndex) Reindex(context.Context) (HistoryInfo, error) {
	f.indexed = f.last
	return HistoryInfo{IndexedTrades: f.last, LastTradeSeq: f.last}, nil
}

func TestOneOrphanSweepAtATime(t *testing.T) {
	each(t, 100, 25, func(t *testing.T, g *rig) {
		inside, release := make(chan struct{}), make(chan struct{})
		g.journal.reindex = func() { close(inside); <-release }
		done := make(chan error)
		go func() {
			_, err := g.OrphanSweep(context.Background())
			done <- err
		}()
		<-inside
		if _, err := g.OrphanSweep(context.Background()); !errors.Is(err, ErrBusy) {
			t.Errorf("a second sweep: %v, want ErrBusy", err)
		}
		close(release)
		g.must(<-done)
		g.journal.reindex = nil
		g.sweepOrphans()
	})
}

func TestOrphanSweepPassesErrorsOn(t *testing.T) {
	each(t, 0, 26, func(t *testing.T, g *rig) {
		g.journal.add(g.rng, 30)
		g.project(1, 30)
		g.sweep()
		g.insert(stray("x", 31))
		before := g.sweepOrphans()

		g.journal.fail = errFake
		if _, err := g.OrphanSweep(context.Background()); !errors.Is(err, errFake) {
			t.Errorf("%v, want the error of the index", err)
		}
		g.journal.fail = nil
		g.insert(stray("a", 32))
		g.journal.indexGap = 29 // found in the last page, after an orphan was noted or not
		if _, err := g.OrphanSweep(context.Background()); !errors.Is(err, errHole) {
			t.Errorf("%v, want a hole", err)
		}
		if last, _, _ := g.LastOrphanSweep(context.Background()); !reflect.DeepEqual(last, before) {
			t.Errorf("a failed sweep changed the last result: %+v", last)
		}
		g.check()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := g.OrphanSweep(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want canceled", err)
		}
		g.journal.indexGap = 0
		if result := g.sweepOrphans(); !slices.Equal(result.OrphanIDs, []string{"a", "x"}) {
			t.Errorf("result %+v", result)
		}
		g.want(tallies{cursor: 30, matched: 30, orphans: 2})
	})
}
