package perf

import (
	"errors"
	"fmt"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
)

// What the row asks for: a command on 32 books in turns, whose memory competes for the caches, may
// take 1.6 times as long as one on a single book.
var bookSpread = atMost("P2", 1.6, "book with 32 symbols against 1")

// bookLadder asks that a book which refuses bad orders, prevents self-trades and reports its fills
// takes at most a fifth longer a command than flow.Ladder, which does none of it.
func bookLadder(symbols int) goal {
	return atMost("P2", 1.2, fmt.Sprintf("book against the bare ladder, %d symbols", symbols))
}

// bookSlowest asks for a p99 a command in nanoseconds. The clock is read twice a command there,
// which is in the figure; the ladder's own p99, which stands beside it, has it too.
func bookSlowest(symbols int) goal {
	return atMost("P2", 300, fmt.Sprintf("book per command p99, %d symbols, ns (clock included)",
		symbols))
}

// publishedFlows are the order flows for which the peers' figures were published: half new orders,
// four tenths cancels, one tenth takers, as flow.Generate makes them. Seed and numbers must not
// change, or results of builds no longer compare.
var publishedFlows = []flow.Options{
	{Seed: 42, Symbols: 1, Prefill: 50_000, N: 1_000_000},
	{Seed: 42, Symbols: 32, Prefill: 100_000, N: 1_000_000},
}

// flowFor generates a published flow, shortened for a smoke run.
func (r *Run) flowFor(o flow.Options) *flow.Flow {
	o.N, o.Prefill = r.scale(o.N), r.scale(o.Prefill)
	return flow.Generate(o)
}

// bookSum sums the trades of books, as flow.Result does: their number, quantity and notional, and a
// hash over the parties, price and quantity of each, so that a wrong or missing fill changes it.
type bookSum struct{ result flow.Result }

func (s *bookSum) Filled(maker, taker uint32, px int64, qty int32) {
	s.result.Add(maker, taker, px, qty)
}

// Prevented cannot happen: the orders of a flow have no owner.
func (s *bookSum) Prevented(uint32, uint32, int32) {}

// flowRuns is how often a row runs its flow, our book and the bare ladder in turns. The least time
// of each piece of the flow counts.
const flowRuns = 5

// measureBook is row P2: the book alone, with 1 and 32 symbols, in turns with the bare ladder. It
// compares every trade by hash. It also prints the ladder's own p99, which is what main memory and
// the clock of this machine cost. Books and ladder have been through the flow once before, so that
// the time measured is that of matching and not that of the first touch of memory.
//
// The load is a generated flow of a million commands, one after the other on the calling goroutine,
// with no time between them: throughput of one core with warm caches. It has no risk checks, no
// accounts, no journal and no other thread; row P4 has the checks. Nanoseconds a command come from
// runs without a clock in the loop, the percentiles from one more run that times each command.
func measureBook(r *Run) error {
	perCommand := map[int]float64{}
	for _, o := range publishedFlows {
		f := r.flowFor(o)
		n := len(f.Timed())
		books, err := newFlowBooks(f)
		if err != nil {
			return err
		}
		ladder := newFlowLadder(f)
		var ours, bare pieces
		for range flowRuns {
			if err := books.run(ours.time); err != nil {
				return errors.Join(err, books.memory.Close())
			}
			ladder.run(bare.time)
		}
		ns := make([]int64, n)
		err = books.run(func(_ int, step func(lo, hi int)) { each(ns, step) })
		if err := errors.Join(err, books.memory.Close()); err != nil {
			return err
		}
		bareNs := make([]int64, n)
		ladder.run(func(_ int, step func(lo, hi int)) { each(bareNs, step) })
		book, floor := ours.perStep(n), bare.perStep(n)
		perCommand[o.Symbols] = book
		r.bench(fmt.Sprintf("Book/op=flow/symbols=%d", o.Symbols), n, time.Duration(book*float64(n)),
			metric{floor, "ladder-ns/op"}, metric{book / floor, "x-ladder"},
			metric{float64(percentile(ns, 50)), "p50-ns"}, metric{float64(percentile(ns, 99)), "p99-ns"},
			metric{float64(percentile(ns, 99.9)), "p99.9-ns"},
			metric{float64(percentile(bareNs, 99)), "ladder-p99-ns"})
		r.judge(bookLadder(o.Symbols), book/floor).beside("ladder %.4g ns", floor)
		r.judge(bookSlowest(o.Symbols), float64(percentile(ns, 99))).
			beside("ladder %d ns", percentile(bareNs, 99))
	}
	r.judge(bookSpread, perCommand[32]/perCommand[1])
	return nil
}

// pieces is the least time that each piece of a flow has taken over several runs, so that what the
// machine did to one run does not count. Both sides of a ratio are taken this way. The sum is of no
// run that ever happened, and lower than the fastest one: it is for ratios, not for promises.
type pieces [200]time.Duration

