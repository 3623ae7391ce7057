package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errLost is the cause with which a session's context ends.
//
// Requests that waited on the session end with it, wrapped in ErrUnavailable.
var errLost = errors.New("connection lost")

// session returns the current connection. The first call makes it and waits for the outcome of the
// first attempt. Later calls do not wait for a server that is away: nats.go keeps trying, and until
// it succeeds they return ErrUnavailable.
//
// Errors: ErrClosed, or ErrUnavailable with the detail of State.
func (b *Broker) session(ctx context.Context) (*session, error) {
	dialed, err := b.dial()
	if err != nil {
		return nil, err
	}
	select {
	case <-dialed:
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: connecting to %s: %v", ErrUnavailable, b.places, ctx.Err())
	}
	for {
		b.mu.Lock()
		live, conn, turned, closed := b.live, b.conn, b.turned, b.closed
		b.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case live != nil:
			return live, nil
		case conn == nil || !conn.IsConnected():
			_, detail := b.State()
			return nil, fmt.Errorf("%w: %s", ErrUnavailable, detail)
		}
		// The connection is made, and the handler that announces it is about to run.
		select {
		case <-turned:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: connecting to %s: %v", ErrUnavailable, b.places, ctx.Err())
		}
	}
}

// Changed returns a channel that closes when a connection is made or lost. A caller that retries
// takes the channel before an attempt, so that the return of the broker ends its wait.
//
// It also wakes callers that wait for a stream or a consumer: a server that has just come back may
// need a moment more for those.
func (b *Broker) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turned
}

// dial starts the first connection, once, in the background. It returns the channel that closes
// when the first attempt is over.
//
// It never waits. ErrClosed after Close.
func (b *Broker) dial() (<-chan struct{}, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if b.dialed == nil {
		b.dialed = make(chan struct{})
		b.wg.Go(b.connect)
	}
	return b.dialed, nil
}

// connect makes the one nats.Conn of this Broker. It lives, connected or trying to connect, until
// Close.
//
// nats.Connect returns without an error when the server is away (RetryOnFailedConnect); an error
// here is one of configuration, and every later call returns ErrUnavailable.
func (b *Broker) connect() {
	defer close(b.dialed)
	urls, options, before := b.urls, b.options(), b.state.Load()
	if b.embedded != nil {
		urls = "nats://embedded:4222" // a name only: InProcessServer makes the connection
		options = append(options, nats.InProcessServer(b.embedded))
	} else {
		options = append(options, nats.SetCustomDialer(dialer{b.ctx}))
	}
	conn, err := nats.Connect(urls, options...)
	if err != nil {
		b.notConnected(err)
		return
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		conn.Close()
		b.notConnected(err)
		return
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		conn.Close()
		return
	}
	b.conn, b.js = conn, js
	early := b.early
	b.early = nil
	b.mu.Unlock()
	if conn.IsConnected() {
		b.connected(conn)
	} else if b.embedded == nil {
		// refused gets the cause of the first attempt, in another goroutine that may have run by now.
		b.state.CompareAndSwap(before, &state{detail: b.away(nats.ErrNoServers)})
	}
	for _, s := range early {
		s.begin(conn)
	}
}

// connected runs after the first and every later connection; nats.go calls it.
//
// It may run twice for one connection, from connect and from nats.go; only one makes the session.
func (b *Broker) connected(conn *nats.Conn) {
	b.mu.Lock()
	if b.closed || b.conn == nil {
		// nil: connect has not returned yet, and will call this again.
		b.mu.Unlock()
		return
	}
	if b.live == nil {
		b.live = &session{conn: conn, js: b.js}
		b.live.ctx, b.live.end = context.WithCancelCause(context.Background())
		close(b.turned)
		b.turned = make(chan struct{})
	}
	b.mu.Unlock()
	if b.embedded == nil {
		b.setState(true, "connected to "+conn.ConnectedAddr())
	}
}

// disconnected runs when a connection is lost; nats.go calls it.
func (b *Broker) disconnected(_ *nats.Conn, err error) {
	b.lose()
	if err == nil {
		err = errors.New("connection closed")
	}
	b.notConnected(err)
}

// lose ends the current session.
//
// Everything that waits on the session ends at once, instead of at its own timeout.
func (b *Broker) lose() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live == nil {
		return
	}
	b.live.end(errLost)
	b.live = nil
	close(b.turned)
	b.turned = make(chan struct{})
}

// refused runs when the first attempt fails, and when a later one gets no connection; nats.go calls
// it. beforeRetry learns of a server that takes the connection and then refuses the client.
func (b *Broker) refused(_ *nats.Conn, err error) { b.notConnected(err) }

// beforeRetry runs before nats.go pauses ahead of another round through the list of servers, and
// returns the pause. An error that is still there is a refusal of the last round.
func (b *Broker) beforeRetry(rounds int) time.Duration {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn != nil {
		if err := conn.LastError(); err != nil {
			b.notConnected(err)
		}
	}
	return reconnectDelay(rounds)
}

// notConnected shows an external server that is away in State.
func (b *Broker) notConnected(err error) {
	if b.embedded != nil {
		return // the embedded server's own state says more
	}
	b.setState(false, b.away(err))
}

// away is the detail of State without a connection.
func (b *Broker) away(cause error) string {
	return fmt.Sprintf("not connected to %s: %v", b.places, cause)
}

// asyncError runs for an error outside of a call; nats.go calls it. Such errors are a subscription
// without permission, and one that is too slow.
func (b *Broker) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) && sub != nil {
		b.log.Warn("broker dropped messages of a slow subscription", "subject", sub.Subject)
		return
	}
	b.log.Warn("broker reports", "err", err)
}

// deadline adds the package's own timeout to a request.
func deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, requestTimeout)
}

// bound ends a request together with the connection on which it was made: its answer cannot arrive
// any more.
//
// The caller must call the returned function, which also removes the watch on the session.
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
