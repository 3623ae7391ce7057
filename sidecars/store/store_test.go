package store_test

import (
	"slices"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// someTrades makes n trades from trade sequence first on. Every fourth has no order and every fifth
// no sequence; the dates cover a few days.
func someTrades(first uint64, n int) []store.Trade {
	tickers := []string{"IBM", "MSFT", "BRK.B", "ÅÄÖ"}
	day := store.DateOf(2026, 11, 23)
	trades := make([]store.Trade, n)
	for i := range trades {
		seq := first + uint64(i)
		trades[i] = store.Trade{
			ID: matcher.TradeID(seq), Seq: seq, AccountID: uint32(1 + seq%7), Security: tickers[seq%4],
			Side: matcher.Side(seq % 2), Quantity: int64(1 + seq%1000), Price: int64(100_000_000 + seq*1000),
			Status: store.Status(seq % 3 / 2), SettlementDate: day + store.Date(seq/500),
			ExecutedAt: int64(1_790_000_000_000 + seq), BookedAt: int64(1_790_000_001_000 + seq),
			UpdatedAt: int64(1_790_000_002_000 + seq),
		}
		if seq%4 != 0 {
			trades[i].OrderID = "ord-" + matcher.TradeID(seq)[4:]
		}
		if seq%5 != 0 {
			trades[i].Sequence = seq * 2
		}
	}
	return trades
}

// insert writes trades and returns how many were new.
func insert(t testing.TB, db *store.DB, trades []store.Trade) (inserted int) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *store.Tx) (err error) {
		inserted, err = tx.InsertTrades(trades)
		return err
	})
	must.OK(t, err)
	return inserted
}

// allTrades reads the whole table.
func allTrades(t testing.TB, db *store.DB) (all []store.Trade) {
	t.Helper()
	return selected(t, db, store.TradeFilter{})
}

// selected reads the trades that a filter selects.
func selected(t testing.TB, db *store.DB, f store.TradeFilter) (all []store.Trade) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		all = nil
		return tx.Trades(f, func(row *store.Trade) error { all = append(all, *row); return nil })
	})
	must.OK(t, err)
	return all
}

// mustBe compares whole tables.
func mustBe(t testing.TB, got, want []store.Trade) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d trades, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("trade %d of %d:\n got %+v\nwant %+v", i, len(want), got[i], want[i])
		}
	}
}

// sorted returns trades in the order in which the table is read.
func sorted(trades []store.Trade) []store.Trade {
	return slices.SortedFunc(slices.Values(trades), func(a, b store.Trade) int {
		return int(a.Seq) - int(b.Seq)
	})
}
