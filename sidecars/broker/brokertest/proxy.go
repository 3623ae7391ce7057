package brokertest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// proxy passes bytes between clients and a server, or holds them back.
//
// The port stays the same for the whole test, while servers come and go behind it: clients
// reconnect to the address that they know. The faults apply to all connections alike.
type proxy struct {
	listener net.Listener
	server   func() string // where to connect, "" when the server is stopped
	wg       sync.WaitGroup

	// mu guards the fields below and the field broken of every pair.
	mu     sync.Mutex
	pairs  map[*pair]struct{}
	held   [2]bool    // toServer, toClient
	turned *sync.Cond // held or a pair's broken has changed
	closed bool
}

const (
	toServer = iota
	toClient
)

// pair is a client's connection and the one that the proxy has made to the server for it.
type pair struct {
	client, server net.Conn
	broken         bool // under proxy.mu
}

// server is called for each new connection.
func newProxy(t testing.TB, server func() string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("brokertest: listen: %v", err)
	}
	p := &proxy{listener: listener, server: server, pairs: map[*pair]struct{}{}}
	p.turned = sync.NewCond(&p.mu)
	p.wg.Go(p.accept)
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// accept pairs clients with the server until the listener is closed. A client that comes while the
// server is stopped is disconnected at once.
func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		var server net.Conn
		if address := p.server(); address != "" {
			server, err = net.Dial("tcp", address)
		}
		if server == nil || err != nil {
			client.Close()
			continue
		}
		if c := (&pair{client: client, server: server}); !p.join(c) {
			c.close()
			return
		}
	}
}

// join passes what comes at both ends on, unless the proxy is closed.
func (p *proxy) join(c *pair) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.pairs[c] = struct{}{}
	p.wg.Go(func() { p.pass(c, toServer, c.client, c.server) })
	p.wg.Go(func() { p.pass(c, toClient, c.server, c.client) })
	return true
}

// pass copies one direction, waiting while it is held.
//
// The end of either side breaks the pair. What was read and is held when that happens is lost.
func (p *proxy) pass(c *pair, direction int, from, to net.Conn) {
	defer p.drop(c)
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if n > 0 {
			if !p.open(c, direction) {
				return
			}
			if _, err := to.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// open waits until the direction is not held; false when the pair is broken.
func (p *proxy) open(c *pair, direction int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held[direction] && !c.broken {
		p.turned.Wait()
	}
	return !c.broken
}

// hold sets which directions wait: to the server, to the client.
func (p *proxy) hold(server, client bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = [2]bool{toServer: server, toClient: client}
	p.turned.Broadcast()
}

// cut breaks every pair. New clients are served.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		p.closePair(c)
	}
}

// drop breaks one pair, again without an effect when it is broken.
func (p *proxy) drop(c *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closePair(c)
}

// closePair breaks a pair. The caller holds mu.
func (p *proxy) closePair(c *pair) {
	delete(p.pairs, c)
	c.broken = true
	c.close()
	p.turned.Broadcast()
}

// close ends everything and waits for the goroutines.
func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	p.wg.Wait()
}

// close unblocks the two goroutines that read from the connections.
func (c *pair) close() {
	c.client.Close()
	c.server.Close()
}

// containsError reports whether an answer of the JetStream API is an error.
//
// The texts of a test's settings have no such member.
func containsError(answer []byte) bool { return bytes.Contains(answer, []byte(`"error":`)) }
