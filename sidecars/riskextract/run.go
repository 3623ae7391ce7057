package riskextract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"posttrade/sidecars/pace"
	"posttrade/sidecars/store"
)

// maxPause is the longest pause after an error of the engine, the disk or the broker; the longest
// after one of the database is shorter. retryPause is the pause before a refused marker is tried
// again.
const (
	maxPause   = 5 * time.Second
	retryPause = 5 * time.Second
)

// saveEvery bounds the sequences without a marker that a restart looks through again.
const saveEvery = 1 << 20

// Run makes the extract of every durable marker, in order, until ctx ends; then it returns nil. It
// begins after the durable cursor, which passes a marker only when its announcement is sent. While
// the engine, the database, the disk or the broker fails, Run waits and tries again. A refused
// marker is tried again later, and the next ones do not wait for it.
//
// One goroutine calls it, on every member: a follower stores the cuts and leaves the cursor alone,
// so that a new leader finds the cuts made and announces what is missing.
func (x *Extractor) Run(ctx context.Context) error {
	var failures pace.Backoff
	for {
		returned := x.o.Returned() // taken before the round, so that a return during the round counts
		err := x.round(ctx)
		if ctx.Err() != nil {
			return nil
		}
		pause, nudge := x.o.Poll, x.progress.nudge
		switch {
		case err != nil:
			if !failures.Failing() {
				x.o.Logger.Warn("riskextract: held up", "error", err)
			}
			if failures.Most = maxPause; errors.Is(err, store.ErrUnavailable) {
				failures.Most = pace.LastPause // a look at the database costs little
			}
			pause, nudge = failures.Next(), nil // a waiting caller does not make it try more often
		case failures.Failing():
			x.o.Logger.Info("riskextract: goes on")
			failures.Reset()
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-nudge:
		case <-returned:
			failures.Shorten()
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Wait returns nil once the marker of that sequence has been announced. A refusal ends it with
// ErrRefused or ErrMismatch: one in a new try, or the last one while its retryPause lasts, however
// often Wait is called. When there is no marker, it returns nil when Run has passed the sequence.
//
// It nudges Run. Other errors of a try do not end it: Run tries again until ctx ends. On a follower
// it waits for the leader's cursor. Any goroutine.
func (x *Extractor) Wait(ctx context.Context, seq uint64) error {
	p := &x.progress
	refusals := -1 // of the marker, when the waiting began
	for {
		p.mu.Lock()
		changed, a := p.changed, p.find(seq)
		var done bool
		var refused error
		switch {
		case a == nil:
			done, refusals = seq < p.next, max(refusals, 0)
		case a.due.After(x.o.Now()), refusals >= 0 && a.refusals > refusals:
			refused = a.err
		case refusals < 0:
			refusals = a.refusals
		}
		p.mu.Unlock()
		if done || refused != nil {
			return refused
		}
		select {
		case p.nudge <- struct{}{}:
		default: // Run already has a nudge
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("riskextract: wait seq=%d: %w", seq, ctx.Err())
		}
	}
}

// round looks for new markers once, tries those that are due and moves the cursor.
//
// A follower without a cursor of its own reads the leader's in each round, and forgets the markers
// that the leader has announced.
func (x *Extractor) round(ctx context.Context) error {
	follows := x.o.Role() == RoleFollower && x.o.Own == ""
	if x.progress.next == 0 || follows {
		saved, err := x.cursor.load(ctx)
		if err != nil {
			return err
		}
		x.saved = saved
		if err := x.loadFollowed(ctx); err != nil {
			return err
		}
		x.progress.drop(0, saved) // look wakes the callers of Wait
	}
	if err := x.look(ctx); err != nil {
		return err
	}
	if err := x.inTurn(ctx, func() error { return x.tryAll(ctx, x.o.Now()) }); err != nil {
		return err
	}
	return x.save(ctx)
}

// tryAll tries the markers that are due, in order: one engine goes from each to the next.
func (x *Extractor) tryAll(ctx context.Context, now time.Time) error {
	for m, found := x.progress.due(0, now); found; m, found = x.progress.due(m.Seq, now) {
		if err := x.try(ctx, m, now); err != nil {
			return err
		}
	}
	return nil
}

// look adds the markers that have become durable.
//
// Markers may return a part only; next says how far it came.
func (x *Extractor) look(ctx context.Context) error {
	p := &x.progress
	from := max(p.next, x.saved+1)
	markers, next, err := x.o.Markers(ctx, from)
	if err != nil {
		return fmt.Errorf("riskextract: markers from=%d: %w", from, err)
	}
	p.change(func() {
		for _, m := range markers {
			if m.Seq >= from && m.Seq < next { // a later look returns the others again
				p.open = append(p.open, &attempt{Marker: m})
				from = m.Seq + 1
			}
		}
		p.next = max(next, from)
	})
	return nil
}

// try makes one extract. It returns an error only when the engine, the disk, the database or the
// broker failed: later markers would fail too.
//
// now is the time of the round: a marker that is refused is not due again in the same round.
func (x *Extractor) try(ctx context.Context, m Marker, now time.Time) error {
	err := x.extractOnce(ctx, m)
	switch {
	case err == nil, x.o.Own != "" && errors.Is(err, ErrFollower):
		x.progress.drop(m.Seq, m.Seq)
		x.announced = true
		// Even when the cursor cannot be saved, the callers of Wait must not wait longer.
		defer x.progress.wake()
		return x.save(ctx)
	case errors.Is(err, ErrFollower):
		return nil
	case errors.Is(err, ErrRefused), errors.Is(err, ErrMismatch):
		x.progress.change(func() {
			a := x.progress.find(m.Seq)
			if a.err == nil || a.err.Error() != err.Error() {
				x.o.Logger.Error("riskextract: refused", "seq", m.Seq, "error", err)
			}
			a.err, a.due = err, x.o.Now().Add(retryPause)
			a.refusals++
		})
		return nil
	}
	return err
}

// save moves the durable cursor up to the first open marker, if that is worth a write.
//
// It is worth a write when a marker was announced, or when saveEvery sequences have passed. A
// follower moves its own cursor, never the leader's.
func (x *Extractor) save(ctx context.Context) error {
	x.progress.mu.Lock()
	passed := x.progress.passed()
	x.progress.mu.Unlock()
	if passed <= x.saved || !x.announced && passed-x.saved < saveEvery ||
		x.o.Role() == RoleFollower && x.o.Own == "" {
		return nil
	}
	if err := x.cursor.save(ctx, passed); err != nil {
		return err
	}
	x.saved, x.announced = passed, false
	if x.own == nil || passed <= x.followed {
		return nil
	}
	if err := x.own.save(ctx, passed); err != nil {
		return err
	}
	x.followed = passed
	return nil
}

// loadFollowed decides whether the cursor in Followed moves: only if this member has made every cut
// up to the leader's cursor. A follower that has is at most saveEvery behind it, without a marker
// between. Where it is not known yet whether there is one, the cursor stays.
func (x *Extractor) loadFollowed(ctx context.Context) (err error) {
	if x.o.Followed == "" {
		return nil
	}
	own := fileCursor{x.o.Followed}
	if x.followed, err = own.load(ctx); err != nil || x.followed+saveEvery < x.saved {
		return err
	}
	if x.followed < x.saved {
		markers, next, err := x.o.Markers(ctx, x.followed+1)
		if err != nil {
			return fmt.Errorf("riskextract: markers from=%d: %w", x.followed+1, err)
		}
		if next <= x.saved || len(markers) > 0 && markers[0].Seq <= x.saved {
			return nil
		}
	}
	x.own = own
	return nil
}
