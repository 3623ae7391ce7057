package perf

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"posttrade/perf/latency"
	"posttrade/perf/load"
)

// besideRounds is how often orders alone and orders beside other work take turns. The
// lowest figure of each counts: what else the machine did is in the others.
const besideRounds = 3

// besideLimit is how much the other work may cost the orders at p99.
const besideLimit = 1.2

// besideRate is the share of the engine's saturation at which the orders come.
const besideRate = 0.1

// beside compares the latency of single orders to one engine without and with work
// beside them, and returns the lowest p99 of each.
type beside struct {
	name      string // of the work
	target    load.Target
	clock     load.Clock
	perSecond float64
	alone     time.Duration                 // how long the orders come alone
	work      func(round int) error         // the orders come until it returns
	after     func(name string, orders int) // looks at a phase that has ended; nil: nobody
}

func (r *Run) besideWork(b beside) (alone, with time.Duration, err error) {
	alone, with = math.MaxInt64, math.MaxInt64
	for round := range besideRounds {
		quiet, err := r.besidePhase(b, "nothing", round, func(int) error { time.Sleep(b.alone); return nil })
		if err != nil {
			return 0, 0, err
		}
		busy, err := r.besidePhase(b, b.name, round, b.work)
		if err != nil {
			return 0, 0, err
		}
		alone, with = min(alone, quiet.At(99)), min(with, busy.At(99))
	}
	return alone, with, nil
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
