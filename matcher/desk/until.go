package desk

import (
	"context"
	"errors"
	"time"

	"posttrade/matcher"
)

// submitPause is how long a sidecar waits when the engine has no room for its commands.
const submitPause = 5 * time.Millisecond

// answerWait is how long the answer is waited for when the caller is to end.
const answerWait = time.Second

// SubmitUntil sequences n commands of a sidecar, which fill writes, waits until they are durable
// and passes each answer to check. While the desk or the ring has no room it tries again, until ctx
// ends: unlike other callers, a sidecar can wait. The n commands are sequenced side by side.
//
//   - fill is called again for every try, and writes the whole command: the place holds an old one.
//   - Errors: that of fill; those of check, joined; ErrSize, ErrClosed, ErrFailed, ErrRefused; that
//     of ctx. After an error of check the commands are sequenced.
//   - When ctx has ended, it waits for an answer for answerWait at most: ErrTimeout with ctx's
//     error, and the outcome is unknown. Without a majority of the members no answer comes.
func SubmitUntil(ctx context.Context, d *Desk, n int, fill func(i int, c *matcher.Command) error,
	check func(*Answer) error) error {
	return SubmitTicketUntil(ctx, d, n, func(t *Ticket) error {
		for i := range n {
			if err := fill(i, t.Command(i)); err != nil {
				return err
			}
		}
		return nil
	}, check)
}

// SubmitTicketUntil is SubmitUntil for commands that have client ids: fill writes both.
func SubmitTicketUntil(ctx context.Context, d *Desk, n int, fill func(*Ticket) error,
	check func(*Answer) error) error {
	for {
		err := submitOnce(ctx, d, n, fill, check)
		if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrFull) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(submitPause):
		}
	}
}

// submitOnce is one try, with a ticket of the sidecars. ErrBusy and ErrFull: nothing was sequenced.
func submitOnce(ctx context.Context, d *Desk, n int, fill func(*Ticket) error,
	check func(*Answer) error) error {
	t, err := d.Pool(Sidecars).Acquire(n)
	if err != nil {
		return err
	}
	defer t.Release()
	if err := fill(t); err != nil {
		return err
	}
	if err := t.Submit(); err != nil {
		return err
	}
	for err = t.Wait(answerWait); errors.Is(err, ErrTimeout); err = t.Wait(answerWait) {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
	if err != nil {
		return err
	}
	for i := range n {
		err = errors.Join(err, check(t.Answer(i)))
	}
	return err
}
