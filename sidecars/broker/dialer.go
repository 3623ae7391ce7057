package broker

import (
	"context"
	"net"
	"time"

	"github.com/nats-io/nats.go"
)

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

// options are those of the connection, whatever it connects to.
func (b *Broker) options() []nats.Option {
	return []nats.Option{
		nats.Name(b.o.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a wrong password may be corrected on the server
		nats.CustomReconnectDelay(b.beforeRetry),
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
		nats.ErrorHandler(b.asyncError),
		nats.SkipHostLookup(), // the dialer looks names up, and stops when the Broker is closed
	}
}

// reconnectDelay is the pause of nats.go after this many rounds through the list of servers.
//
// 100, 200, 400, 500 ms, and 500 from then on.
func reconnectDelay(rounds int) time.Duration {
	d := retryFirst
	for ; rounds > 1 && d < reconnectMost; rounds-- {
		d *= 2
	}
	return min(d, reconnectMost)
}

// dialer gives up, and closes the connection it made, when the Broker is closed.
//
// Without it nats.go would hold up Close for the time of a dial to a host that does not answer.
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
//
// Otherwise each connection that was lost would leave a watch behind until Close.
type dialedConn struct {
	net.Conn
	stop func() bool
}

func (c *dialedConn) Close() error {
	c.stop()
	return c.Conn.Close()
}
