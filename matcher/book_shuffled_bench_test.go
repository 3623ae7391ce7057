package matcher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"posttrade/matcher/flow"
)

// BenchmarkBookShuffled is BenchmarkBook for a caller whose ids come in no order.
func BenchmarkBookShuffled(b *testing.B) {
	for _, o := range benchFlows {
		b.Run(fmt.Sprintf("op=flow/symbols=%d", o.Symbols), func(b *testing.B) {
			benchShuffled(b, flow.Generate(o))
		})
	}
}

func benchShuffled(b *testing.B, f *flow.Flow) {
	ids := make([]uint32, f.MaxID+1)
	for i := range ids {
		ids[i] = uint32(i)
	}
	shuffle := rand.New(rand.NewPCG(5, 5))
	shuffle.Shuffle(len(ids)-1, func(i, j int) { ids[i+1], ids[j+1] = ids[j+1], ids[i+1] })
	commands := slices.Clone(f.Commands)
	for i := range commands {
		commands[i].ID = ids[commands[i].ID]
	}
	shuffled := *f
	shuffled.Commands = commands
	timed := shuffled.Timed()
	books := newFlowBooks(b, f.Symbols, benchOrders)
	for i := range commands { // once untimed, so that the pages of the memory are resident
		books.apply(&commands[i])
	}
	var least leastOf
	for b.Loop() {
		books.clear()
		for i := range commands[:f.Prefill] {
			books.apply(&commands[i])
		}
		least.run(timed, func(c *flow.Command) { books.apply(c) })
		if books.sum.Trades != f.Result.Trades {
			b.Fatalf("%d trades, want %d", books.sum.Trades, f.Result.Trades)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(books.p99(&shuffled), "p99-ns/command")
	b.ReportMetric(least.perCommand(timed), "ns/command")
	if err := books.memory.Close(); err != nil {
		b.Fatal(err)
	}
}
