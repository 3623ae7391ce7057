package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// errLost is the cause with which a session's context ends.
var errLost = errors.New("connection lost")

const (
	dialTimeout = 2 * time.Second
	// A server that hangs without closing the connection is noticed after pingInterval * (pingsMissed
	// + 1); requests time out before that.
	pingInterval = 3 * time.Second
	pingsMissed  = 2
	// writeTimeout bounds how long a write to a server that does not read can block. The write holds
	// the connection's lock, so calls and Close wait for it.
	writeTimeout = 2 * time.Second
	// reconnectMost is the longest pause between two attempts to connect. A server that comes back is
	// found within it, and all waiting work starts again then.
	reconnectMost = 500 * time.Millisecond
)

// session returns the current connection. The first call makes it and waits for the outcome of the
// first attempt. Later calls do not wait for a server that is away: nats.go keeps trying, and until
// it succeeds they return ErrUnavailable.
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
func (b *Broker) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turned
}

// dial starts the first connection, once, in the background. It returns the channel that closes
// when the first attempt is over.
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
func (b *Broker) connect() {
	defer close(b.dialed)
	urls, options := b.urls, b.options()
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
	} else {
		b.notConnected(conn.LastError())
	}
	for _, s := range early {
		s.begin(conn)
	}
}

// options are those of the connection, whatever it connects to.
func (b *Broker) options() []nats.Option {
	return []nats.Option{
		nats.Name(b.o.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a wrong password may be corrected on the server
		nats.CustomReconnectDelay(reconnectDelay),
		// Nothing is buffered while there is no connection: the publisher gets an error, and no message
		// arrives long after its publisher gave it up.
		nats.ReconnectBufSize(-1),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsMissed),
		nats.FlusherTimeout(writeTimeout),
		nats.ConnectHandler(b.connected),
		nats.ReconnectHandler(b.connected),
		nats.DisconnectErrHandler(b.disconnected),
		nats.ReconnectErrHandler(b.refused),
		nats.ErrorHandler(b.complaint),
		nats.SkipHostLookup(), // the dialer looks names up, and stops when the Broker is closed
	}
}

// reconnectDelay tells nats.go how long to wait after this many rounds through the list of servers.
func reconnectDelay(rounds int) time.Duration {
	d := retryFirst
	for ; rounds > 1 && d < reconnectMost; rounds-- {
		d *= 2
	}
	return min(d, reconnectMost)
}

// dialer gives up, and closes the connection it made, when the Broker is closed.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(d.ctx, func() { conn.Close() })
	return &dialedConn{Conn: conn, stop: stop}, nil
}

// dialedConn cancels its watch on the context when it is closed.
type dialedConn struct {
	net.Conn
	stop func() bool
}

func (c *dialedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

// connected runs after the first and every later connection; nats.go calls it.
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

// refused runs after every failed attempt to reconnect; nats.go calls it.
func (b *Broker) refused(_ *nats.Conn, err error) { b.notConnected(err) }

func (b *Broker) notConnected(err error) {
	if b.embedded != nil {
		return // the embedded server's own state says more
	}
	if err == nil {
		err = nats.ErrNoServers
	}
	b.setState(false, fmt.Sprintf("not connected to %s: %v", b.places, err))
}

// complaint runs for an error outside of a call; nats.go calls it. Such errors are a subscription
// without permission, and one that is too slow.
func (b *Broker) complaint(_ *nats.Conn, sub *nats.Subscription, err error) {
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
func (s *session) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(errLost) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
