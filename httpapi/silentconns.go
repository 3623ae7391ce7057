package httpapi

import (
	"net"
	"sync"
)

// silentConns holds the connections that have not sent anything yet. The HTTP library counts them
// among the busy ones until their read times out. Programs that dial in advance leave such
// connections behind, and a shutdown does not need to wait for them.
type silentConns struct {
	// mu guards both. A connection takes it when it is accepted, with its first read and at its end.
	mu     sync.Mutex
	conns  map[*framedConn]struct{}
	closed bool
}

// add adds a connection, and reports false when the server is already shutting down. The caller
// then closes the connection.
func (s *silentConns) add(c *framedConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.conns == nil {
		s.conns = map[*framedConn]struct{}{}
	}
	s.conns[c] = struct{}{}
	return true
}

// heard removes a connection that has sent something, or is gone. It may be called again for the
// same connection.
func (s *silentConns) heard(c *framedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// close closes the sockets of all these connections, and of those that come later. Each
// connection's own goroutine notices that and closes the rest.
func (s *silentConns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		_ = c.Conn.Close() // the error has no receiver
	}
	clear(s.conns)
}

// framed wraps an accepted connection; nil when the server is shutting down.
//
// It runs on the goroutine that accepts. The connection counts in open, which the caller has
// raised; its Close lowers it.
func (s *server) framed(c net.Conn) net.Conn {
	framed := newFramedConn(c)
	framed.open, framed.silent, framed.bodies = &s.open, &s.silent, s.bodies
	framed.limit, framed.valid = s.bodyLimit, s.valid
	if !s.silent.add(framed) {
		_ = framed.Close() // as if it was never accepted
		return nil
	}
	return framed
}
