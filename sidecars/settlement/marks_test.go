package settlement

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

var errCut = errors.New("connection was cut")

// undo runs fn in a transaction that does not commit.
func undo(ctx context.Context, db *store.DB, fn func(*store.Tx) error) error {
	return db.Write(ctx, func(tx *store.Tx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return errCut
	})
}

// lose runs fn in a transaction that commits without an answer.
func lose(ctx context.Context, db *store.DB, fn func(*store.Tx) error) error {
	if err := db.Write(ctx, fn); err != nil {
		return err
	}
	return errCut
}

func settledRows(t *testing.T, db *store.DB) (n uint64) {
	t.Helper()
	for _, row := range rows(t, db) {
		if row.Status == store.Settled {
			n++
		}
	}
	return n
}

// cursorNames lists the cursors table.
func cursorNames(t *testing.T, db *store.DB) (names []string) {
	t.Helper()
	err := db.Read(bounded(t), func(tx *store.Tx) error {
		return tx.Query("select name from cursors order by name", func(r *store.Row) error {
			names = append(names, r.Text(0))
			return nil
		})
	})
	must.OK(t, err)
	return names
}

func TestLostAnswersAreCountedOnce(t *testing.T) {
	n := size(1_000, 200)
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		const seed = 5
		random := rand.New(rand.NewPCG(seed, 1_000))
		trades := make([]store.Trade, n)
		for i := range trades {
			trades[i] = aTrade(uint64(i+1), mustDate(t, "2026-03-06"))
		}
		insert(t, db, trades...)
		witness(t, db)
		s := newTest(t, db, newClock(noon("2026-03-06")), 7)
		how := [4]int{}
		s.write = func(ctx context.Context, fn func(*store.Tx) error) error {
			draw := random.IntN(len(how))
			how[draw]++
			switch draw {
			case 0:
				return lose(ctx, db, fn)
			case 1:
				return undo(ctx, db, fn)
			case 2: // the database calls the function again, as after a serialization failure
				if err := undo(ctx, db, fn); !errors.Is(err, errCut) {
					return err
				}
			}
			return db.Write(ctx, fn)
		}
		for range n { // sweeps; far fewer are needed
			before := settledRows(t, db)
			_, err := s.Sweep(bounded(t))
			if err != nil && !errors.Is(err, errCut) {
				t.Fatal(err)
			}
			if after := settledRows(t, db); s.Metrics().Swept > after || s.Metrics().Swept < before {
				t.Fatalf("seed %d: counted %d, settled %d before and %d after", seed, s.Metrics().Swept, before,
					after)
			}
			if s.Metrics().Swept == uint64(n) {
				break
			}
		}
		expectOneTransitionEach(t, db, n)
		if got := s.Metrics().Swept; got != uint64(n) {
			t.Errorf("seed %d: counted %d of %d", seed, got, n)
		}
		s.write = db.Write
		mustSweep(t, s, 0)
		if left := cursorNames(t, db); len(left) > 1+maxLost {
			t.Errorf("marks are left: %v", left)
		}
		t.Logf("transactions: %d with the answer lost, %d undone, %d run twice, %d plain", how[0], how[1],
			how[2], how[3])
	})
}

// Two lost answers in a row, one of a batch that did commit and one that did not,
// and a restart of the database between.
func TestLostAnswerIsFoundAfterOneThatWasUndone(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		for seq := range uint64(5) {
			insert(t, db, aTrade(seq+1, mustDate(t, "2026-03-06")))
		}
		c := newClock(noon("2026-03-06"))
		s := newTest(t, db, c, 2)
		steps := []struct {
			write        func(context.Context, *store.DB, func(*store.Tx) error) error
			swept, marks int
		}{{lose, 0, 1}, {undo, 2, 1}, {lose, 2, 1}, {undo, 4, 1}, {undo, 4, 1}}
		for i, step := range steps {
			s.write = func(ctx context.Context, fn func(*store.Tx) error) error {
				return step.write(ctx, db, fn)
			}
			if n, err := s.Sweep(bounded(t)); n != 0 || !errors.Is(err, errCut) {
				t.Fatalf("step %d: %d, %v", i, n, err)
			}
			if s.Metrics().Swept != uint64(step.swept) || len(cursorNames(t, db)) != step.marks {
				t.Errorf("step %d: counted %d, marks %v; want %d, %d of them",
					i, s.Metrics().Swept, cursorNames(t, db), step.swept, step.marks)
			}
		}
		s.write = db.Write
		mustSweep(t, s, 1)
		if got, want := s.Metrics(), (Metrics{Swept: 5, Failures: 5,
			LastSweepMillis: c.Now().UnixMilli()}); got != want {
			t.Errorf("metrics %+v, want %+v", got, want)
		}
	})
}

