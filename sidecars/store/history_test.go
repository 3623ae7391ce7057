package store_test

import (
	"errors"
	"sync"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// errRows says that the rows of a database cannot belong to a history.
var errRows = errors.New("the rows are not ours")

// journalOf binds a second connection to a history that the test changes.
func journalOf(t *testing.T, db *store.DB, h *store.History, agrees error) *store.DB {
	t.Helper()
	other := must.Get(db.Twin())(t)
	t.Cleanup(func() {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
	other.Bind(store.HistoryBinding{
		History: func() (store.History, error) { return *h, nil },
		Agrees:  func(*store.Tx) error { return agrees },
	})
	return other
}

// wantForeign checks that nothing is read and nothing written, and that the state says why.
func wantForeign(t *testing.T, db *store.DB, want bool) {
	t.Helper()
	ran := false
	touch := func(*store.Tx) error { ran = true; return nil }
	for i, err := range []error{db.Write(t.Context(), touch),
		db.Read(t.Context(), touch), db.Ready(t.Context())} {
		if got := errors.Is(err, store.ErrForeign); got != want ||
			want && !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("call %d: %v, foreign %v wanted", i, err, want)
		}
	}
	ready, detail := db.State()
	if ran == want || db.Foreign() != want || ready == want {
		t.Errorf("ran %v, foreign %v, state %v %q; foreign %v wanted", ran,
			db.Foreign(), ready, detail, want)
	}
}

func TestDatabaseBelongsToTheHistoryThatMarkedIt(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ours := store.History{Genesis: store.GenesisMark([]byte("ours"))}
		a := journalOf(t, db, &ours, nil)
		wantForeign(t, a, false)
		theirs := store.History{Genesis: store.GenesisMark([]byte("theirs"))}
		wantForeign(t, journalOf(t, db, &theirs, nil), true)
		wantForeign(t, journalOf(t, db, &ours, errRows), false) // the mark decides, not the rows
		// The mark is changed and deleted while the process runs.
		storetest.Edit(t, db, "update history set genesis = $1", theirs.Genesis)
		wantForeign(t, a, true)
		storetest.Edit(t, db, "delete from history")
		_ = a.Read(t.Context(), func(*store.Tx) error { return nil }) // which finds no mark
		wantForeign(t, a, false)                                      // and marks it again
	})
}

// Two journals with the same genesis record: the first trade that is booked decides.
func TestDatabaseBelongsToTheFirstTradeOfOneGenesis(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		genesis := store.GenesisMark([]byte("the default settings"))
		first, second := store.History{Genesis: genesis}, store.History{Genesis: genesis}
		a, b := journalOf(t, db, &first, nil), journalOf(t, db, &second, nil)
		wantForeign(t, a, false)
		wantForeign(t, b, false)
		first.Origin, second.Origin = 7, 8
		wantForeign(t, b, false)
		var both sync.WaitGroup
		for db, origin := range map[*store.DB]uint64{a: 7, b: 8} {
			both.Go(func() {
				err := db.Write(t.Context(), func(tx *store.Tx) error { return tx.MarkOrigin(origin) })
				if err != nil && !errors.Is(err, store.ErrForeign) {
					t.Error(err)
				}
			})
		}
		both.Wait()
		var mark store.History
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) (err error) {
			mark, _, err = tx.History()
			return err
		}))
		wantForeign(t, a, mark.Origin != 7)
		wantForeign(t, b, mark.Origin != 8)
		third := store.History{Genesis: genesis} // a journal without trades
		wantForeign(t, journalOf(t, db, &third, nil), true)
	})
}

// A database without a mark, as an earlier build left it, is checked row by row.
func TestDatabaseWithoutAMarkIsMarkedOnlyWhenItsRowsAgree(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := store.History{Genesis: store.GenesisMark([]byte("ours")), Origin: 5}
		wantForeign(t, journalOf(t, db, &h, errRows), true)
		found := true
		if err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
			_, found, err = tx.History()
			return err
		}); err != nil || found {
			t.Fatalf("marked %v, %v", found, err)
		}
		wantForeign(t, journalOf(t, db, &h, nil), false)
	})
}
