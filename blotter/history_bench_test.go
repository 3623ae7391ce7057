package blotter

import (
	"context"
	"testing"

	"posttrade/journal"
	"posttrade/matcher"
)

// benchJournal is a journal of n commands of which each has one fill.
func benchJournal(b *testing.B, n int) *journal.Journal {
	o := journal.Options{Durability: journal.DurabilityOS, Fatal: func(err error) { b.Error(err) }}
	j, err := journal.Open(b.TempDir(), o)
	if err == nil {
		err = j.Create([]byte(`{"format":1}`))
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := j.Close(); err != nil {
			b.Error(err)
		}
	})
	var block journal.Block
	var last *journal.Commit
	for seq := uint64(1); seq <= uint64(n); seq++ {
		c := matcher.NewCommand(matcher.OrderNew)
		c.InputSeq, c.EventTimeMillis = seq, 1_700_000_000_000+int64(seq/500)
		block.Command(&c)
		fill := fillOf(seq)
		fill.TimeMillis, fill.Px = c.EventTimeMillis, 100_000_000+1000*int64(seq*7919%300)
		fill.InputSeq = seq
		block.Fill(&fill)
		if block.Commands() == 1024 || seq == uint64(n) {
			if last, err = j.Append(&block); err != nil {
				b.Fatal(err)
			}
			block.Reset()
		}
	}
	if err := last.Wait(); err != nil {
		b.Fatal(err)
	}
	return j
}

func BenchmarkHistory(b *testing.B) {
	const n = 2_000_000
	j := benchJournal(b, n)
	h := newTestHistory(b, b.TempDir())
	b.Run("op=reindex/source=journal", func(b *testing.B) {
		for b.Loop() {
			info, err := h.Reindex(context.Background(), j.Fills, j.Head)
			if err != nil || info.IndexedTrades != n {
				b.Fatalf("%+v: %v", info, err)
			}
		}
		b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "fills/s")
	})
	b.Run("op=page/limit=1000", func(b *testing.B) {
		var items []matcher.Fill
		since := uint64(0)
		for b.Loop() {
			var ok bool
			if items, _, ok = h.Page(since, 1000, items[:0]); !ok || len(items) != 1000 {
				b.Fatal(len(items))
			}
			since = (since + 777_777) % (n - 1000)
		}
		b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "fills/s")
	})
	b.Run("op=range/of=all", func(b *testing.B) {
		for b.Loop() {
			if err := h.Range(1, n, func([]matcher.Fill) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "fills/s")
	})
}