func TestUnansweredCommitsThatAreLookedForAreBounded(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	insert(t, db, aTrade(1, mustDate(t, "2026-03-06")))
	s := newTest(t, db, newClock(noon("2026-03-06")), 0)
	s.write = func(ctx context.Context, fn func(*store.Tx) error) error { return undo(ctx, db, fn) }
	for range 3 * maxLost {
		if _, err := s.Sweep(bounded(t)); !errors.Is(err, errCut) {
			t.Fatal(err)
		}
	}
	if len(s.marks.lost) != maxLost {
		t.Errorf("%d unanswered commits are looked for, want %d", len(s.marks.lost), maxLost)
	}
	s.write = db.Write
	mustSweep(t, s, 1)
	if s.Metrics().Swept != 1 || len(s.marks.spent) != 0 {
		t.Errorf("counted %d, want 1; %d marks still to delete", s.Metrics().Swept, len(s.marks.spent))
	}
}

// Marks of processes that ended long ago are deleted; those of other processes and the cursors of
// other packages stay.
func TestOldMarksAreDeleted(t *testing.T) {
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		c := newClock(noon("2026-03-06"))
		now := c.Now().UnixMilli()
		for name, value := range map[string]int64{"settlement/OLD/0": now - 8*dayMillis,
			"settlement/RECENT/0": now - 6*dayMillis, "projection": 5, "settlement": 5} {
			storetest.Edit(t, db, "insert into cursors (name, value) values ($1, $2)", name, value)
		}
		for seq := range uint64(30) {
			insert(t, db, aTrade(seq+1, mustDate(t, "2026-03-06")))
		}
		s := newTest(t, db, c, 10)
		mustSweep(t, s, 30)
		want := []string{"projection", "settlement", s.marks.name(), "settlement/RECENT/0"}
		slices.Sort(want)
		got := cursorNames(t, db)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("cursors %v, want %v", got, want)
		}
		if name := s.marks.name(); !strings.HasPrefix(name, markPrefix) ||
			name == newTest(t, db, c, 10).marks.name() {
			t.Errorf("mark %q is not of one process", name)
		}
	})
}

// A real connection that is cut repeatedly during a sweep: at the beginning of a transaction, at
// its end, or at any moment of its commit.
func TestCountsHoldWhenTheNetworkIsCut(t *testing.T) {
	if !slices.Contains(storetest.Dialects(t), store.Postgres) {
		return // SQLite has no network
	}
	n := size(4_000, 800)
	db, network := storetest.Cut(t)
	trades := make([]store.Trade, n)
	for i := range trades {
		trades[i] = aTrade(uint64(i+1), mustDate(t, "2026-03-06"))
	}
	insert(t, db, trades...)
	witness(t, db)
	s := newTest(t, db, newClock(noon("2026-03-06")), 20)
	random := rand.New(rand.NewPCG(3, uint64(n)))
	var cutting sync.WaitGroup
	cuts, failed := 0, 0
	cut := func() { network.Cut(); network.Heal() }
	s.write = func(ctx context.Context, fn func(*store.Tx) error) error {
		defer cutting.Wait()
		when := random.IntN(6) // never in half of them
		if when < 3 {
			cuts++
		}
		return db.Write(ctx, func(tx *store.Tx) error {
			if when == 0 {
				cut()
			}
			err := fn(tx)
			switch when {
			case 1:
				cut()
			case 2:
				cutting.Go(cut)
			}
			return err
		})
	}
	ctx := bounded(t)
	for s.Metrics().Swept < uint64(n) && ctx.Err() == nil {
		if _, err := s.Sweep(ctx); err != nil {
			failed++
		}
	}
	expectOneTransitionEach(t, db, n)
	if got := s.Metrics().Swept; got != uint64(n) {
		t.Errorf("counted %d of %d", got, n)
	}
	t.Logf("%d cuts, %d sweeps failed", cuts, failed)
	if failed == 0 {
		t.Error("no sweep met a cut")
	}
}
