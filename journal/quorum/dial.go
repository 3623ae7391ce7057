package quorum

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// wireConn is a connection that the wire's Close closes. It is in conns from track until Close.
type wireConn struct {
	net.Conn          // with TLS, if there is any
	raw      net.Conn // without TLS
	wire     *wire
}

// Close closes the connection; closing it again is no error. Any goroutine.
func (c *wireConn) Close() error {
	c.wire.mu.Lock()
	_, open := c.wire.conns[c]
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	c.wire.settled(c)
	err := c.Conn.Close()
	if !open {
		return nil
	}
	return err
}

// Dial opens a raft stream to the server at an address of addressOf. When Dial returns, the server
// has confirmed the stream: another disk at the same address closes it without an answer. The
// timeout covers connecting, TLS and the confirmation; the stream itself has no deadline.
func (w *wire) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	hostPort, id := hostPortOf(address)
	ctx, cancel := context.WithTimeout(w.stop, timeout)
	defer cancel()
	c, err := w.dial(ctx, hostPort)
	if err != nil {
		return nil, err
	}
	if err := greet(c, id); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("quorum: dial address=%s: %w", address, err)
	}
	return c, nil
}

// greet asks for a raft stream to a server and waits for the confirmation. It removes the
// connection's deadline.
func greet(c net.Conn, id raft.ServerID) error {
	if len(id) > 255 {
		return fmt.Errorf("server id of %d bytes: %w", len(id), ErrMembers)
	}
	hello := append([]byte{wireRaft, byte(len(id))}, id...)
	if _, err := c.Write(hello); err != nil {
		return err
	}
	var reply [1]byte
	if _, err := io.ReadFull(c, reply[:]); err != nil {
		return err
	}
	if reply[0] != wireRaft {
		return fmt.Errorf("confirmed with byte %d, want %d", reply[0], wireRaft)
	}
	return c.SetDeadline(time.Time{})
}

// dial connects to a member, with TLS if it is set. The deadline of ctx applies to everything on
// the connection. After Close it is net.ErrClosed.
func (w *wire) dial(ctx context.Context, address string) (*wireConn, error) {
	if err := wireAllows(w.o.TLS, address); err != nil {
		return nil, fmt.Errorf("quorum: dial address=%s: %w", address, err)
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if w.stop.Err() != nil {
		if err == nil {
			_ = raw.Close()
		}
		err = net.ErrClosed
	}
	if err != nil {
		return nil, fmt.Errorf("quorum: dial address=%s: %w", address, err)
	}
	c := w.track(raw, w.client(raw, address))
	if c == nil {
		return nil, fmt.Errorf("quorum: dial address=%s: %w", address, net.ErrClosed)
	}
	if err := handshake(ctx, c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("quorum: dial address=%s: %w", address, err)
	}
	return c, nil
}

// client puts TLS over the connection, if TLS is set; the other side must be the host that was
// dialled.
func (w *wire) client(raw net.Conn, address string) net.Conn {
	if w.o.TLS == nil {
		return raw
	}
	config := w.o.TLS.Clone()
	// it has been dialled, so it has a host and a port
	config.ServerName, _, _ = net.SplitHostPort(address)
	return tls.Client(raw, config)
}

// handshake sets the deadline of ctx on the connection and, with TLS, checks the other side: its
// certificate is of the members' authority, and made out to the host that was dialled.
func handshake(ctx context.Context, c *wireConn) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if t, ok := c.Conn.(*tls.Conn); ok {
		return t.HandshakeContext(ctx)
	}
	return nil
}

// Ask puts one question to the member at address and returns its answer, within 5 s or the time
// that ctx leaves. Each question has a connection of its own. Any goroutine.
//
// Errors: ErrQuestion when request or answer is too long, ErrAnswer with the member's refusal,
// ErrPlain; others say that the member was not reached.
func (w *wire) Ask(ctx context.Context, address string, request []byte) ([]byte, error) {
	if len(request) > wireMaxBytes {
		return nil, fmt.Errorf("quorum: ask address=%s: %d bytes: %w", address, len(request), ErrQuestion)
	}
	ctx, cancel := context.WithTimeout(ctx, w.o.timeout)
	defer cancel()
	defer context.AfterFunc(w.stop, cancel)()
	c, err := w.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	ok, body, err := exchange(c, request)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("quorum: ask address=%s: %w: %w", address, ctx.Err(), err)
	case err != nil:
		return nil, fmt.Errorf("quorum: ask address=%s: %w", address, err)
	case !ok:
		return nil, fmt.Errorf("quorum: ask address=%s: %w: %s", address, ErrAnswer, body)
	}
	return body, nil
}

// exchange sends the question and reads the verdict and the answer; ok is false for a refusal,
// whose text is body.
func exchange(c net.Conn, request []byte) (ok bool, body []byte, err error) {
	if _, err := c.Write(appendFrame([]byte{wireQuestion}, request)); err != nil {
		return false, nil, err
	}
	var verdict [1]byte
	if _, err := io.ReadFull(c, verdict[:]); err != nil {
		return false, nil, err
	}
	body, err = readFrame(c)
	return verdict[0] == wireOK, body, err
}
