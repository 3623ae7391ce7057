package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// FollowOptions tune a Following; the zero value suits a feed of deltas.
type FollowOptions struct {
	// Heartbeat is how often a silent server sends a heartbeat; three missed ones end the Following. 0
	// is 2 s.
	Heartbeat time.Duration
	// InactiveThreshold is how long the server keeps the consumer while Next is not called. It must be
	// well above the duration of the slowest snapshot. 0 is 5 minutes.
	InactiveThreshold time.Duration
	// BatchMessages bounds how many messages Next returns; 0 is 256.
	BatchMessages int
}

// Following is an ephemeral pull consumer. It gets the messages that are published after it was
// made. It belongs to one goroutine, except for LastHeard and Close.
//
// The consumer is in the server's memory and acknowledges nothing: it is for a reader that gets the
// state before the subscription in another way, and begins again after any loss.
type Following struct {
	b *Broker
	o FollowOptions
	// s is the session on which it was made. It is never continued on another one: messages could be
	// lost in between.
	s         *session
	p         *pull
	stream    string
	consumer  string
	start     uint64 // the stream's last sequence when the consumer was made
	last      uint64 // the last sequence that Next has seen
	delivered uint64 // the last consumer sequence seen
	whole     bool   // the filter covers the whole stream, so its sequences have no hole
	err       error  // the error that ended it
	// begun is a time of Options.Now. heard is the nanoseconds since then; Next's goroutine writes it.
	// Both keep the monotonic clock, so that a step of the wall clock does not look like silence.
	begun  time.Time
	heard  atomic.Int64
	closed chan struct{}
	close  sync.Once
}

// Follow makes the consumer and returns when the server has confirmed it: no message published
// after that is missed. The stream must exist (ErrNotFound). subject filters, "" is everything;
// when it is the stream's only subject, the Following detects a hole in the stream's sequences.
//
// The caller must call Next all the time, from a separate goroutine if the messages have to wait
// for other work: Next reads the server's heartbeats.
//
// It takes five seconds at most. An error leaves nothing behind that the server does not remove by
// itself.
func (b *Broker) Follow(ctx context.Context, stream, subject string,
	o FollowOptions) (*Following, error) {
	if o.Heartbeat <= 0 {
		o.Heartbeat = 2 * time.Second
	}
	if o.InactiveThreshold <= 0 {
		o.InactiveThreshold = 5 * time.Minute
	}
	if o.BatchMessages <= 0 {
		o.BatchMessages = 256
	}
	ctx, cancel := deadline(ctx)
	defer cancel()
	f := &Following{b: b, o: o, stream: stream, begun: b.now(), closed: make(chan struct{})}
	if err := f.begin(ctx, subject); err != nil {
		return nil, fmt.Errorf("broker: follow stream=%s subject=%s: %w", stream, subject, sorted(err))
	}
	return f, nil
}

// begin makes the consumer first and the subscription for its answers after it: the consumer
// delivers only what is asked for, so nothing can come in between.
func (f *Following) begin(ctx context.Context, subject string) error {
	var err error
	if f.s, err = f.b.session(ctx); err != nil {
		return err
	}
	ctx, unbind := f.s.bound(ctx)
	defer unbind()
	there, err := f.s.js.Stream(ctx, f.stream)
	if err != nil {
		return asked(ctx, err)
	}
	subjects := there.CachedInfo().Config.Subjects
	f.whole = subject == "" || len(subjects) == 1 && subjects[0] == subject
	consumer, err := f.s.js.CreateConsumer(ctx, f.stream, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: f.o.InactiveThreshold, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return asked(ctx, err)
	}
	info := consumer.CachedInfo()
	// The consumer is new: its "delivered" numbers describe what the stream held before it.
	f.consumer, f.start = info.Name, info.Delivered.Stream
	f.last = f.start
	f.delivered = info.Delivered.Consumer
	if f.p, err = newPull(f.s, f.stream, f.consumer, f.o.BatchMessages); err != nil {
		return err
	}
	f.hear()
	return nil
}

// LastSequence returns the stream's last sequence at the time when the consumer was confirmed. The
// first message of Next comes after it. A reader of the stream's state is caught up when it has
// everything up to it.
func (f *Following) LastSequence() uint64 { return f.start }

// LastHeard returns when the last message or heartbeat came; any goroutine. The time has a reading
// of the monotonic clock when those of Options.Now have one.
func (f *Following) LastHeard() time.Time { return f.begun.Add(time.Duration(f.heard.Load())) }

