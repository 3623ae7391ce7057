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

// TailOptions tune a Tail; the zero value suits a feed of deltas.
type TailOptions struct {
	// Heartbeat is how often a silent server sends a heartbeat; three missed ones end the Tail. 0 is 2
	// s.
	Heartbeat time.Duration
	// InactiveThreshold is how long the server keeps the consumer while Next is not called. It must be
	// well above the duration of the slowest snapshot. 0 is 5 minutes.
	InactiveThreshold time.Duration
	// BatchMessages bounds how many messages Next returns; 0 is 256.
	BatchMessages int
}

// Tail is an ephemeral pull consumer. It gets the messages that are published after it was made. It
// belongs to one goroutine, except for LastHeard and Close.
type Tail struct {
	b         *Broker
	o         TailOptions
	s         *session
	p         *pull
	stream    string
	consumer  string
	start     uint64 // the stream's last sequence when the consumer was made
	last      uint64 // the last sequence that Next has seen
	delivered uint64 // the last consumer sequence seen
	whole     bool   // the filter covers the whole stream, so its sequences have no hole
	err       error  // the error that ended it
	heard     atomic.Int64
	closed    chan struct{}
	close     sync.Once
}

// Tail makes the consumer and returns when the server has confirmed it: no message published after
// that is missed. The stream must exist (ErrNotFound). subject filters, "" is everything; when it
// is the stream's only subject, the Tail detects a hole in the stream's sequences.
//
// The caller must call Next all the time, from a separate goroutine if the messages have to wait
// for other work: Next reads the server's heartbeats.
func (b *Broker) Tail(ctx context.Context, stream, subject string, o TailOptions) (*Tail, error) {
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
	t := &Tail{b: b, o: o, stream: stream, closed: make(chan struct{})}
	if err := t.begin(ctx, subject); err != nil {
		return nil, fmt.Errorf("broker: tail stream=%s subject=%s: %w", stream, subject, sorted(err))
	}
	return t, nil
}

func (t *Tail) begin(ctx context.Context, subject string) error {
	var err error
	if t.s, err = t.b.session(ctx); err != nil {
		return err
	}
	ctx, unbind := t.s.bound(ctx)
	defer unbind()
	there, err := t.s.js.Stream(ctx, t.stream)
	if err != nil {
		return asked(ctx, err)
	}
	subjects := there.CachedInfo().Config.Subjects
	t.whole = subject == "" || len(subjects) == 1 && subjects[0] == subject
	consumer, err := t.s.js.CreateConsumer(ctx, t.stream, jetstream.ConsumerConfig{
		FilterSubject: subject, DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: t.o.InactiveThreshold, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return asked(ctx, err)
	}
	info := consumer.CachedInfo()
	// The consumer is new: its "delivered" numbers describe what the stream held before it.
	t.consumer, t.start = info.Name, info.Delivered.Stream
	t.last = t.start
	t.delivered = info.Delivered.Consumer
	if t.p, err = newPull(t.s, t.stream, t.consumer, t.o.BatchMessages); err != nil {
		return err
	}
	t.hear()
	return nil
}

// LastSequence returns the stream's last sequence at the time when the consumer was confirmed. The
// first message of Next comes after it. A reader of the stream's state is caught up when it has
// everything up to it.
func (t *Tail) LastSequence() uint64 { return t.start }

// LastHeard returns when the last message or heartbeat came; any goroutine.
func (t *Tail) LastHeard() time.Time { return time.Unix(0, t.heard.Load()) }

func (t *Tail) hear() { t.heard.Store(t.b.now().UnixNano()) }

// Next waits for messages and returns them in the order of the stream, without duplicates.
//
//   - ErrDisconnected: the connection, the server or the consumer was lost, or three heartbeats did
//     not come. Messages may be missed. The Tail is over.
//   - ErrGap: the stream lacks messages between two others. Messages before the gap are returned
//     first. The Tail is over.
//   - ctx's error when ctx ends; Next may be called again.
func (t *Tail) Next(ctx context.Context) ([]Message, error) {
	if t.err != nil {
		return nil, t.err
	}
	messages, err := t.next(ctx)
	if err == nil {
		return messages, nil
	}
	if ctx.Err() != nil && !errors.Is(err, ErrDisconnected) && !errors.Is(err, ErrGap) {
		return messages, fmt.Errorf("broker: tail stream=%s: %w", t.stream, ctx.Err())
	}
	t.err = fmt.Errorf("broker: tail stream=%s sequence=%d: %w", t.stream, t.last, err)
	if len(messages) > 0 {
		return messages, nil // the next call returns the error
	}
	return nil, t.err
}

func (t *Tail) next(ctx context.Context) (messages []Message, err error) {
	silence := time.NewTimer(3 * t.o.Heartbeat)
	defer silence.Stop()
	for {
		if t.p.left == 0 {
			if err := t.p.ask(t.o.BatchMessages, 15*t.o.Heartbeat, t.o.Heartbeat); err != nil {
				return messages, fmt.Errorf("%w: %w", ErrDisconnected, err)
			}
		}
		var msg *nats.Msg
		select {
		case msg = <-t.p.arrived:
		default:
			if len(messages) > 0 {
				return messages, nil
			}
			select {
			case msg = <-t.p.arrived:
			case <-t.s.ctx.Done():
				return messages, fmt.Errorf("%w: %w", ErrDisconnected, errLost)
			case <-silence.C:
				return messages, fmt.Errorf("%w: no heartbeat for %v", ErrDisconnected, 3*t.o.Heartbeat)
			case <-t.closed:
				return messages, fmt.Errorf("%w: closed", ErrDisconnected)
			case <-ctx.Done():
				return messages, ctx.Err()
			}
		}
		m, ok, err := t.p.sort(msg, false)
		if err != nil {
			return messages, fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
		t.hear()
		silence.Reset(3 * t.o.Heartbeat)
		if !ok {
			continue
		}
		if err := t.check(m); err != nil {
			return messages, err
		}
		if messages = append(messages, m); len(messages) >= t.o.BatchMessages {
			return messages, nil
		}
	}
}

// check compares a message with its predecessor. The consumer's numbers have a hole only when a
// delivery was lost, the stream's only when the stream lost messages.
func (t *Tail) check(m Message) error {
	if m.consumerSeq != t.delivered+1 {
		return fmt.Errorf("%w: delivery %d follows %d", ErrDisconnected, m.consumerSeq, t.delivered)
	}
	if m.Sequence <= t.last || t.whole && m.Sequence != t.last+1 {
		return fmt.Errorf("%w: sequence %d follows %d", ErrGap, m.Sequence, t.last)
	}
	t.delivered, t.last = m.consumerSeq, m.Sequence
	return nil
}

// Close deletes the consumer when the server is reachable; otherwise the server does so itself
// after the inactive threshold. A Next under way ends with ErrDisconnected; any goroutine.
func (t *Tail) Close() error {
	var err error
	t.close.Do(func() {
		close(t.closed)
		t.p.stop()
		err = t.remove()
	})
	return err
}

// remove deletes the consumer on the server.
func (t *Tail) remove() error {
	// The wait is short: a caller that closes the tail of a hanging server wants to start again.
	ctx, cancel := context.WithTimeout(t.s.ctx, time.Second)
	defer cancel()
	err := asked(ctx, t.s.js.DeleteConsumer(ctx, t.stream, t.consumer))
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrUnavailable) {
		return fmt.Errorf("broker: close tail stream=%s: %w", t.stream, err)
	}
	return nil
}
