package recon

import (
	"context"
	"testing"

	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// BenchmarkSweep compares a backlog of entries with their rows, all of which match.
func BenchmarkSweep(b *testing.B) {
	const entries = 500_000
	for _, dialect := range storetest.Dialects(b) {
		b.Run("dialect="+dialect.String()+"/entries=500000", func(b *testing.B) {
			g := newRig(b, storetest.Open(b, dialect), entries, 1)
			g.bounds = defaultBounds
			g.journal.add(g.rng, entries)
			for to := uint64(20_000); to <= entries; to += 20_000 {
				g.project(to-19_999, to)
			}
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				g.must(g.db.Write(context.Background(),
					func(tx *store.Tx) error { return tx.SetCursor(cursorFast, 0) }))
				b.StartTimer()
				g.sweep()
			}
			g.want(tallies{cursor: entries, matched: entries})
			b.ReportMetric(entries/(b.Elapsed().Seconds()/float64(b.N)), "entries/s")
		})
	}
}