func (f *Following) hear() { f.heard.Store(int64(f.b.now().Sub(f.begun))) }

// Next waits for messages and returns them in the order of the stream, without duplicates.
//
//   - ErrDisconnected: the connection, the server or the consumer was lost, or three heartbeats did
//     not come. Messages may be missed. The Following is over.
//   - ErrGap: the stream lacks messages between two others. Messages before the gap are returned
//     first. The Following is over.
//   - ctx's error when ctx ends; Next may be called again.
//
// It returns at least one message when the error is nil, and at most BatchMessages. Their data
// belongs to the caller.
func (f *Following) Next(ctx context.Context) ([]Message, error) {
	if f.err != nil {
		return nil, f.err
	}
	messages, err := f.next(ctx)
	if err == nil {
		return messages, nil
	}
	if ctx.Err() != nil && !errors.Is(err, ErrDisconnected) && !errors.Is(err, ErrGap) {
		return messages, fmt.Errorf("broker: follow stream=%s: %w", f.stream, ctx.Err())
	}
	f.err = fmt.Errorf("broker: follow stream=%s sequence=%d: %w", f.stream, f.last, err)
	if len(messages) > 0 {
		return messages, nil // the next call returns the error
	}
	return nil, f.err
}

// next collects what is there already and waits only while it has nothing. Heartbeats count as
// signs of life and are not returned.
func (f *Following) next(ctx context.Context) (messages []Message, err error) {
	silence := time.NewTimer(3 * f.o.Heartbeat)
	defer silence.Stop()
	for {
		if f.p.left == 0 {
			if err := f.p.ask(f.o.BatchMessages, 15*f.o.Heartbeat, f.o.Heartbeat); err != nil {
				return messages, fmt.Errorf("%w: %w", ErrDisconnected, err)
			}
		}
		var msg *nats.Msg
		select {
		case msg = <-f.p.arrived:
		default:
			if len(messages) > 0 {
				return messages, nil
			}
			select {
			case msg = <-f.p.arrived:
			case <-f.s.ctx.Done():
				return messages, fmt.Errorf("%w: %w", ErrDisconnected, errLost)
			case <-silence.C:
				return messages, fmt.Errorf("%w: no heartbeat for %v", ErrDisconnected, 3*f.o.Heartbeat)
			case <-f.closed:
				return messages, fmt.Errorf("%w: closed", ErrDisconnected)
			case <-ctx.Done():
				return messages, ctx.Err()
			}
		}
		m, ok, err := f.p.sort(msg, false)
		if err != nil {
			return messages, fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		f.hear()
		silence.Reset(3 * f.o.Heartbeat)
		if !ok {
			continue
		}
		if err := f.check(m); err != nil {
			return messages, err
		}
		if messages = append(messages, m); len(messages) >= f.o.BatchMessages {
			return messages, nil
		}
	}
}

// check compares a message with its predecessor. The consumer's numbers have a hole only when a
// delivery was lost, the stream's only when the stream lost messages.
func (f *Following) check(m Message) error {
	if m.consumerSeq != f.delivered+1 {
		return fmt.Errorf("%w: delivery %d follows %d", ErrDisconnected, m.consumerSeq, f.delivered)
	}
	if m.Sequence <= f.last || f.whole && m.Sequence != f.last+1 {
		return fmt.Errorf("%w: sequence %d follows %d", ErrGap, m.Sequence, f.last)
	}
	f.delivered, f.last = m.consumerSeq, m.Sequence
	return nil
}

// Close deletes the consumer when the server is reachable; otherwise the server does so itself
// after the inactive threshold. A Next under way ends with ErrDisconnected; any goroutine.
//
// It takes a second at most. Only the first call has an effect.
func (f *Following) Close() error {
	var err error
	f.close.Do(func() {
		close(f.closed)
		f.p.stop()
		err = f.remove()
	})
	return err
}

// remove deletes the consumer on the server.
func (f *Following) remove() error {
	// The wait is short: a caller that closes the Following of a hanging server wants to start again.
	ctx, cancel := context.WithTimeout(f.s.ctx, time.Second)
	defer cancel()
	err := asked(ctx, f.s.js.DeleteConsumer(ctx, f.stream, f.consumer))
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("broker: close following stream=%s: %w", f.stream, err)
	}
	return nil
}
