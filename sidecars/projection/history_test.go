package projection

import (
	"errors"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// agreement is the result of Agrees for the database.
func agreement(t *testing.T, p *Projection, db *store.DB) error {
	t.Helper()
	var agrees error
	must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
		agrees = p.Agrees(tx)
		return nil
	}))
	return agrees
}

func TestRowsAgreeWithTheJournalThatTheyCameFrom(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 600)
		p := New(options(h, db))
		if err := agreement(t, p, db); err != nil {
			t.Errorf("an empty database: %v", err)
		}
		drain(t, p)
		if err := agreement(t, New(options(h, db)), db); err != nil {
			t.Errorf("its own rows: %v", err)
		}
		origin, err := p.Origin()
		if again, _ := New(options(h, db)).Origin(); err != nil || origin == 0 || origin != again {
			t.Errorf("origin %d, then %d, %v", origin, again, err)
		}
		other := newHistory(random, 700)
		if err := agreement(t, New(options(other, db)), db); !errors.Is(err, ErrForeign) {
			t.Errorf("the rows of another journal: %v", err)
		}
		if got, err := New(options(other, db)).Origin(); err != nil || got == origin {
			t.Errorf("origin of another journal: %d, %v", got, err)
		}
		if err := agreement(t, New(options(newHistory(random, 599), db)), db); !errors.Is(err, ErrAhead) {
			t.Errorf("a shorter journal: %v", err)
		}
		setCursor(t, db, cursorMark, 0) // set by hand: the rows decide
		storetest.Edit(t, db, "update trades set quantity = quantity + 1 where trade_seq % 3 = 0")
		if err := agreement(t, New(options(h, db)), db); err != nil {
			t.Errorf("its own rows, some of them edited: %v", err)
		}
		if err := agreement(t, New(options(other, db)), db); !errors.Is(err, ErrForeign) {
			t.Errorf("the rows of another journal, without a mark: %v", err)
		}
		if got, err := New(options(newHistory(random, 0), db)).Origin(); err != nil || got != 0 {
			t.Errorf("origin of a journal without trades: %d, %v", got, err)
		}
	})
}
