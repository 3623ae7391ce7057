package perf

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"posttrade/perf/latency"
	"posttrade/perf/load"
)

// besideRounds is how often orders alone and orders beside other work take turns, in
// rounds of both, and besideTurn how long the shorter turns are. Whoever comes second finds
// what the first has left behind, so the order changes from round to round.
const (
	besideRounds = 8
	besideTurn   = 1500 * time.Millisecond
)

// besideLimit is how much the other work may cost the orders at p99.
const besideLimit = 1.2

// besideRate is the share of the engine's saturation at which the orders come.
const besideRate = 0.1

// beside compares the latency of single orders to one engine without and with work
// beside them.
type beside struct {
	name      string // of the work
	target    load.Target
	clock     load.Clock
	perSecond float64
	alone     time.Duration                 // how long the orders come alone
	work      func(round int) error         // the orders come until it returns
	after     func(name string, orders int) // looks at a phase that has ended; nil: nobody
}

func (r *Run) besideWork(b beside) (p paired, err error) {
	var alone, with []time.Duration
	err = inTurns(besideRounds, func(round int) error {
		s, err := r.besidePhase(b, besideNothing, round, func(int) error { time.Sleep(b.alone); return nil })
		if err == nil {
			alone = append(alone, s.At(99))
		}
		return err
	}, func(round int) error {
		s, err := r.besidePhase(b, b.name, round, b.work)
		if err == nil {
			with = append(with, s.At(99))
		}
		return err
	})
	if err != nil {
		return paired{}, err
	}
	return pairs(alone, with), nil
}

// inTurns takes the turns of every round, forwards and backwards by turns: A B, B A, ...
func inTurns(rounds int, turns ...func(round int) error) error {
	for round := range rounds {
		for i := range turns {
			if round%2 == 1 {
				i = len(turns) - 1 - i
			}
			if err := turns[i](round); err != nil {
				return err
			}
		}
	}
	return nil
}

// paired is what rounds of two turns say of each other.
type paired struct {
	ratio, least, most float64       // of the second to the first, in the same round: the median, and the ends
	without            time.Duration // the median of the first
	rounds             int
}

// pairs compares the turns of every round. What else the machine does lasts longer than
// a round, or is in a few of them: the median of their ratios is of neither.
func pairs(without, with []time.Duration) paired {
	var ratios, alone []float64
	for i := range without {
		ratios = append(ratios, float64(with[i])/float64(max(without[i], 1)))
		alone = append(alone, float64(without[i]))
	}
	return paired{median(ratios), slices.Min(ratios), slices.Max(ratios), time.Duration(median(alone)), len(ratios)}
}

// judgeBeside says how much the work beside may cost the orders at p99, and what was seen.
func (r *Run) judgeBeside(row, text string, p paired) {
	r.atMost(row, text, p.ratio, besideLimit).beside("median of %d rounds, %.3g to %.3g; without %.4g us", p.rounds, p.least, p.most, microseconds(p.without))
}

// besidePhase sends orders for as long as the work takes.
func (r *Run) besidePhase(b beside, name string, round int, work func(round int) error) (*latency.Summary, error) {
	arrivals, err := load.Constant(b.perSecond)
	if err != nil {
		return nil, err
	}
	until := &untilDone{Arrivals: arrivals}
	ended := make(chan error, 1)
	begun := time.Now()
	go func() {
		ended <- work(round)
		until.done.Store(true)
	}()
	result, err := load.Run(b.target, load.Options{Arrivals: until, For: longestPhase, Clock: b.clock})
	if err != nil {
		return nil, err // of the orders: the work may go on for ever
	}
	if err := <-ended; err != nil {
		return nil, err
	}
	more := append([]metric{{result.PerSecond(), "requests/s"}, {time.Since(begun).Seconds(), "s"}}, distribution(result.Latency)...)
	r.figures(fmt.Sprintf("Beside/op=orders/work=%s/beside=%s/round=%d", b.name, name, round), more...)
	if b.after != nil {
		b.after(name, result.Requests)
	}
	return result.Latency, nil
}

// longestPhase is how long orders come when the work does not end.
const longestPhase = 5 * time.Minute

// untilDone is arrivals that end when something else has.
type untilDone struct {
	load.Arrivals
	done atomic.Bool
}

func (u *untilDone) Next() time.Duration {
	if u.done.Load() {
		return math.MaxInt64
	}
	return u.Arrivals.Next()
}

// saturation measures the rate that the target ends at, and sets that of the orders.
func (b *beside) saturation(r *Run) (err error) {
	most, err := load.Saturate(b.target, curveWindow, r.duration(2*time.Second), b.clock)
	b.perSecond = most * besideRate
	return err
}