// time runs n steps piece by piece.
func (p *pieces) time(n int, step func(lo, hi int)) {
	for i := range p {
		lo, hi := n*i/len(p), n*(i+1)/len(p)
		start := time.Now()
		step(lo, hi)
		if took := time.Since(start); p[i] == 0 || took < p[i] {
			p[i] = took
		}
	}
}

// perStep is nanoseconds per step, of n in all pieces together.
func (p *pieces) perStep(n int) float64 {
	sum := time.Duration(0)
	for _, took := range p {
		sum += took
	}
	return float64(sum.Nanoseconds()) / float64(n)
}

// each times every step separately, in nanoseconds. Each time includes a reading of the clock.
func each(ns []int64, step func(lo, hi int)) {
	for i := range ns {
		start := time.Now()
		step(i, i+1)
		ns[i] = time.Since(start).Nanoseconds()
	}
}

// flowBooks are the books of a flow in one memory, used for every run of it.
//
// One BookMemory has the orders of all books, as in an engine. The books are emptied and filled
// again before each run instead of made anew, so that every run finds the same memory.
type flowBooks struct {
	flow   *flow.Flow
	memory *matcher.BookMemory
	books  []*matcher.Book
	sum    *bookSum
}

// newFlowBooks makes books and runs the flow through them once, which touches every page that the
// runs need. The caller closes the memory.
func newFlowBooks(f *flow.Flow) (*flowBooks, error) {
	memory, err := matcher.NewBookMemory(1 << 20)
	if err != nil {
		return nil, err
	}
	b := &flowBooks{flow: f, memory: memory, books: make([]*matcher.Book, f.Symbols), sum: &bookSum{}}
	for i := range b.books {
		if b.books[i], err = memory.NewBook(b.sum); err != nil {
			return nil, errors.Join(err, memory.Close())
		}
	}
	for i := range f.Commands {
		applyToBook(b.books, &f.Commands[i])
	}
	return b, nil
}

// run builds the flow's books again, runs the rest of the flow under timed, and compares the
// trades.
//
// Cancels and prefill are not timed. timed gets the number of commands and a function that applies
// those from lo up to hi, in order; it must apply each of them once.
func (b *flowBooks) run(timed func(n int, step func(lo, hi int))) error {
	for i := range b.flow.Commands {
		if c := &b.flow.Commands[i]; c.Op == flow.New {
			b.books[c.Symbol].Cancel(c.ID) // most are not on the book any more: refused
		}
	}
	b.sum.result = flow.NewResult()
	for i := range b.flow.Commands[:b.flow.Prefill] {
		applyToBook(b.books, &b.flow.Commands[i])
	}
	rest := b.flow.Timed()
	timed(len(rest), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			applyToBook(b.books, &rest[i])
		}
	})
	if b.sum.result != b.flow.Result {
		return fmt.Errorf("book traded %+v, want %+v", b.sum.result, b.flow.Result)
	}
	return nil
}

// flowLadder is flowBooks for the bare ladder. It compares no trades: the ladder made the expected
// ones when the flow was generated.
type flowLadder struct {
	flow   *flow.Flow
	ladder *flow.Ladder
}

// newFlowLadder makes the ladder and runs the flow through it once, as newFlowBooks does for the
// books, so that neither side of the ratio meets new memory.
func newFlowLadder(f *flow.Flow) *flowLadder {
	l := &flowLadder{f, flow.NewLadder(f.Symbols, f.MaxID)}
	for i := range f.Commands {
		l.ladder.Apply(&f.Commands[i])
	}
	return l
}

func (l *flowLadder) run(timed func(n int, step func(lo, hi int))) {
	for i := range l.flow.Commands {
		if c := &l.flow.Commands[i]; c.Op == flow.New {
			l.ladder.Apply(&flow.Command{Op: flow.Cancel, ID: c.ID})
		}
	}
	for i := range l.flow.Commands[:l.flow.Prefill] {
		l.ladder.Apply(&l.flow.Commands[i])
	}
	rest := l.flow.Timed()
	timed(len(rest), func(lo, hi int) {
		for i := lo; i < hi; i++ {
			l.ladder.Apply(&rest[i])
		}
	})
}

// applyToBook applies one command of a generated flow. Owner 0 of every order is none, so that
// there is no self-trade to prevent.
func applyToBook(books []*matcher.Book, c *flow.Command) {
	b := books[c.Symbol]
	if c.Op == flow.Cancel {
		b.Cancel(c.ID)
		return
	}
	b.Limit(c.ID, 0, matcher.Side(c.Side), c.Px, c.Qty)
}

// runLadder runs a flow through the bare ladder once and returns nanoseconds per command. The
// ladder is new, so the first touch of memory behind the prefill is in the figure.
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
