package httpapi

import (
	"net"
	"sync"
)

// silent are the connections that have not sent anything yet. The HTTP library counts
// them among the busy ones until their read times out; programs that dial ahead
// leave such connections behind, and a shutdown need not wait for them.
type silent struct {
	mu     sync.Mutex
	conns  map[*framedConn]struct{}
	closed bool
}

// add takes in a connection, and reports false when the server shuts down already.
func (s *silent) add(c *framedConn) bool {
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

// heard forgets a connection that has sent something, or is gone.
func (s *silent) heard(c *framedConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// close ends them all, those that come later included. Only the sockets: each
// connection's own goroutine finds out and closes the rest.
func (s *silent) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.conns {
		_ = c.Conn.Close() // there is nobody to tell
	}
	clear(s.conns)
}

// framed wraps a connection that was accepted; nil when the server shuts down.
func (s *server) framed(c net.Conn) net.Conn {
	framed := newFramedConn(c)
	framed.open, framed.silent, framed.bodies = &s.open, &s.silent, s.bodies
	framed.limit = s.bodyLimit
	if !s.silent.add(framed) {
		_ = framed.Close() // as if it had not been accepted
		return nil
	}
	return framed
}
