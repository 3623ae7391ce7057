package matcher

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"posttrade/matcher/flow"
	"posttrade/ring/must"
)

// flowBooks are the books of a flow and the sum of what they trade.
type flowBooks struct {
	memory *BookMemory
	books  []*Book
	sum    flow.Result
}

func newFlowBooks(tb testing.TB, symbols, maxOrders int) *flowBooks {
	tb.Helper()
	memory := must.Get(NewBookMemory(maxOrders))(tb)
	f := &flowBooks{memory: memory, sum: flow.NewResult()}
	for range symbols {
		b := must.Get(memory.NewBook(f))(tb)
		f.books = append(f.books, b)
	}
	return f
}

func (f *flowBooks) Filled(maker, taker uint32, px int64, qty int32) {
	f.sum.Add(maker, taker, px, qty)
}
func (f *flowBooks) Prevented(_, _ uint32, _ int32) {}

func (f *flowBooks) apply(c *flow.Command) Outcome {
	b := f.books[c.Symbol]
	switch c.Op {
	case flow.Cancel:
		return b.Cancel(c.ID)
	case flow.Modify:
		return b.Modify(c.ID, c.Px, c.Qty)
	default:
		return b.Limit(c.ID, 0, Side(c.Side), c.Px, c.Qty)
	}
}

// clear cancels everything and resets the trades.
func (f *flowBooks) clear() {
	var ids []uint32
	for _, b := range f.books {
		for side := range Side(2) {
			b.ladder.eachOrder(side, func(i ix) bool {
				ids = append(ids, b.ladder.pool.hot(i).ref)
				return true
			})
		}
		for _, id := range ids {
			b.Cancel(id)
		}
		ids = ids[:0]
	}
	f.sum = flow.NewResult()
}

// benchFlows are the published flows.
var benchFlows = []flow.Options{
	{Seed: 42, Symbols: 1, Prefill: 50_000, N: 1_000_000},
	{Seed: 42, Symbols: 32, Prefill: 100_000, N: 1_000_000},
}

// benchOrders is the capacity of a book in benchmarks: that of a server.
const benchOrders = 1 << 20

// BenchmarkBook runs the book and the bare ladder over the same flow in turns. It reports the time
// of a command, the ratio, and the 99th percentile.
func BenchmarkBook(b *testing.B) {
	for _, o := range benchFlows {
		b.Run(fmt.Sprintf("op=flow/symbols=%d", o.Symbols), func(b *testing.B) {
			benchFlow(b, flow.Generate(o))
		})
	}
	for _, regime := range flow.Regimes() {
		b.Run(fmt.Sprintf("op=realistic/regime=%s", regime), func(b *testing.B) {
			benchFlow(b, flow.Realistic(flow.RealisticOptions{Seed: 42, Regime: regime}))
		})
	}
}

// p99 runs a flow once more with a clock around each command. The figure includes the time of the
// clock itself.
func (f *flowBooks) p99(fl *flow.Flow) float64 {
	f.clear()
	for i := range fl.Commands[:fl.Prefill] {
		f.apply(&fl.Commands[i])
	}
	timed := fl.Timed()
	ns := make([]int64, len(timed))
	for i := range timed {
		start := time.Now()
		f.apply(&timed[i])
		ns[i] = time.Since(start).Nanoseconds()
	}
	slices.Sort(ns)
	return float64(ns[len(ns)*99/100])
}

// leastOf times pieces of a flow over many runs and keeps the least time of each piece, so that a
// disturbance of one run does not count.
type leastOf struct{ ns [200]int64 }

func (l *leastOf) run(timed []flow.Command, apply func(*flow.Command)) {
	for n := range l.ns {
		piece := timed[len(timed)*n/len(l.ns) : len(timed)*(n+1)/len(l.ns)]
		start := time.Now()
		for i := range piece {
			apply(&piece[i])
		}
		if ns := time.Since(start).Nanoseconds(); l.ns[n] == 0 || ns < l.ns[n] {
			l.ns[n] = ns
		}
	}
}

func (l *leastOf) perCommand(timed []flow.Command) float64 {
	var sum int64
	for _, ns := range l.ns {
		sum += ns
	}
	return float64(sum) / float64(len(timed))
}

func benchFlow(b *testing.B, f *flow.Flow) {
	timed := f.Timed()
	books := newFlowBooks(b, f.Symbols, benchOrders)
	for i := range f.Commands { // once untimed, so that the pages of the memory are resident
		books.apply(&f.Commands[i])
	}
	var ours, bare leastOf
	for b.Loop() {
		books.clear()
		for i := range f.Commands[:f.Prefill] {
			books.apply(&f.Commands[i])
		}
		ours.run(timed, func(c *flow.Command) { books.apply(c) })
		if books.sum != f.Result {
			b.Fatalf("traded %+v, want %+v", books.sum, f.Result)
		}
		ladder := flow.NewLadder(f.Symbols, f.MaxID)
		for i := range f.Commands[:f.Prefill] {
			ladder.Apply(&f.Commands[i])
		}
		bare.run(timed, ladder.Apply)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(books.p99(f), "p99-ns/command")
	b.ReportMetric(ours.perCommand(timed), "ns/command")
	b.ReportMetric(bare.perCommand(timed), "ladder-ns/command")
	b.ReportMetric(ours.perCommand(timed)/bare.perCommand(timed), "x-ladder")
	if err := books.memory.Close(); err != nil {
		b.Fatal(err)
	}
}
