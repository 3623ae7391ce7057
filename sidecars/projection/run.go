package projection

import (
	"context"
	"errors"
	"time"

	"posttrade/sidecars/pace"
)

// phase is the outcome of the last step.
type phase uint8

const (
	starting  phase = iota // no step has ended yet
	following              // the last step succeeded
	failing                // the last step failed and will be retried
	stopped                // ErrSequence or ErrForeign
)

// Run projects until ctx ends, and then returns nil. It returns ErrSequence or ErrForeign when it
// must not go on. It retries after a pause on any other error.
//
// One goroutine calls it. A batch that did not reach the head as it was before is followed by the
// next at once, or after a rest; else Run waits for the poll. There is no signal from the journal:
// the poll is what a new fill waits for.
func (p *Projection) Run(ctx context.Context) error {
	var failures pace.Backoff
	timer := time.NewTimer(p.o.Poll)
	defer timer.Stop()
	for {
		begun := p.clock()
		_, before := p.o.Journal.Head()
		rows, err := p.Step(ctx)
		wait := p.o.Poll
		switch {
		case ctx.Err() != nil:
			return nil
		case final(err):
			return err
		case err != nil:
			wait = failures.Next()
		default:
			failures.Reset()
			if rest := p.rest(rows, before, p.clock().Sub(begun)); rest > 0 {
				p.rested(rest)
				wait = rest // there is more work already: do not wait for the poll
			} else if at, _ := p.Projected(); rows > 0 && at < before {
				continue // behind
			}
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
	}
}

// rest is how long to leave the disk alone after a batch, when trades came while it was written.
// The journal's syncs wait for the database's: on one disk a projection at full speed would make
// every order wait for its commits. A rest costs nothing when trades are few, and there is none
// when no more come. It is a multiple of the batch's work, which pace.Work bounds by the number of
// rows. So time in which the database stood still does not make the rest longer.
//
// before is the head that was read before the batch.
func (p *Projection) rest(rows int, before uint64, took time.Duration) time.Duration {
	if _, now := p.o.Journal.Head(); rows == 0 || now == before {
		return 0
	}
	return pace.Rest(p.o.Rest, took, rows)
}

// final reports whether a retry after err could do harm.
func final(err error) bool { return errors.Is(err, ErrSequence) || errors.Is(err, ErrForeign) }

// note stores the outcome of a step, and logs it when it differs from the last one.
//
// So a database that is away for hours costs one line, and another when it is back.
func (p *Projection) note(err error) {
	to := following
	switch {
	case final(err):
		to = stopped
	case err != nil:
		to = failing
	}
	if errors.Is(err, ErrForeign) {
		p.foreign.Store(true)
	}
	p.mu.Lock()
	from, at := p.phase, p.shown
	p.phase = to
	p.mu.Unlock()
	if from == to {
		return
	}
	switch to {
	case following:
		p.log.Info("projection follows the journal", "tradeSeq", at.trade, "inputSeq", at.input)
	case failing:
		p.log.Warn("projection is interrupted and will be retried", "tradeSeq", at.trade, "error", err)
	case stopped:
		p.log.Error("projection has stopped", "tradeSeq", at.trade, "error", err)
	}
}
