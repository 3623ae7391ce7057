package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// awaitRetry waits before the next attempt, or until the connection changes: the server may be back
// then, and its streams a moment later.
//
// changed was taken before the attempt, so a change during the attempt ends the wait at once.
func (r *consumption) awaitRetry(ctx context.Context, changed <-chan struct{}) {
	pause(ctx, r.retry.step(), changed)
	if r.b.Changed() != changed {
		r.retry.reset()
	}
}

// consumption is one Consume under way.
//
// It belongs to the goroutine of Consume and survives the sessions.
type consumption struct {
	b       *Broker
	c       ConsumerConfig
	fn      func(context.Context, []Message) error
	trouble string  // the last trouble that was logged; "" when all is well
	retry   backOff // of the consumer
	failing backOff // of fn
	failed  string  // the last error of fn that was logged; "" when all is well
}

// session consumes on one connection until it is lost; it never returns nil.
//
// Stream and consumer are looked at again on each connection: the server may be another one, or may
// have lost them.
func (r *consumption) session(ctx context.Context) error {
	s, err := r.b.session(ctx)
	if err != nil {
		return err
	}
	if err := r.prepare(ctx, s); err != nil {
		return err
	}
	p, err := newPull(s, r.c.Stream.Name, r.c.Durable, r.c.BatchMessages)
	if err != nil {
		return sorted(err)
	}
	defer p.stop()
	batch := make([]Message, 0, r.c.BatchMessages)
	for {
		batch, err = r.gather(ctx, p, batch[:0])
		if len(batch) > 0 {
			r.well()
			if failed := r.hand(ctx, batch); failed != nil && !r.handBack(ctx, batch, failed) {
				return ctx.Err()
			}
		}
		if err != nil {
			return err
		}
	}
}

// prepare makes the stream and the consumer, or finds them.
//
// The consumer delivers everything from the first message, without a limit of attempts. Settings
// that an operator has changed are set back.
func (r *consumption) prepare(ctx context.Context, s *session) error {
	ctx, cancel := deadline(ctx)
	defer cancel()
	ctx, unbind := s.bound(ctx)
	defer unbind()
	if err := s.ensure(ctx, r.c.Stream); err != nil {
		return fmt.Errorf("stream=%s: %w", r.c.Stream.Name, err)
	}
	_, err := s.js.CreateOrUpdateConsumer(ctx, r.c.Stream.Name, jetstream.ConsumerConfig{
		Durable: r.c.Durable, FilterSubject: r.c.Subject,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: r.c.AckWait, MaxDeliver: -1, MaxAckPending: r.c.MaxAckPending,
	})
	if err != nil {
		return fmt.Errorf("consumer=%s: %w", r.c.Durable, asked(ctx, err))
	}
	return nil
}

// well notes that the consumer works again.
func (r *consumption) well() {
	r.retry.reset()
	if r.trouble != "" {
		r.trouble = ""
		r.b.log.Info("consumer goes on", "stream", r.c.Stream.Name, "durable", r.c.Durable)
	}
}

// hand gives a batch to fn and acknowledges the messages that fn left unsettled.
//
// It returns the error of fn only. An acknowledgement that is lost leads to another delivery, which
// fn must recognise.
func (r *consumption) hand(ctx context.Context, batch []Message) error {
	if err := r.fn(ctx, batch); err != nil {
		return err
	}
	r.failing.reset()
	if r.failed != "" {
		r.failed = ""
		r.b.log.Info("consumer callback works again", "durable", r.c.Durable)
	}
	for i := range batch {
		if err := batch[i].Ack(); err != nil && !errors.Is(err, ErrSettled) {
			return nil // the connection is lost; the messages come again
		}
	}
	return nil
}

// callbackMost is the longest pause after a failure of the callback. The callback most often waits
// for a database, and must notice its return soon.
const callbackMost = 500 * time.Millisecond

// handBack hands back the messages that fn could not use, and waits before more are requested. It
// returns false when ctx has ended.
func (r *consumption) handBack(ctx context.Context, batch []Message, failed error) bool {
	var delay time.Duration
	if ctx.Err() == nil {
		delay = min(r.failing.step(), callbackMost)
		if text := failed.Error(); text != r.failed {
			r.failed = text
			r.b.log.Warn("consumer callback fails", "durable", r.c.Durable,
				"messages", len(batch), "err", failed)
		}
	}
	for i := range batch {
		// An error means a lost connection; the message comes again after AckWait.
		_ = batch[i].Nak(delay)
	}
	return pause(ctx, delay, nil)
}

// gather waits for messages and returns those that arrive together. With an error it may also
// return messages: those that arrived before the error.
//
// A batch ends when it is full, when the consumer has no more, when the request is used up, or
// after gatherWait. It takes what is there already before it waits, so that messages win over a
// timer or a lost connection.
func (r *consumption) gather(ctx context.Context, p *pull, batch []Message) ([]Message, error) {
	silence := time.NewTimer(3 * consumeHeartbeat)
	defer silence.Stop()
	for len(batch) < cap(batch) {
		if p.left == 0 {
			if len(batch) > 0 {
				return batch, nil
			}
			if err := p.ask(cap(batch), consumeExpires, consumeHeartbeat); err != nil {
				return batch, sorted(err)
			}
		}
		wait := 3 * consumeHeartbeat
		if n := len(batch); n > 0 {
			if wait = gatherWait; batch[n-1].pending == 0 {
				wait = 0
			}
		}
		silence.Reset(wait)
		var msg *nats.Msg
		select {
		case msg = <-p.arrived:
		default:
			select {
			case msg = <-p.arrived:
			case <-silence.C:
				if len(batch) > 0 {
					return batch, nil
				}
				return batch, fmt.Errorf("%w: no heartbeat of the consumer", ErrUnavailable)
			case <-p.s.ctx.Done():
				return batch, fmt.Errorf("%w: %w", ErrUnavailable, errLost)
			case <-ctx.Done():
				return batch[:0], ctx.Err()
			}
		}
		m, ok, err := p.sort(msg, true)
		if err != nil {
			return batch, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if ok {
			batch = append(batch, m)
		} else if len(batch) == 0 {
			r.well() // a heartbeat
		}
	}
	return batch, nil
}
