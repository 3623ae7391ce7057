package broker

import (
	"context"
	"errors"
	"time"
)

// consumeExpires is how long the server keeps one request for messages open. The heartbeat comes in
// between when there are no messages; three that are missing end the session of the consumer.
const (
	consumeExpires   = 20 * time.Second
	consumeHeartbeat = 2 * time.Second
	// gatherWait is how long a batch waits for the next message when the consumer reports that it has
	// more.
	gatherWait = 5 * time.Millisecond
)

// ConsumerConfig says which messages a durable consumer gets.
type ConsumerConfig struct {
	// A Stream that breaks a promise (ErrStream) is tried again like one that is away: an operator may
	// correct it.
	Stream Stream // made when missing, as by EnsureStream
	// Durable is the consumer's name on the server. Its position is kept there; another name begins at
	// the first message.
	Durable string
	Subject string // a filter; "" is the whole stream
	// AckWait is the time after which a message that was neither acknowledged nor handed back is
	// delivered again. It should be well above the time fn takes for a batch. 0 is 30 s.
	AckWait time.Duration
	// MaxAckPending bounds how many messages are delivered and not acknowledged; 0 is 1024.
	MaxAckPending int
	// BatchMessages bounds how many messages fn gets at once; 0 is 256.
	BatchMessages int
}

// Consume calls fn with batches of the stream's messages, in order, until ctx ends; then it returns
// nil. It returns an error only for a configuration that cannot work. While the server or the
// stream is missing it retries with back-off, and it continues after every loss of the connection.
//
// When fn returns nil, the messages that fn did not settle are acknowledged. When fn returns an
// error, those messages are handed back and delivered again after a pause of 100 ms doubling to 500
// ms. So a message may come more than once and, after an error, out of order. fn must terminate a
// malformed message (Message.Term) and return nil; otherwise it comes again for ever. fn's ctx is
// Consume's.
//
// It blocks. fn runs on the caller's goroutine, one batch at a time, so while fn works no message
// is requested and none is lost: those that were delivered wait in the client, and come again when
// AckWait has passed. Two Consumes with one durable name share its messages.
func (b *Broker) Consume(ctx context.Context, c ConsumerConfig,
	fn func(context.Context, []Message) error) error {
	if c.Stream.Name == "" || c.Durable == "" {
		return errors.New("broker: consume: a stream and a durable name are needed")
	}
	if c.AckWait <= 0 {
		c.AckWait = 30 * time.Second
	}
	if c.MaxAckPending <= 0 {
		c.MaxAckPending = 1024
	}
	if c.BatchMessages <= 0 {
		c.BatchMessages = 256
	}
	c.BatchMessages = min(c.BatchMessages, c.MaxAckPending)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	r := &consumption{b: b, c: c, fn: fn}
	for ctx.Err() == nil {
		changed := b.Changed()
		err := r.session(ctx)
		if ctx.Err() != nil {
			break
		}
		if text := err.Error(); text != r.trouble {
			r.trouble = text
			b.log.Warn("consumer interrupted", "stream", c.Stream.Name, "durable", c.Durable, "err", err)
		}
		r.awaitRetry(ctx, changed)
	}
	return nil
}
