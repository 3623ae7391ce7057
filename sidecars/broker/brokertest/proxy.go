package brokertest

import (
	"bytes"
	"net"
	"sync"
	"testing"
)

// proxy passes bytes between clients and a server, or holds them back.
type proxy struct {
	listener net.Listener
	server   func() string // where to connect, "" when the server is stopped
	wg       sync.WaitGroup

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

type pair struct {
	client, server net.Conn
	broken         bool // under proxy.mu
}

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

func (p *proxy) hold(server, client bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = [2]bool{toServer: server, toClient: client}
	p.turned.Broadcast()
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		p.breakUp(c)
	}
}

func (p *proxy) drop(c *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.breakUp(c)
}

// breakUp breaks a pair. The caller holds mu.
func (p *proxy) breakUp(c *pair) {
	delete(p.pairs, c)
	c.broken = true
	c.close()
	p.turned.Broadcast()
}

func (p *proxy) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

func (p *proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	p.wg.Wait()
}

func (c *pair) close() {
	c.client.Close()
	c.server.Close()
}

// containsError reports whether an answer of the JetStream API is an error.
func containsError(answer []byte) bool { return bytes.Contains(answer, []byte(`"error":`)) }
