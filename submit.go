package main

import (
	"context"
	"errors"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// submitPause is how long a sidecar waits when the engine has no room for its commands.
const submitPause = 5 * time.Millisecond

// submitUntil sequences n commands of a sidecar, which fill writes, waits until
// they are durable and shows each answer to check. While the desk or the ring has
// no room it tries again, until ctx ends: unlike a caller, a sidecar has time.
func submitUntil(ctx context.Context, d *desk.Desk, n int, fill func(i int, c *matcher.Command) error, check func(*desk.Answer) error) error {
	for {
		err := submitOnce(d, n, fill, check)
		if !errors.Is(err, desk.ErrBusy) && !errors.Is(err, desk.ErrFull) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(submitPause):
		}
	}
}

func submitOnce(d *desk.Desk, n int, fill func(i int, c *matcher.Command) error, check func(*desk.Answer) error) error {
	t, err := d.Pool(desk.Sidecars).Acquire(n)
	if err != nil {
		return err
	}
	defer t.Release()
	for i := range n {
		if err := fill(i, t.Command(i)); err != nil {
			return err
		}
	}
	if err := t.Submit(); err != nil {
		return err
	}
	if err := t.Wait(0); err != nil {
		return err
	}
	for i := range n {
		err = errors.Join(err, check(t.Answer(i)))
	}
	return err
}
