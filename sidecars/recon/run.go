package recon

import (
	"context"
	"time"

	"posttrade/sidecars/pace"
)

// minPause is the shortest pause between two steps of the verification.
const minPause = time.Millisecond

// verifyRest is how long a step of the verification leaves the disk alone, in multiples of its own
// time.
const verifyRest = 3

// Run sweeps every Interval and verifies at the pace of VerifyInterval, until ctx ends; then it
// returns nil. While the database or the history cannot be read it waits and tries again; the
// cursors have not moved, so nothing is lost.
//
// One goroutine calls it. The task that is due first runs next, so a long sweep delays a step of
// the verification and never runs beside it.
func (r *Recon) Run(ctx context.Context) error {
	sweep := task{name: "sweep", run: r.Sweep, pause: r.sweepPause}
	verify := task{name: "verify", run: r.VerifyStep, pause: r.verifyPause}
	verify.at = time.Now().Add(min(r.o.Interval, r.verifyPause(0)))
	for {
		next := &sweep
		if verify.at.Before(sweep.at) {
			next = &verify
		}
		timer := time.NewTimer(time.Until(next.at))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		next.do(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// task is work that Run repeats.
//
// pause gives the time from the end of a run to the next, from how long the run took.
type task struct {
	name   string
	run    func(ctx context.Context) error
	pause  func(took time.Duration) time.Duration
	at     time.Time // when it is due; the zero time: at once
	failed pace.Backoff
}

// do runs the task once and sets when it is due again.
//
// A failure is logged once for a row of failures; the error that is shown is the first.
func (t *task) do(ctx context.Context, r *Recon) {
	start := time.Now()
	err := t.run(ctx)
	if ctx.Err() != nil {
		return
	}
	took := time.Since(start)
	if err != nil {
		if !t.failed.Failing() {
			r.o.Logger.Warn("recon: "+t.name+" is held up", "error", err)
		}
		t.at = time.Now().Add(t.failed.Next())
		return
	}
	if t.failed.Failing() {
		r.o.Logger.Info("recon: " + t.name + " goes on")
		t.failed.Reset()
	}
	t.at = time.Now().Add(t.pause(took))
}

// sweepPause leaves Interval between the starts of two sweeps, and at least a tenth of it between
// the end of one and the start of the next.
func (r *Recon) sweepPause(took time.Duration) time.Duration {
	return max(r.o.Interval-took, r.o.Interval/10)
}

// verifyPause spreads one round over VerifyInterval, and leaves the disk alone for three times the
// work of a step. A history that takes more than a quarter of VerifyInterval to read takes longer
// than VerifyInterval for its round.
func (r *Recon) verifyPause(took time.Duration) time.Duration {
	steps := max((r.cursor.Load()+r.bounds.page-1)/r.bounds.page, 1)
	rest := pace.Rest(verifyRest, took, int(r.bounds.page))
	return max(r.o.VerifyInterval/time.Duration(steps)-took, rest, minPause)
}
