package feeds

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/broker"
	"posttrade/sidecars/control"
	"posttrade/sidecars/outbox"
)

// ownership tells a source's messages from those that other writers have put on its stream.
//
// outbox.Outbox implements it.
type ownership interface {
	// Own reports whether a message behind a given version is the source's, and its own version.
	Own(ctx context.Context, after uint64, m *outbox.Message) (mine bool, version uint64, err error)
	// CountForeign receives the messages that are not, in the order of the stream.
	CountForeign(m *outbox.Message)
}

// Following is a confirmed subscription in the form that the replica's bootstrap reads. It leaves
// out messages that other writers have put on the stream.
type Following struct {
	*broker.Following
	own     ownership
	version uint64 // of the last message that was returned
	payload []byte // of the source's last message before the subscription
	high    uint64 // its version

	asking atomic.Bool // the source's database is being queried; the stream is not read meanwhile
	// asked is when that ended, in nanoseconds since begun. A step of the wall clock changes neither.
	asked atomic.Int64
	begun time.Time
}

// maxHeartbeat is the longest interval between heartbeats of a feed without deltas. A replica that
// allows less silence gets a shorter interval.
const maxHeartbeat = 2 * time.Second

// lookBack is how many messages at the stream's end may be of other writers before a subscription
// does without the source's last version.
//
// Each costs a round trip and perhaps a query. Without the last version the replica cannot check
// the snapshot against the stream; it still checks each delta that comes.
const lookBack = 1000

// FollowingOf subscribes to a source's stream, for a replica that treats this much silence as a
// disconnection. It makes the stream when it does not exist: a replica may be the first to use it.
//
// The caller calls the result once for each round of the bootstrap.
func FollowingOf(
	b *broker.Broker, s control.Source, own ownership, silence time.Duration,
) func(context.Context) (bootstrap.Feed, error) {
	return func(ctx context.Context) (bootstrap.Feed, error) {
		if err := b.EnsureStream(ctx, streamOf(s)); err != nil {
			return nil, err
		}
		begun := time.Now()
		heartbeat := min(maxHeartbeat, silence/4)
		following, err := b.Follow(ctx, s.Stream(), s.Subject(),
			broker.FollowOptions{Heartbeat: heartbeat})
		if err != nil {
			return nil, err
		}
		feed := &Following{Following: following, own: own, begun: begun}
		if err := feed.lookBack(ctx, Stream{b, s}); err != nil {
			return nil, errors.Join(err, following.Close())
		}
		return feed, nil
	}
}

// lookBack finds the source's last message before the subscription.
//
// A stream without a message of the source leaves version 0 and no payload.
func (f *Following) lookBack(ctx context.Context, stream Stream) error {
	last := f.LastSequence()
	for at := last; at > 0 && at+lookBack > last; at-- {
		m, found, err := stream.At(ctx, at)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		mine, version, err := f.own.Own(ctx, 0, &m)
		if err != nil {
			return err
		}
		if mine {
			f.version, f.high, f.payload = version, version, m.Data
			return nil
		}
	}
	return nil
}

// Last returns the version and the payload of the source's last message before the subscription.
func (f *Following) Last() (uint64, []byte) { return f.high, f.payload }

// Next waits for messages and returns the payloads of the source's own, in stream order.
//
// It may return no payload and no error, when all messages were of other writers. A loss of the
// subscription is the broker's error; a gap is bootstrap.ErrGap as well.
func (f *Following) Next(ctx context.Context) ([][]byte, error) {
	messages, err := f.Following.Next(ctx)
	if errors.Is(err, broker.ErrGap) {
		err = fmt.Errorf("%w: %w", bootstrap.ErrGap, err)
	}
	if err != nil {
		return nil, err
	}
	payloads := make([][]byte, 0, len(messages))
	for i := range messages {
		m := messageOf(&messages[i])
		mine, err := f.mine(ctx, &m)
		switch {
		case err != nil:
			return nil, err
		case mine:
			payloads = append(payloads, m.Data)
		default:
			f.own.CountForeign(&m)
		}
	}
	return payloads, nil
}

// The back-off of queries of the source's database about a message.
const (
	askBackoff    = 100 * time.Millisecond
	askBackoffMax = time.Second
)

// mine decides whether a message is the source's, however long that takes. While the database is
// away the source commits nothing, so this wait delays none of its changes.
//
// Its only error is ctx's.
func (f *Following) mine(ctx context.Context, m *outbox.Message) (bool, error) {
	for backoff := askBackoff; ; backoff = min(2*backoff, askBackoffMax) {
		mine, version, err := f.own.Own(ctx, f.version, m)
		if err == nil {
			if mine {
				f.version = version
			}
			return mine, nil
		}
		f.asking.Store(true)
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(backoff):
		}
		f.asked.Store(int64(time.Since(f.begun)))
		f.asking.Store(false)
	}
}

// LastHeard returns when something last came. Time in which the subscription was not read does not
// count as silence.
//
// Otherwise a database that is away would look like a silent broker.
func (f *Following) LastHeard() time.Time {
	if f.asking.Load() {
		return time.Now()
	}
	heard := f.Following.LastHeard()
	if asked := f.begun.Add(time.Duration(f.asked.Load())); asked.After(heard) {
		return asked
	}
	return heard
}
