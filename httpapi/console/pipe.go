package console

import (
	"context"
	"net"
	"sync"
)

// pipeListener accepts connections that are made in memory by dial.
//
// It takes no port: only this process can dial it.
type pipeListener struct {
	name string
	// conns has no buffer: dial waits until Accept takes the connection.
	conns chan net.Conn
	once  sync.Once
	// ended is closed by Close, at most once.
	ended chan struct{}
}

func newPipeListener(name string) *pipeListener {
	return &pipeListener{name: name, conns: make(chan net.Conn), ended: make(chan struct{})}
}

// Accept returns the next connection. After Close it returns net.ErrClosed, as a network's listener
// does.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

// Close ends Accept and dial. Connections that are open stay open.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.ended) })
	return nil
}

// Addr is no address of a network.
func (l *pipeListener) Addr() net.Addr { return pipeAddr(l.name) }

// pipeAddr is the name of the service, in place of an address.
type pipeAddr string

func (a pipeAddr) Network() string { return "pipe" }
func (a pipeAddr) String() string  { return string(a) }

// peerKey is the context value with the address of the browser.
type peerKey struct{}

// dial connects to the service behind the listener. The service sees the browser's address, for its
// log and audit.
//
// Errors: net.ErrClosed when the service has ended, and that of ctx. The connection has no buffer:
// a write waits for its reader.
func (l *pipeListener) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	if peer, ok := ctx.Value(peerKey{}).(net.Addr); ok {
		far = fromPeer{far, peer}
	}
	select {
	case l.conns <- far:
		return near, nil
	case <-l.ended:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fromPeer is the service's end of a pipe, with the address of the browser.
type fromPeer struct {
	net.Conn
	peer net.Addr
}

func (c fromPeer) RemoteAddr() net.Addr { return c.peer }
