package perf

import (
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/perf/flow"
)

// publishedFlows are the order flows that the published peers were measured on.
var publishedFlows = []flow.Options{
	{Seed: 42, Symbols: 1, Prefill: 50_000, N: 1_000_000},
	{Seed: 42, Symbols: 32, Prefill: 100_000, N: 1_000_000},
}

// flowFor generates a published flow, shrunk for a smoke run.
func (r *Run) flowFor(o flow.Options) *flow.Flow {
	o.N, o.Prefill = r.scale(o.N), r.scale(o.Prefill)
	return flow.Generate(o)
}

// bookSum sums what books trade, as flow.Result does.
type bookSum struct{ result flow.Result }

func (s *bookSum) Filled(maker, taker uint32, px int64, qty int32) {
	s.result.Add(maker, taker, px, qty)
}
func (s *bookSum) Prevented(uint32, uint32, int32) {}

// measureBook is row P2: the book alone, with 1 and 32 symbols, beside the bare
// ladder in turn; every trade is compared by hash.
func measureBook(r *Run) error {
	perCommand := map[int]float64{}
	for _, o := range publishedFlows {
		f := r.flowFor(o)
		var ours, bare []float64
		for range 5 {
			elapsed, _, err := runBook(f, false)
			if err != nil {
				return err
			}
			ours = append(ours, elapsed)
			bare = append(bare, runLadder(f))
		}
		_, ns, err := runBook(f, true)
		if err != nil {
			return err
		}
		book, floor := median(ours), median(bare)
		perCommand[o.Symbols] = book
		n := len(f.Timed())
		r.bench(fmt.Sprintf("Book/op=flow/symbols=%d", o.Symbols), n, time.Duration(book*float64(n)),
			metric{floor, "ladder-ns/op"}, metric{book / floor, "x-ladder"},
			metric{float64(percentile(ns, 50)), "p50-ns"}, metric{float64(percentile(ns, 99)), "p99-ns"},
			metric{float64(percentile(ns, 99.9)), "p99.9-ns"})
		r.atMost("P2", fmt.Sprintf("book against the bare ladder, %d symbols", o.Symbols), book/floor, 1.2)
		r.atMost("P2", fmt.Sprintf("book per command p99, %d symbols, ns (clock included)", o.Symbols), float64(percentile(ns, 99)), 300)
	}
	r.atMost("P2", "book with 32 symbols against 1", perCommand[32]/perCommand[1], 1.6)
	return nil
}

// runBook runs a flow through books on one shelf and returns nanoseconds a
// command, or with each set every command's own time.
func runBook(f *flow.Flow, each bool) (perCommand float64, ns []int64, err error) {
	shelf, err := matcher.NewShelf(1 << 20)
	if err != nil {
		return 0, nil, err
	}
	defer shelf.Close()
	sum := &bookSum{flow.NewResult()}
	books := make([]*matcher.Book, f.Symbols)
	for i := range books {
		if books[i], err = shelf.NewBook(sum); err != nil {
			return 0, nil, err
		}
	}
	for i := range f.Commands[:f.Prefill] {
		applyToBook(books, &f.Commands[i])
	}
	timed := f.Timed()
	start := time.Now()
	if each {
		ns = make([]int64, len(timed))
		for i := range timed {
			begun := time.Now()
			applyToBook(books, &timed[i])
			ns[i] = time.Since(begun).Nanoseconds()
		}
	} else {
		for i := range timed {
			applyToBook(books, &timed[i])
		}
	}
	elapsed := time.Since(start)
	if sum.result != f.Result {
		return 0, nil, fmt.Errorf("book traded %+v, want %+v", sum.result, f.Result)
	}
	return float64(elapsed.Nanoseconds()) / float64(len(timed)), ns, nil
}

func applyToBook(books []*matcher.Book, c *flow.Command) {
	b := books[c.Symbol]
	if c.Op == flow.Cancel {
		b.Cancel(c.ID)
		return
	}
	b.Limit(c.ID, 0, matcher.Side(c.Side), c.Px, c.Qty)
}

// runLadder runs a flow through the bare ladder and returns nanoseconds a command.
func runLadder(f *flow.Flow) float64 {
	ladder := flow.NewLadder(f.Symbols, f.MaxID)
	for i := range f.Commands[:f.Prefill] {
		ladder.Apply(&f.Commands[i])
	}
	timed := f.Timed()
	start := time.Now()
	for i := range timed {
		ladder.Apply(&timed[i])
	}
	return float64(time.Since(start).Nanoseconds()) / float64(len(timed))
}
