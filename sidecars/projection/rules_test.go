package projection

import (
	"slices"
	"testing"
	"time"

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
		if err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
			got, err = tx.SettlementRules()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := []store.SettlementRules{{ForcesFrom: bookedAt},
			{Rules: "one", FirstSeq: 51, BookedFrom: bookedAt}}
		if !slices.Equal(got, want) {
			t.Errorf("noted %+v, want %+v", got, want)
		}
	})
}
