package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestPeriodIsFoundByItsIndex: the trades of a period are found without a look at the others.
func TestPeriodIsFoundByItsIndex(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		insert(t, db, someTrades(1, 5000))
		var plan strings.Builder
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			sql, column := "explain query plan ", 3
			if db.Dialect() == store.Postgres {
				sql, column = "explain ", 0
			}
			sql += store.PeriodSQL(db.Dialect())
			return tx.Query(sql, func(r *store.Row) error {
				plan.WriteString(r.Text(column) + "\n")
				return nil
			}, int64(1), int64(2), int64(0), int64(1)<<61)
		})
		got := plan.String()
		if err != nil || strings.Contains(got, "Seq Scan") || strings.Contains(got, "SCAN") ||
			!strings.Contains(got, "trades_by_time") {
			t.Errorf("%v, plan:\n%s", err, got)
		}
	})
}

// TestTradesOfAPeriodAreThoseOfTheModel: whatever order the times have, with bookings from outside
// among them, pages of a period have the rows of the period, in both orders.
func TestTradesOfAPeriodAreThoseOfTheModel(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 1))
		all := someTrades(1, 80)
		for i := range all {
			all[i].ExecutedAt = int64(1 + i + r.IntN(20)) // nearly in order
			if i >= 60 {
				all[i].Seq = store.FirstExternal + uint64(i)
				all[i].ID = fmt.Sprintf("ext-%d", i)
				all[i].ExecutedAt = int64(1 + r.IntN(90))
			}
		}
		insert(t, db, all)
		for range 100 {
			from := int64(1 + r.IntN(90))
			f := store.TradeFilter{FromMillis: from, ToMillis: from + int64(r.IntN(30)),
				Limit: r.IntN(8)}
			if r.IntN(3) == 0 {
				f.AfterSeq, f.BeforeSeq = uint64(r.IntN(50)), uint64(30+r.IntN(40))
			}
			switch f.Newest = r.IntN(2) == 0; r.IntN(6) {
			case 0:
				f.FromMillis = 0
			case 1:
				f.ToMillis = 0
			}
			var want []uint64
			for i := range all {
				if a := &all[i]; a.ExecutedAt >= f.FromMillis &&
					(f.ToMillis == 0 || a.ExecutedAt < f.ToMillis) &&
					a.Seq > f.AfterSeq && (f.BeforeSeq == 0 || a.Seq < f.BeforeSeq) {
					want = append(want, a.Seq)
				}
			}
			if f.Newest { // those of the journal before those from outside
				outside := slices.IndexFunc(want, func(n uint64) bool { return n >= store.FirstExternal })
				if outside < 0 {
					outside = len(want)
				}
				slices.Reverse(want[:outside])
				slices.Reverse(want[outside:])
			}
			if got := pages(t, db, f); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v, want %v", f, got, want)
			}
		}
	})
}

// pages reads all pages of a filter, and returns the trade sequences.
func pages(t *testing.T, db *store.DB, f store.TradeFilter) (all []uint64) {
	t.Helper()
	for {
		n := 0
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Trades(f, func(row *store.Trade) error {
				all, n = append(all, row.Seq), n+1
				return nil
			})
		})
		must.OK(t, err)
		if f.Limit == 0 || n < f.Limit {
			return all
		}
		f.GoOn(all[len(all)-1])
	}
}
