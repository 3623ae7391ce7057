package store_test

import (
	"slices"
	"testing"
	"time"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// BenchmarkInsertTrades writes batches alternately with InsertTrades and its cursor and with the
// bare comparator. It reports the ratio that the performance table shows.
func BenchmarkInsertTrades(b *testing.B) {
	const rows, batch = 200_000, 4096
	trades := someTrades(1, rows)
	for _, d := range storetest.Dialects(b) {
		b.Run("op=insert/dialect="+d.String(), func(b *testing.B) {
			var ours, bare time.Duration
			for b.Loop() {
				other, db := openBare(b, d), storetest.Open(b, d)
				for part := range slices.Chunk(trades, batch) {
					bare += timed(b, func() error { return other.Write(b.Context(), part) })
					ours += timed(b, func() error {
						return db.Write(b.Context(), func(tx *store.Tx) error {
							if _, err := tx.InsertTrades(part); err != nil {
								return err
							}
							return tx.SetCursor("projection", part[len(part)-1].Seq)
						})
					})
				}
				if err := other.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*rows/ours.Seconds(), "rows/s")
			b.ReportMetric(float64(b.N)*rows/bare.Seconds(), "bare-rows/s")
			b.ReportMetric(bare.Seconds()/ours.Seconds(), "ratio")
		})
	}
}

func timed(b *testing.B, fn func() error) time.Duration {
	b.Helper()
	start := time.Now()
	if err := fn(); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}

func openBare(b *testing.B, d store.Dialect) *store.Bare {
	b.Helper()
	o := storetest.Options(b, d)
	open := func() (*store.Bare, error) { return store.OpenBareInsert(b.Context(), o.Dir) }
	if d == store.Postgres {
		open = func() (*store.Bare, error) { return store.OpenBareCopy(b.Context(), o.URL) }
	}
	bare, err := open()
	if err != nil {
		b.Fatal(err)
	}
	return bare
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
