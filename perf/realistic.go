package perf

import (
	"fmt"
	"math"
	"slices"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
	"posttrade/ring"
)

// What the row asks for. The rate is that of two cores: one decides, the other reads every report.
// No regime may be more than twice as fast as another, because a book that is tuned for one kind of
// day would be slow on the others.
var (
	realisticWorst  = atLeast("P3", 10, "realistic flow, worst of five regimes, M messages/s")
	realisticSpread = atMost("P3", 2, "realistic flow, the best regime against the worst")
)

// applyRealistic carries out one message of a realistic flow. The book has no owners, no limits and
// no clock: it is the book alone.
func applyRealistic(b *matcher.Book, c *flow.Command) matcher.Outcome {
	switch c.Op {
	case flow.Cancel:
		return b.Cancel(c.ID)
	case flow.Modify:
		return b.Modify(c.ID, c.Px, c.Qty)
	}
	return b.Limit(c.ID, 0, matcher.Side(c.Side), c.Px, c.Qty)
}

// runRealistic runs a realistic flow through one book and passes every report to another core. It
// returns how long the messages took and how many reports there were, fills included. The time ends
// when both cores have finished. Trades that differ from the flow's, or a refusal, are an error.
func runRealistic(f *flow.Flow) (elapsed time.Duration, reports int, err error) {
	const slots = 1 << 14
	region, err := ring.Memfd("posttrade-perf", ring.SPSCBytes[bookReport](slots))
	if err != nil {
		return 0, 0, err
	}
	defer region.Close()
	q, err := ring.NewSPSC[bookReport](region, slots)
	if err != nil {
		return 0, 0, err
	}
	sink := &reporter{q}
	book, err := matcher.NewBook(matcher.BookOptions{Sink: sink})
	if err != nil {
		return 0, 0, err
	}
	defer book.Close()
	for i := range f.Commands[:f.Prefill] {
		applyRealistic(book, &f.Commands[i]) // these orders only rest: nothing to report
	}
	timed := f.Timed()
	other := &reader{result: flow.NewResult()}
	elapsed = pair(func() {
		for i := range timed {
			sink.outcome(&timed[i], applyRealistic(book, &timed[i]))
			if i%reportBatch == 0 {
				q.Publish()
			}
		}
		q.Publish()
	}, func() { other.read(q, len(timed)) })
	if other.result != f.Result || other.rejected != 0 {
		return 0, 0, fmt.Errorf("the other core read %+v with %d refusals, want %+v", other.result,
			other.rejected, f.Result)
	}
	return elapsed, len(timed) + int(f.Result.Trades), nil
}

// runAlone runs a realistic flow through one book without reports and returns nanoseconds per
// message: the book's part of the row's time.
func runAlone(f *flow.Flow) (perMessage float64, err error) {
	sum := &bookSum{flow.NewResult()}
	book, err := matcher.NewBook(matcher.BookOptions{Sink: sum})
	if err != nil {
		return 0, err
	}
	defer book.Close()
	for i := range f.Commands[:f.Prefill] {
		applyRealistic(book, &f.Commands[i])
	}
	timed := f.Timed()
	start := time.Now()
	for i := range timed {
		applyRealistic(book, &timed[i])
	}
	elapsed := time.Since(start)
	if sum.result != f.Result {
		return 0, fmt.Errorf("book traded %+v, want %+v", sum.result, f.Result)
	}
	return float64(elapsed.Nanoseconds()) / float64(len(timed)), nil
}

// shape describes the contents of a realistic flow, so that a reader of the results sees what was
// measured: the figures of two shapes do not compare.
type shape struct {
	prices    int // that any message names
	cancelled int // of a hundred orders
	modifies  int // of a hundred messages
}

// shapeOf counts what the whole flow names, and what its timed messages do. The shares are rounded
// down.
func shapeOf(f *flow.Flow) shape {
	var ops [4]int
	prices := map[int64]bool{}
	for i := range f.Commands {
		prices[f.Commands[i].Px] = true
	}
	for _, c := range f.Timed() {
		ops[c.Op]++
	}
	return shape{len(prices), 100 * ops[flow.Cancel] / max(ops[flow.New], 1),
		100 * ops[flow.Modify] / len(f.Timed())}
}

// measureRealistic is row P3: mostly cancels and modifies in five regimes over tens of thousands of
// prices, every report through a ring to another core.
//
// The load is generated (flow.Realistic, seed 42), two million messages a regime, as fast as the
// two cores go. It measures no risk checks, no journal and no latency. One core alone stands beside
// it in the results (one-core-ns/op), and the bare ladder on the same messages; the difference to
// the former is what handing the reports over costs. Figures are million messages a second. They
// lie when the two virtual cores are far apart, as in row P1.
func measureRealistic(r *Run) error {
	slowest, fastest := math.Inf(1), 0.0
	ladder := 0.0 // ns per message, in the slowest
	for _, regime := range flow.Regimes() {
		o := flow.RealisticOptions{Seed: 42, Regime: regime, N: r.scale(2_000_000)}
		if r.o.Smoke {
			o.Prefill = 1000
		}
		f := flow.Realistic(o)
		rate, bare, err := r.measureRegime(regime, f)
		if err != nil {
			return fmt.Errorf("%v: %w", regime, err)
		}
		if rate < slowest {
			slowest, ladder = rate, bare
		}
		fastest = max(fastest, rate)
	}
	r.judge(realisticWorst, slowest).
		beside("bare ladder in it, no reports, %.4g M/s", 1e3/ladder)
	r.judge(realisticSpread, fastest/slowest).
		beside("best %.4g M/s", fastest)
	return nil
}

// measureRegime measures the flow of one regime three times, in turns with a ladder and with one
// core alone. It returns our rate in millions of messages a second, and the ladder's nanoseconds a
// message. The fastest of the three counts for each.
func (r *Run) measureRegime(regime flow.Regime, f *flow.Flow) (rate, ladder float64, err error) {
	var bare, alone, ours []float64
	reports, messages := 0, float64(len(f.Timed()))
	for range 3 {
		one, err := runAlone(f)
		if err != nil {
			return 0, 0, err
		}
		alone = append(alone, one)
		elapsed, n, err := runRealistic(f)
		if err != nil {
			return 0, 0, err
		}
		reports = n
		ours = append(ours, float64(elapsed.Nanoseconds())/messages)
		bare = append(bare, runLadder(f))
	}
	per := slices.Min(ours)
	rate, ladder = 1e3/per, slices.Min(bare)
	s := shapeOf(f)
	r.bench(fmt.Sprintf("Book/op=realistic/regime=%s", regime), len(f.Timed()),
		time.Duration(per*messages),
		metric{rate, "M/s"}, metric{float64(reports) / messages, "reports/op"},
		metric{slices.Min(alone), "one-core-ns/op"}, metric{ladder, "ladder-ns/op"},
		metric{float64(s.prices), "prices"}, metric{float64(s.cancelled), "cancelled-%"},
		metric{float64(s.modifies), "modifies-%"})
	return rate, ladder, nil
}
