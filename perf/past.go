package perf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"posttrade/journal/asof"
	"posttrade/journal/whatif"
	"posttrade/matcher"
)

// What the row asks for: milliseconds at the median, of a first look at a moment and of the step
// after it; and million commands a second of a whole history that is decided anew.
var (
	pastMoment = atMost("P17", 1000, "any moment of %d commands, p50, ms").
			as("as of any sequence of a long journal, p50, ms")
	pastNext   = atMost("P17", 1, "the next moment, p50, ms")
	whatIfRate = atLeast("P17", 5, "what if, M commands/s")
)

// How many moments row P17 looks at, and how many commands it goes on from each. The median of a
// hundred first looks is stable; their p99 is the slowest of them.
const (
	pastMoments = 100
	pastSteps   = 20
)

// measurePast is row P17: any moment of ten million commands, the next one from there, and the
// whole decided anew. The history is the flow of row P6 on eight securities, with small books, so
// that no moment has much state. It was just written, so its files are in the kernel's cache.
// Nothing else runs meanwhile: what a question costs the orders beside it is not measured.
func measurePast(r *Run) error { return r.withHistory("past", 10_000_000, r.past) }

// past opens the history over the row's journal, with checkpoints in a folder of their own.
func (r *Run) past(d *fullEngine, n int) (err error) {
	h, err := asof.New(d.Journal, asof.Options{Dir: filepath.Join(r.o.Dir, "asof")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	if err := r.moments(h, n); err != nil {
		return err
	}
	return r.decideAnew(h)
}

// moments looks at random moments, after the checkpoints are made, and states what they cost:
// seconds to make, their number, MiB on disk, and MiB of what stays in memory. A first look
// restores a checkpoint and decides from there; how far, depends on the distance between two
// checkpoints.
func (r *Run) moments(h *asof.History, n int) error {
	ctx := context.Background()
	head, _ := h.Journal().Head()
	if err := h.Journal().WaitStable(ctx, head); err != nil {
		return err
	}
	start := time.Now()
	if err := h.Checkpoint(ctx); err != nil {
		return err
	}
	count, bytes := h.Checkpoints()
	r.figures("Past/op=checkpoints", metric{time.Since(start).Seconds(), "s"},
		metric{float64(count), "checkpoints"}, metric{float64(bytes) / (1 << 20), "MiB"})
	first, next, err := lookAround(ctx, h, head)
	if err != nil {
		return err
	}
	slices.Sort(first)
	slices.Sort(next)
	r.figures(fmt.Sprintf("Past/op=moment/commands=%d", n), metric{first[len(first)/2], "ms-p50"},
		metric{first[len(first)*99/100], "ms-p99"}, metric{float64(h.Bytes()) / (1 << 20),
			"MiB-resident"})
	r.figures("Past/op=next", metric{next[len(next)/2], "ms-p50"},
		metric{next[len(next)*99/100], "ms-p99"})
	r.judge(pastMoment, first[len(first)/2], n)
	r.judge(pastNext, next[len(next)/2])
	return nil
}

// lookAround looks at random moments and the few that follow each, and returns how many
// milliseconds the first look and the next ones took.
//
// The moments are those of a fixed seed and are spread evenly over the history, so that hardly any
// is near the one before. Next looks go on from a state that is still in memory.
func lookAround(ctx context.Context, h *asof.History, head uint64) (first, next []float64,
	err error) {
	rnd := rand.New(rand.NewPCG(17, 17))
	for range pastMoments {
		at := 1 + rnd.Uint64N(head-pastSteps)
		for step := range uint64(pastSteps) {
			start := time.Now()
			m, err := h.At(ctx, at+step)
			if err != nil {
				return nil, nil, err
			}
			ms := time.Since(start).Seconds() * 1e3
			m.Release()
			if step == 0 {
				first = append(first, ms)
			} else {
				next = append(next, ms)
			}
		}
	}
	return first, next, nil
}

// decideAnew decides the whole history anew: once with nothing changed, which is what the row
// judges, and once with a limit that refuses some of it, to show what differences cost. Both read
// the journal, check it and run two engines. The reports of differences go nowhere.
func (r *Run) decideAnew(h *asof.History) error {
	head := h.Head()
	for _, c := range []struct {
		name    string
		changes whatif.Changes
	}{
		{"no-change", whatif.Changes{}},
		// an order has ten at eight prices: the dearest of them is over this limit
		{"order-notional", whatif.Changes{Limits: map[matcher.LimitID]int64{
			matcher.LimitOrderNotional: 10 * 187_065_000}}},
	} {
		start := time.Now()
		res, err := whatif.Run(context.Background(), h, whatif.Options{From: 1, To: head,
			Changes: c.changes, Report: func(whatif.Difference) error { return nil }})
		if err != nil {
			return err
		}
		if changed := len(c.changes.Limits) > 0; changed != (res.Orders > 0) {
			return fmt.Errorf("what if %s: %d orders are decided otherwise", c.name, res.Orders)
		}
		took := time.Since(start)
		rate := float64(res.Commands) / 1e6 / took.Seconds()
		r.bench("WhatIf/change="+c.name, int(res.Commands), took, metric{rate, "Mcommands/s"},
			metric{float64(res.Orders), "orders-decided-differently"})
		if c.name == "no-change" {
			r.judge(whatIfRate, rate)
		}
	}
	return nil
}
