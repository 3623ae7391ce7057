package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// TestSettlementDaysCountEveryTrade compares the counts with a fold over all rows: every range of
// dates, every choice of accounts.
func TestSettlementDaysCountEveryTrade(t *testing.T) {
	trades := 5000
	if testing.Short() {
		trades = 500
	}
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		rows := someTrades(1, trades)
		insert(t, db, rows)
		forced := func(seq uint64) bool { return seq%9 == 2 }
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for _, row := range rows { // a force of a trade that is due has not settled it yet
				if !forced(row.Seq) {
					continue
				}
				if err := tx.NoteForce(row.Seq, 1); err != nil {
					return err
				}
			}
			return nil
		}))
		first := rows[0].SettlementDate
		for _, accounts := range [][]uint32{nil, {}, {3}, {7, 1, 99}} {
			for from := first - 1; from < first+12; from += 2 {
				for to := from; to < first+12; to += 3 {
					var want []store.SettlementDay
					for date := from; date <= to; date++ {
						day := store.SettlementDay{Date: date}
						for _, row := range rows {
							switch {
							case row.SettlementDate != date,
								accounts != nil && !slices.Contains(accounts, row.AccountID):
							case row.Status == store.Processing:
								day.Due++
							case forced(row.Seq):
								day.Forced++
							default:
								day.Settled++
							}
						}
						if day.Due+day.Settled+day.Forced > 0 {
							want = append(want, day)
						}
					}
					var got []store.SettlementDay
					err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
						got, err = tx.SettlementDays(accounts, from, to)
						return err
					})
					if err != nil || !slices.Equal(got, want) {
						t.Fatalf("accounts %v, %v to %v: %v, %v\nwant %v", accounts, from, to, got, err, want)
					}
				}
			}
		}
	})
}

// TestSettlementDaysLeaveGivenUpRows: no count has a row that was given up, whatever its status. A
// date that has no other row has no entry.
func TestSettlementDaysLeaveGivenUpRows(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		all := someTrades(1, 60)
		first := all[0].SettlementDate
		for i := range all {
			row := &all[i]
			row.SettlementDate, row.Status = first+store.Date(i%2), store.Status(i/2%2)
			if row.SettlementDate > first || i%3 == 0 {
				row.ID = fmt.Sprintf("void-0-trd-%d", row.Seq)
				row.Seq += store.FirstVoid - 1
			}
		}
		insert(t, db, all)
		want := store.SettlementDay{Date: first}
		must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
			for i := range all {
				switch row := &all[i]; {
				case row.Seq >= store.FirstVoid:
				case row.Status == store.Processing:
					want.Due++
				case i%5 == 2:
					want.Forced++
				default:
					want.Settled++
				}
				if i%5 == 2 && all[i].Status == store.Settled {
					if err := tx.NoteForce(all[i].Seq, 1); err != nil {
						return err
					}
				}
			}
			return nil
		}))
		for _, accounts := range [][]uint32{nil, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}} {
			var got []store.SettlementDay
			err := db.Read(t.Context(), func(tx *store.Tx) (err error) {
				got, err = tx.SettlementDays(accounts, first, first+1)
				return err
			})
			if err != nil || !slices.Equal(got, []store.SettlementDay{want}) || want.Forced == 0 {
				t.Errorf("accounts %v: %v, %v, want %v", accounts, got, err, want)
			}
		}
	})
}

// TestSettlementDaysReadTheirIndexes: what is counted lies in the indexes of its status.
func TestSettlementDaysReadTheirIndexes(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	insert(t, db, someTrades(1, 2000))
	var plan strings.Builder
	// Not Read: a connection that has run no statement since the schema changed explains the old one.
	must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
		sql, args := store.SettlementDaysSQL(tx, 20_000, 20_100)
		return tx.Query("explain query plan "+sql, func(r *store.Row) error {
			plan.WriteString(r.Text(3) + "\n")
			return nil
		}, args...)
	}))
	for _, index := range []string{"trades_to_settle", "trades_settled"} {
		if !strings.Contains(plan.String(), "COVERING INDEX "+index) {
			t.Errorf("the plan has no %s:\n%s", index, plan.String())
		}
	}
	if strings.Contains(plan.String(), "SCAN trades\n") ||
		strings.Count(plan.String(), "(trade_seq>?)") != 1 {
		t.Errorf("the plan reads the table:\n%s", plan.String())
	}
}
