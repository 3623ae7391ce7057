package store_test

import (
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// BenchmarkInsertTrades measures InsertTrades with its cursor against the bare comparators,
// in the same run, and reports the ratio that the performance table asks for.
func BenchmarkInsertTrades(b *testing.B) {
	const rows, batch = 200_000, 4096
	trades := someTrades(1, rows)
	for _, d := range storetest.Dialects(b) {
		b.Run("op=insert/dialect="+d.String(), func(b *testing.B) {
			for b.Loop() {
				bare := bareRate(b, d, trades, batch)
				db := storetest.Open(b, d)
				ours, err := store.Measure("ours", trades, batch, func(part []store.Trade) error {
					return db.Write(b.Context(), func(tx *store.Tx) error {
						if _, err := tx.InsertTrades(part); err != nil {
							return err
						}
						return tx.SetCursor("projection", part[len(part)-1].Seq)
					})
				})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(ours.PerSecond(), "rows/s")
				b.ReportMetric(bare, "bare-rows/s")
				b.ReportMetric(ours.PerSecond()/bare, "ratio")
			}
		})
	}
}

func bareRate(b *testing.B, d store.Dialect, trades []store.Trade, batch int) float64 {
	b.Helper()
	var m store.Measured
	var err error
	o := storetest.Options(b, d)
	if d == store.SQLite {
		m, err = store.CompareBareInsert(b.Context(), o.Dir, trades, batch)
	} else {
		m, err = store.CompareBareCopy(b.Context(), o.URL, trades, batch)
	}
	if err != nil {
		b.Fatal(err)
	}
	return m.PerSecond()
}

// BenchmarkTradesBySeq reads trades in the order of their sequence.
func BenchmarkTradesBySeq(b *testing.B) {
	const rows = 100_000
	for _, d := range storetest.Dialects(b) {
		b.Run("op=read/dialect="+d.String(), func(b *testing.B) {
			db := storetest.Open(b, d)
			insert(b, db, someTrades(1, rows))
			b.ReportAllocs()
			for b.Loop() {
				n := 0
				err := db.Read(b.Context(), func(tx *store.Tx) error {
					return tx.TradesBySeq(1, rows, func(*store.Trade) error { n++; return nil })
				})
				if err != nil || n != rows {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
