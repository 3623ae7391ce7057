package projection

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// The rules by which rows are dated are stored when they come into force, and at no other time.
func TestRulesAreNotedWhenTheyComeIntoForce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 300)
		step := func(rules string) {
			o := options(h, db)
			o.Rules = rules
			drain(t, New(o))
		}
		want := func(want ...store.SettlementRules) {
			t.Helper()
			var got []store.SettlementRules
			if err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
				got, err = tx.SettlementRules()
				return err
			}); err != nil || !slices.Equal(got, want) {
				t.Fatalf("noted %+v, %v; want %+v", got, err, want)
			}
		}
		step("") // as a build that stored no rules
		want()
		first := store.SettlementRules{Rules: "one", ForcesFrom: bookedAt} // its rows agree
		step("one")
		step("one")
		want(first)
		h.grow(random, 100)
		step("two")
		step("two")
		second := store.SettlementRules{Rules: "two", FirstSeq: 301, BookedFrom: bookedAt}
		want(first, second)
		// Two transactions store the same rules at once: one of them comes first.
		done := make(chan error, 4)
		for range cap(done) {
			o := options(h, db)
			o.Rules, o.Now = "three", func() time.Time { return time.UnixMilli(bookedAt) }
			go func() { done <- New(o).noteRules(t.Context()) }()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		want(first, second, store.SettlementRules{Rules: "three", FirstSeq: 401, BookedFrom: bookedAt})
	})
}

// Rows of a build that stored no rules, dated by other rules.
func TestRulesOfOlderRowsAreNotGuessed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 50)
		drain(t, New(options(h, db)))
		storetest.Edit(t, db, "update trades set settlement_date = '2001-01-02' where trade_seq = 1")
		o := options(h, db)
		o.Rules = "one"
		drain(t, New(o))
		var got []store.SettlementRules
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) (err error) {
			got, err = tx.SettlementRules()
			return err
		}))
		want := []store.SettlementRules{{ForcesFrom: bookedAt},
			{Rules: "one", FirstSeq: 51, BookedFrom: bookedAt}}
		if !slices.Equal(got, want) {
			t.Errorf("noted %+v, want %+v", got, want)
		}
	})
}

// Rows that are made again after a restore have the dates of the rules that they were dated by,
// where this build knows them. Rules that are new at that start are those of later trades.
func TestRowsMadeAgainAreDatedByTheirRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 300)
		h.block = 300
		plus := func(days int) func(int64) store.Date {
			return func(millis int64) store.Date { return settlesOn(millis) + store.Date(days) }
		}
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			for _, s := range []store.SettlementRules{{Rules: "T+7"}, {Rules: "gone", FirstSeq: 101},
				{Rules: "T+9", FirstSeq: 151}, {Rules: "now", FirstSeq: 201}, {Rules: "T+9", FirstSeq: 251}} {
				if err := tx.AddSettlementRules(s); err != nil {
					return err
				}
			}
			return tx.SetCursor(store.CursorRestored, 300)
		})
		must.OK(t, err)
		o := options(h, db)
		o.Rules = "now"
		o.Named = func(rules string) (func(int64) store.Date, bool) {
			switch rules {
			case "T+7":
				return plus(5), true
			case "T+9":
				return plus(7), true
			}
			return nil, false
		}
		p := New(o)
		drain(t, p)
		h.grow(random, 50)
		drain(t, p)
		want := rows(h.fills)
		for i := range want {
			switch seq := want[i].Seq; {
			case seq <= 100:
				want[i].SettlementDate += 5
			case seq > 150 && seq <= 200, seq > 250 && seq <= 300:
				want[i].SettlementDate += 7
			}
		}
		wantTable(t, db, want)
	})
}

// Trades that get the ids of given-up ones are dated by the rules that are in force, not by those
// of the former trades; so are later ones after a change of the rules. Kept rows keep their dates.
func TestTradesAfterAGivingUpAreDatedByNewRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		random := seeded(t)
		h := newHistory(random, 100)
		plus := func(days int) func(int64) store.Date {
			return func(millis int64) store.Date { return settlesOn(millis) + store.Date(days) }
		}
		step := func(days int) {
			o := options(h, db)
			named := map[string]int{"T+0": 0, "T+5": 5, "T+7": 7}
			o.Rules, o.SettlementDate = fmt.Sprintf("T+%d", days), plus(days)
			o.Named = func(rules string) (func(int64) store.Date, bool) {
				days, known := named[rules]
				return plus(days), known
			}
			drain(t, New(o))
		}
		step(0)
		h.grow(random, 100)
		step(5)
		setCursor(t, db, store.CursorRestored, 200)
		h = h.forked(50)
		must.Get(GiveUp(t.Context(), db, h, 50, func(*store.Tx, uint64) error { return nil }))(t)
		h.grow(random, 70)
		step(5)
		h.grow(random, 50)
		step(7)
		got := table(t, db)
		for i, want := range rows(h.fills) {
			switch seq := want.Seq; {
			case seq > 120:
				want.SettlementDate += 7
			case seq > 50:
				want.SettlementDate += 5
			}
			if got[i] != want {
				t.Fatalf("row %d:\n got %+v\nwant %+v", i, got[i], want)
			}
		}
	})
}

// A database without trades gets the settlements by hand that the journal has on record, once, and
// the rows of those trades are settled, also when the process ends in between.
func TestSettlementsByHandComeBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		h := newHistory(seeded(t), 300)
		asked := 0
		o := options(h, db)
		o.Rules, o.BatchRows = "one", 64
		planted := errors.New("planted")
		o.Forces = func(_ context.Context, each func(uint64, int64) error) error {
			if asked++; asked == 1 {
				return planted
			}
			return errors.Join(each(3, 5), each(130, 6), each(130, 7), each(999, 8))
		}
		if _, err := New(o).Step(t.Context()); !errors.Is(err, planted) {
			t.Fatal(err)
		}
		must.Get(New(o).Step(t.Context()))(t) // one batch, and another process
		drain(t, New(o))
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
		for _, row := range table(t, db) {
			want := store.Processing
			if row.Seq == 3 || row.Seq == 130 {
				want = store.Settled
			}
			if row.Status != want {
				t.Errorf("%s is %v", row.ID, row.Status)
			}
		}
		at := map[uint64]int64{}
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Forces(1, 1000, func(seq uint64, millis int64) { at[seq] = millis })
		}))
		if want := map[uint64]int64{3: 5, 130: 7, 999: 8}; !maps.Equal(at, want) {
			t.Errorf("noted %v, want %v", at, want)
		}
	})
}
