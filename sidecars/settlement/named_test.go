package settlement

import (
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func TestRulesNameTheCalendarThatTheyMake(t *testing.T) {
	for _, name := range names {
		for _, where := range []*time.Location{time.UTC, newYork(t)} {
			for _, n := range []int{0, 1, 2, MaxTPlus} {
				c := mustCalendar(t, name, where, n)
				again, ok := ByRules(c.Rules())
				if !ok || again.Rules() != c.Rules() {
					t.Fatalf("%q: %v", c.Rules(), ok)
				}
				for day := range int64(400) {
					if at := day*dayMillis*50 + 12345; again.SettlementDate(at) != c.SettlementDate(at) {
						t.Fatalf("%q: %d", c.Rules(), at)
					}
				}
			}
		}
	}
	c := mustCalendar(t, "XNYS", newYork(t), 1)
	for _, rules := range []string{"", "XNYS", c.Rules() + "x",
		"XNYS; America/New_York; T+366; " + c.version,
		"XNYS; Nowhere/At_All; T+1; " + c.version, "NOPE; UTC; T+1; " +
			c.version, "XNYS; UTC; T+x; " + c.version} {
		if _, ok := ByRules(rules); ok {
			t.Errorf("%q is known", rules)
		}
	}
}

// A settlement by hand is recorded, once, in the transaction that settles.
func TestForceIsNoted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		due := mustDate(t, "2026-03-06")
		insert(t, db, aTrade(1, due), aTrade(2, due), aTrade(3, due))
		c := newClock(noon("2026-03-05"))
		s := newTest(t, db, c, 64)
		for range 2 {
			for _, id := range []string{"trd-1", "trd-9"} {
				if _, _, err := s.Force(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			c.step(time.Hour)
		}
		c.set(noon("2026-03-06"))
		mustSweep(t, s, 2)
		got := map[uint64]int64{}
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Forces(0, 100, func(seq uint64, at int64) { got[seq] = at })
		}))
		if want := rows(t, db)[1].UpdatedAt; len(got) != 1 || got[1] != want {
			t.Errorf("noted %v, want 1 at %d", got, want)
		}
	})
}

// A date that was edited and is no date any more is never due.
func TestSweepLeavesDatesThatAreNone(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		due := mustDate(t, "2026-03-06")
		insert(t, db, aTrade(1, due), aTrade(2, due), aTrade(3, due))
		dates := []string{"0000-00-00", "2026-02-31"}
		if db.Dialect() == store.Postgres {
			storetest.Edit(t, db, "alter table trades drop constraint trades_settlement_date_check")
			dates = []string{"-infinity", "0044-03-15 BC"}
		}
		for i, d := range dates {
			storetest.Edit(t, db, "update trades set settlement_date = '"+d+"' where trade_seq = $1", i+1)
		}
		s := newTest(t, db, newClock(noon("2026-03-06")), 64)
		mustSweep(t, s, 1)
		for seq, row := range rows(t, db) {
			if settled := row.Status == store.Settled; settled != (seq == 3) {
				t.Errorf("%d: %v", seq, row.Status)
			}
		}
	})
}
