package projection

import (
	"math/rand/v2"
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

func BenchmarkMessage(b *testing.B) {
	b.Run("op=read", func(b *testing.B) {
		var m message
		text := []byte(plain)
		b.ReportAllocs()
		for b.Loop() {
			if err := m.read(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkRows(b *testing.B) {
	h := newHistory(rand.New(rand.NewPCG(1, 2)), defaultBatchRows)
	b.Run("op=make/batch=8192", func(b *testing.B) {
		var rows batch
		by := era{settles: settlesOn}
		b.ReportAllocs()
		for b.Loop() {
			rows.reset()
			for i := range h.fills {
				rows.add(&h.fills[i], "AAPL", &by, bookedAt)
			}
			rows.name()
		}
		b.ReportMetric(float64(b.N)*defaultBatchRows/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkProject projects into an empty table: with Step, and for comparison the same rows
// through the store alone, in transactions of the same size.
func BenchmarkProject(b *testing.B) {
	const fills = 16 * defaultBatchRows
	h := newHistory(rand.New(rand.NewPCG(1, 3)), fills)
	for _, d := range storetest.Dialects(b) {
		b.Run("op=step/dialect="+d.String(), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				p := New(options(h, storetest.Open(b, d)))
				p.o.BatchRows = defaultBatchRows
				b.StartTimer()
				for p.Lag() > 0 {
					if _, err := p.Step(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*fills/b.Elapsed().Seconds(), "rows/s")
		})
		b.Run("op=bare/dialect="+d.String(), func(b *testing.B) {
			all := rows(h.fills)
			for b.Loop() {
				b.StopTimer()
				db := storetest.Open(b, d)
				b.StartTimer()
				for at := 0; at < fills; at += defaultBatchRows {
					err := db.Write(b.Context(), func(tx *store.Tx) error {
						_, err := tx.InsertTrades(all[at : at+defaultBatchRows])
						return err
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N)*fills/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
