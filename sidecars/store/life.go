package store

import (
	"context"
	"errors"
	"fmt"
)

// Close ends the calls under way with ErrClosed, waits for them and closes every connection.
//
// A commit under way runs to its end first. A second Close returns nil at once, also while the
// first still waits. Every call after it returns ErrClosed.
func (d *DB) Close() error {
	d.mu.Lock()
	already := d.closed
	d.closed = true
	d.mu.Unlock()
	if already {
		return nil
	}
	d.end(errClosed)
	d.ops.Wait()
	d.mu.Lock()
	d.found[writing].trouble = ErrClosed.Error()
	d.mu.Unlock()
	return d.engine.close()
}

var errClosed = fmt.Errorf("store: %w: %w", ErrUnavailable, ErrClosed)

// enter counts a call and ties its context to the life of the DB.
//
// The caller must call the returned function when the call has ended: Close waits for it. The mutex
// orders enter with Close, so that no call begins after Close has looked.
func (d *DB) enter(ctx context.Context) (context.Context, func(), error) {
	if ctx.Err() != nil {
		return nil, nil, ended(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errClosed
	}
	d.ops.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil); d.ops.Done() }, nil
}

// preparation is one attempt to connect, migrate and claim. err is read when done is closed.
type preparation struct {
	done chan struct{}
	err  error
}

// prepare waits until the database is connected, migrated and claimed, and begins that unless an
// attempt is under way.
//
// The attempt runs on the life of the DB: a caller that gives up ends its own wait alone, so that a
// migration may take longer than any caller waits. All callers of an attempt get its error; the
// next call tries again. Cost when it is done: one atomic load. The caller has entered.
func (d *DB) prepare(ctx context.Context) error {
	if d.prepared.Load() {
		return nil
	}
	d.mu.Lock()
	if d.prepared.Load() {
		d.mu.Unlock()
		return nil
	}
	p := d.preparing
	if p == nil {
		p = &preparation{done: make(chan struct{})}
		d.preparing = p
		d.ops.Go(func() { d.attempt(p) })
	}
	d.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		err := ended(ctx)
		if ready, detail := d.State(); !ready && !errors.Is(err, ErrClosed) {
			err = fmt.Errorf("%w: %s", err, detail)
		}
		return err
	}
}

// attempt connects, migrates and claims.
func (d *DB) attempt(p *preparation) {
	err := d.engine.connect(d.life)
	if err == nil {
		err = d.migrate(d.life)
	}
	if err == nil {
		err = d.claim(d.life)
	}
	p.err = d.note(d.life, writing, err)
	d.mu.Lock()
	d.preparing = nil
	d.prepared.Store(err == nil)
	d.mu.Unlock()
	close(p.done)
}

// ended returns the error of a call when its context ended before the database answered.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("store: call ended: %w", cause)
}
