package perf

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/load"
)

// besideRounds is how often orders alone and orders beside other work take turns, in rounds of
// both. besideTurn is the length of the shorter turns. The second turn of a round finds what the
// first one has left behind, so the order changes from round to round. An even number of rounds has
// both orders equally often.
const (
	besideRounds = 8
	besideTurn   = 1500 * time.Millisecond
)

// besideLimit is the factor by which the other work may raise the orders' p99. It is asked of a
// machine with cores and a disk to spare; docs/performance.md has the reasons where it is missed,
// and the figure itself is what a reader compares.
const besideLimit = 1.2

// besideRate is the rate of the orders, as a share of the engine's saturation. A tenth leaves room
// for other work, so that a longer p99 is the work's and not that of a queue.
const besideRate = 0.1

// beside compares the latency of single orders to one engine without and with other work beside
// them. The load is an open loop at constant distances: an order that is delayed does not delay the
// next one's due time, so that a stop of the engine is charged to all orders due in it.
type beside struct {
	// name is that of the work, in the lines of the results.
	name   string
	target load.Target
	// clock must be the one that target stamps its answers with.
	clock load.Clock
	// perSecond is the rate of the orders; saturation sets it from the target.
	perSecond float64
	// alone is how long a phase of orders alone is. A phase with the work is as long as the work.
	alone time.Duration
	// work runs on a goroutine of its own; orders come until it returns. It may state figures, because
	// the row's goroutine states none meanwhile.
	work func(round int) error
	// after looks at a phase that has ended, with its name and its number of orders; nil: no call.
	// Name is besideNothing or the name of the work.
	after func(name string, orders int)
}

// besideWork measures all rounds and pairs them. An error of orders or work ends it; work that is
// under way after an error of the orders is not waited for.
func (r *Run) besideWork(b beside) (p paired, err error) {
	var alone, with []time.Duration
	err = inTurns(besideRounds, func(round int) error {
		s, err := r.besidePhase(b, besideNothing, round,
			func(int) error { time.Sleep(b.alone); return nil })
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

// inTurns runs the turns of every round in changing order: A B, B A, ... It stops at the first
// error.
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

// paired is the comparison of two turns over several rounds, by p99.
type paired struct {
	// of the second to the first, in the same round: the median, and the extremes
	ratio, least, most float64
	// without is the median of the first turns: the orders alone.
	without time.Duration
	rounds  int
}

// pairs compares the turns of every round. Other work of the machine lasts longer than a round, or
// is in a few rounds only, so the median of the ratios does not include it. Both slices have one
// value for each round, in the same order.
func pairs(without, with []time.Duration) paired {
	var ratios, alone []float64
	for i := range without {
		ratios = append(ratios, float64(with[i])/float64(max(without[i], 1)))
		alone = append(alone, float64(without[i]))
	}
	return paired{median(ratios), slices.Min(ratios), slices.Max(ratios), time.Duration(median(alone)),
		len(ratios)}
}

// judgeBeside judges how much the other work costs the orders at p99, and states the figures: the
// median ratio, the lowest and the highest one, and p99 without the work in microseconds. Rounds
// that differ widely say that the machine was not quiet.
func (r *Run) judgeBeside(g goal, p paired, args ...any) {
	r.judge(g, p.ratio, args...).beside("median of %d rounds, %.3g to %.3g; without %.4g us",
		p.rounds, p.least, p.most, microseconds(p.without))
}

// besidePhase sends orders until the work is done, waits for all answers, and states the phase's
// line.
func (r *Run) besidePhase(b beside, name string, round int,
	work func(round int) error) (*latency.Summary, error) {
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
		return nil, err // of the orders: the work may never end
	}
	if err := <-ended; err != nil {
		return nil, err
	}
	more := append([]metric{{result.PerSecond(), "requests/s"}, {time.Since(begun).Seconds(), "s"}},
		distribution(result.Latency)...)
	r.figures(fmt.Sprintf("Beside/op=orders/work=%s/beside=%s/round=%d", b.name, name, round), more...)
	if b.after != nil {
		b.after(name, result.Requests)
	}
	return result.Latency, nil
}

// longestPhase is how long orders come at most when the work does not end. The phase is then
// waiting for the work all the same: only the orders stop.
const longestPhase = 5 * time.Minute

// untilDone are arrivals that end when other work has ended. The work's goroutine sets done; the
// load's goroutine reads it once for each arrival, so the end is at most one arrival late.
type untilDone struct {
	load.Arrivals
	done atomic.Bool
}

// Next is due after every end once done is set, so that the load sends no more and waits for its
// answers.
func (u *untilDone) Next() time.Duration {
	if u.done.Load() {
		return math.MaxInt64
	}
	return u.Arrivals.Next()
}

// saturation measures the rate at which the target is saturated, and sets the rate of the orders to
// a share of it. The rate is of this engine in this run: rows of two runs have other rates.
func (b *beside) saturation(r *Run, share float64) (err error) {
	most, err := load.Saturate(b.target, curveWindow, r.duration(2*time.Second), b.clock)
	b.perSecond = most * share
	return err
}
