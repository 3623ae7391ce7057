package storetest

import (
	"errors"
	"net"
	"sync"
	"testing"

	"posttrade/ring/must"
)

// Proxy stands for the network in front of a server: a listener on loopback. It begins whole.
//
// The three states: whole, held (bytes wait, connections stay) and cut (no connection). A held
// network that is cut ends the connections that waited. Any goroutine may switch.
type Proxy struct {
	listener         net.Listener
	network, address string // of the server
	// ends counts the goroutines of accept and of the connections, which must end before the test
	// does.
	ends sync.WaitGroup

	mu     sync.Mutex // guards what follows
	moved  *sync.Cond // broken or held changed
	broken bool
	held   bool
	// conns holds both ends of every connection that is open.
	conns map[net.Conn]struct{}
}

// newProxy listens on a free port. The proxy ends with the test.
func newProxy(t testing.TB, network, address string) *Proxy {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p := &Proxy{listener: listener, network: network, address: address,
		conns: make(map[net.Conn]struct{})}
	p.moved = sync.NewCond(&p.mu)
	p.ends.Go(p.accept)
	t.Cleanup(func() {
		p.Cut()
		if err := listener.Close(); err != nil {
			t.Errorf("close the proxy: %v", err)
		}
		p.ends.Wait()
	})
	return p
}

// Address is where clients connect.
//
// It does not change while the network is cut.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut ends every connection, and every new one at once, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = true
	p.moved.Broadcast()
	for c := range p.conns {
		_ = c.Close() // the goroutine that sees it first closes both ends
	}
}

// Hold lets no byte through until Heal, and closes no connection: neither end is told.
func (p *Proxy) Hold() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = true
}

// Heal makes the network whole again: held bytes go on, new connections come through.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.held = false, false
	p.moved.Broadcast()
}

// pass waits while the network holds; false when it is cut.
func (p *Proxy) pass() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held && !p.broken {
		p.moved.Wait()
	}
	return !p.broken
}

// accept serves clients until the listener closes.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.ends.Go(func() { p.serve(client) })
	}
}

// serve carries bytes both ways until either end closes.
func (p *Proxy) serve(client net.Conn) {
	server, err := net.Dial(p.network, p.address)
	if err != nil {
		_ = client.Close() // the client sees a server that is not there
		return
	}
	if p.register(client, server) {
		var back sync.WaitGroup
		back.Go(func() { p.carry(client, server) })
		p.carry(server, client)
		back.Wait()
	}
	p.forget(client, server)
}

// carry copies until one end closes, and then closes both. The test judges how a connection ends,
// so carry reports no error.
func (p *Proxy) carry(to, from net.Conn) {
	room := make([]byte, 64<<10)
	for open := true; open; {
		n, err := from.Read(room)
		open = err == nil && p.pass()
		if open {
			_, err = to.Write(room[:n])
			open = err == nil
		}
	}
	_, _ = to.Close(), from.Close()
}

// register notes a pair of connections; false when the network is cut.
//
// The pair is noted in either case, so that forget closes it.
func (p *Proxy) register(pair ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		p.conns[c] = struct{}{}
	}
	return !p.broken
}

// forget closes a pair and drops it.
func (p *Proxy) forget(pair ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range pair {
		_ = c.Close() // closed already unless the network is cut
		delete(p.conns, c)
	}
}
