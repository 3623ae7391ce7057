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

// prepare connects, migrates and claims, once. Other callers wait meanwhile.
//
// A failure is not kept: the next call tries again. Callers that wait give up when their own
// context ends. Cost when it is done: one atomic load.
func (d *DB) prepare(ctx context.Context) error {
	if d.prepared.Load() {
		return nil
	}
	select {
	case <-d.preparing:
		defer func() { d.preparing <- struct{}{} }()
	case <-ctx.Done():
		return ended(ctx)
	}
	if d.prepared.Load() {
		return nil
	}
	err := d.engine.connect(ctx)
	if err == nil {
		err = migrate(ctx, d.engine, d.plan, d.log)
	}
	if err == nil {
		err = d.claim(ctx)
	}
	if err == nil {
		d.prepared.Store(true)
	}
	return d.note(ctx, writing, err)
}

// ended returns the error of a call when its context ended before the database answered.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("store: call ended: %w", cause)
}
