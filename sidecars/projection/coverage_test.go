package projection

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// forked is a history that has the first n fills of h, and other fills after them.
func (h *history) forked(n int) *history {
	f := &history{block: h.block, fills: slices.Clone(h.fills[:n])}
	if n > 0 {
		f.trade, f.input = h.fills[n-1].TradeSeq, h.fills[n-1].InputSeq
	}
	return f
}

// TestGivenUpRowsMakeRoomForOthers projects a history, loses its end, gives up the rows that only
// the table has, and continues with another end: the table is that history, and all given-up rows
// are still there, under other ids.
func TestGivenUpRowsMakeRoomForOthers(t *testing.T) {
	random := seeded(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(random, 0)
		h.grow(random, size(3000, 1200))
		drain(t, New(options(h, db)))
		var void []store.Trade
		for turn, keep := range []int{len(h.fills) - 1, 1000, 1000, 1, 0} {
			before := table(t, db)[:len(h.fills)]
			h = h.forked(keep)
			also := uint64(1 << 60)
			done := must.Get(GiveUp(t.Context(), db, h, uint64(keep), func(_ *store.Tx, kept uint64) error {
				also = kept
				return nil
			}))(t)
			if done.Kept != uint64(keep) || done.Rows != int64(len(before)-keep) || also != done.Kept {
				t.Errorf("turn %d: %+v, want %d kept and %d rows", turn, done, keep, len(before)-keep)
			}
			void = append(void, before[keep:]...)
			h.grow(random, 700)
			p := New(options(h, db))
			drain(t, p)
			all := table(t, db)
			for i, want := range rows(h.fills) {
				if all[i] != want {
					t.Fatalf("turn %d: row %d:\n got %+v\nwant %+v", turn, i, all[i], want)
				}
			}
			aside := all[len(h.fills):]
			if len(aside) != len(void) {
				t.Fatalf("turn %d: %d rows aside, want %d", turn, len(aside), len(void))
			}
			for i, got := range aside {
				want := void[i]
				if !strings.HasPrefix(got.ID, "void-") || !strings.HasSuffix(got.ID, "-"+want.ID) {
					t.Fatalf("turn %d: %s stands for %s", turn, got.ID, want.ID)
				}
				if got.ID, got.Seq = want.ID, want.Seq; got != want {
					t.Fatalf("turn %d: aside\n got %+v\nwant %+v", turn, got, want)
				}
			}
		}
	})
}

// TestGivingUpTakesAnyTime: the server does not limit the statement that moves the rows.
func TestGivingUpTakesAnyTime(t *testing.T) {
	random := seeded(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(random, 20)
		drain(t, New(options(h, db)))
		limit := "select '0'"
		if db.Dialect() == store.Postgres {
			limit = "select current_setting('statement_timeout')"
		}
		done := must.Get(GiveUp(t.Context(), db, h.forked(5), 5, func(tx *store.Tx, _ uint64) error {
			return tx.Query(limit, func(r *store.Row) error {
				if got := r.Text(0); got != "0" {
					t.Errorf("a statement may take %s", got)
				}
				return nil
			})
		}))(t)
		if done.Rows != 15 {
			t.Errorf("%d rows, want 15", done.Rows)
		}
	})
}

// TestGivenUpTradesAreNotSettledByHand: a settlement by hand of a given-up trade does not settle
// the trade that gets its id. Those of kept trades and of bookings from outside stay.
func TestGivenUpTradesAreNotSettledByHand(t *testing.T) {
	random := seeded(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(random, 40)
		drain(t, New(options(h, db)))
		stay := map[uint64]int64{30: 5, store.FirstExternal + 3: 6}
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for seq, at := range map[uint64]int64{30: 5, store.FirstExternal + 3: 6, 31: 7, 40: 8} {
				if err := tx.NoteForce(seq, at); err != nil {
					return err
				}
			}
			return nil
		}))
		h = h.forked(30)
		must.Get(GiveUp(t.Context(), db, h, 30, func(*store.Tx, uint64) error { return nil }))(t)
		h.grow(random, 20)
		drain(t, New(options(h, db)))
		for i, want := range rows(h.fills) {
			if got := table(t, db)[i]; got != want {
				t.Errorf("row %d:\n got %+v\nwant %+v", i, got, want)
			}
		}
		got := map[uint64]int64{}
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Forces(1, store.FirstVoid, func(seq uint64, at int64) { got[seq] = at })
		}))
		if !maps.Equal(got, stay) {
			t.Errorf("settled by hand: %v, want %v", got, stay)
		}
	})
}

// TestGivingUpFindsTheForkItself: meanwhile the journal has grown again, and rows near the fork
// were edited by hand.
func TestGivingUpFindsTheForkItself(t *testing.T) {
	random := seeded(t)
	none := func(*store.Tx, uint64) error { return nil }
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(random, 0)
		h.grow(random, 40)
		drain(t, New(options(h, db)))
		later := h.forked(30)
		later.grow(random, 50)
		edit := func(seq int) {
			storetest.Edit(t, db, "update trades set quantity = 1000000007 where trade_seq = $1", seq)
		}
		edit(30)
		done, err := GiveUp(t.Context(), db, later, 80, none)
		if err != nil || done.Kept != 29 || done.Rows != 11 {
			t.Errorf("given up: %+v, %v, want 29 kept and 11 rows", done, err)
		}
		drain(t, New(options(later, db)))
		for i, want := range rows(later.fills) {
			if got := table(t, db)[i]; got != want {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, got, want)
			}
		}
		before := table(t, db)
		other := newHistory(random, 0)
		other.grow(random, 90)
		if _, err := GiveUp(t.Context(), db, other, 90, none); !errors.Is(err, ErrForeign) {
			t.Errorf("another history: %v", err)
		}
		refusal := errors.New("no")
		_, err = GiveUp(t.Context(), db, later.forked(3), 3,
			func(*store.Tx, uint64) error { return refusal })
		if !errors.Is(err, refusal) {
			t.Errorf("what else belongs to it failed: %v", err)
		}
		wantTable(t, db, before)
	})
}

// TestStandingIsOfTheHistoryThatWasBooked: the mark identifies it.
func TestStandingIsOfTheHistoryThatWasBooked(t *testing.T) {
	random := seeded(t)
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		read := func() (s Coverage) {
			err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
				s, err = ReadCoverage(tx)
				return err
			})
			must.OK(t, err)
			return s
		}
		setCursor(t, db, cursorInput, 5) // commands without a fill
		if s := read(); s.TradeSeq != 0 || s.InputSeq != 0 {
			t.Errorf("nothing was projected: %+v", s)
		}
		h := newHistory(random, 0)
		h.grow(random, 20)
		drain(t, New(options(h, db)))
		s := read()
		last, before := &h.fills[19], &h.fills[18]
		if input, _ := h.Head(); s.TradeSeq != 20 || s.InputSeq != input || !s.Of(last) || s.Of(before) {
			t.Errorf("coverage %+v, head %d", s, input)
		}
		other := h.forked(19)
		other.grow(random, 1)
		if s.Of(&other.fills[19]) {
			t.Error("another fill is taken for the one that was booked")
		}
		setCursor(t, db, cursorTrades, 10)
		if s := read(); !s.Of(&other.fills[3]) {
			t.Error("a cursor that was set by hand is of any history")
		}
	})
}
