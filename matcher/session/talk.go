package session

import (
	"errors"
	"net"
	"os"
	"time"

	"posttrade/matcher/gate"
	"posttrade/matcher/session/wire"
)

// helloTime is how long a connection may take to send its hello, and the server to send a frame. It
// bounds how long a silent client can keep one of the connections.
const helloTime = 2 * time.Second

// accept admits clients until the listener is closed. After an error it pauses, from a millisecond
// up to a second, and goes on: the error may be that of one connection.
func (s *Server) accept() {
	for pause := time.Millisecond; ; {
		c, err := s.listener.AcceptUnix()
		switch {
		case err == nil:
			pause = time.Millisecond
			s.welcome(c)
		case s.stopping.Load() || errors.Is(err, net.ErrClosed):
			return
		default: // for example out of descriptors: others may close some
			s.o.Logger.Warn("session: accept", "error", err)
			select {
			case <-s.stopped:
				return
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
		}
	}
}

// welcome starts a connection's goroutine, unless there are too many connections: as many as
// sessions of both kinds, and some that are still in their handshake.
func (s *Server) welcome(c *net.UnixConn) {
	s.mu.Lock()
	crowded := len(s.conns) >= 2*s.o.MaxSessions+handshakeRoom
	if !crowded {
		s.conns[c] = struct{}{}
	}
	s.mu.Unlock()
	if crowded {
		s.counts.refusals[wire.TooMany].Add(1)
		say(c, wire.AppendRefusal(nil, wire.Welcome, wire.TooMany), nil)
		c.Close()
		return
	}
	s.talking.Go(func() { s.talk(c) })
}

// talk is a connection's goroutine, from hello to the end of its session. The end of the connection
// is the end of the session and the other way round: whichever comes first, talk waits for the
// session's goroutine and then unmaps.
func (s *Server) talk(c *net.UnixConn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	one, status := s.greet(c)
	if status != wire.OK {
		s.counts.refusals[status].Add(1)
		s.o.Logger.Info("session: refused", "reason", status.String())
		say(c, wire.AppendRefusal(nil, wire.Welcome, status), nil)
		return
	}
	if one == nil {
		return // the client hung up, or the server stopped, before there was a session
	}
	s.o.Logger.Info("session: begins", "session", one.id, "role", uint32(one.role), "peer", one.peer)
	if s.listenTo(one) {
		one.leaving.Store(true)
		s.rouse()
	}
	<-one.ended
	one.unmap()
	if one.status != wire.OK {
		say(c, wire.AppendRefusal(nil, wire.Goodbye, one.status), nil)
	}
	s.o.Logger.Info("session: ends", "session", one.id, "reason", one.status.String())
}

// greet reads the hello, makes the session and sends the welcome with its regions. When it returns
// neither a session nor a status, the client is gone. The order is hello, token, place, memory: a
// client without a token takes no memory.
func (s *Server) greet(c *net.UnixConn) (*session, wire.Status) {
	buffer := make([]byte, wire.MaxFrameBytes+1)
	c.SetReadDeadline(time.Now().Add(helloTime))
	if s.stopping.Load() { // the interruption of stop may have come before the deadline
		return nil, wire.Shutdown
	}
	n, err := c.Read(buffer)
	if s.stopping.Load() {
		return nil, wire.Shutdown
	}
	if err != nil || n == 0 {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, wire.BadFrame
		}
		return nil, wire.OK
	}
	h, claims, status := s.judgeHello(buffer[:n])
	if status != wire.OK {
		return nil, status
	}
	one, status := s.newSession(c, &h, claims)
	if status != wire.OK {
		return nil, status
	}
	c.SetReadDeadline(time.Time{})
	if err := s.introduce(one); err != nil {
		s.o.Logger.Warn("session: welcome", "session", one.id, "error", err)
	}
	return one, wire.OK
}

// introduce hands the session to its goroutine and then sends the welcome, so that a feed misses no
// event that its reader causes. It sends copies of the descriptors, because from join on the
// session may end at any time. After an error the client is gone, and the connection's next Read
// reports it.
func (s *Server) introduce(one *session) error {
	w := one.layout()
	rights, drop, err := rightsTo(one.regions[:])
	s.join(one)
	if err == nil {
		err = say(one.conn, w.Append(nil), rights)
	}
	drop()
	if err != nil {
		one.conn.Close()
	}
	return err
}

// judgeHello reads a hello and verifies its token, when entitlement is enforced. Version and form
// are judged before the token.
func (s *Server) judgeHello(frame []byte) (h wire.HelloFrame, claims gate.Claims,
	status wire.Status) {
	kind, _, body, err := wire.Parse(frame)
	switch {
	case errors.Is(err, wire.ErrVersion):
		return h, claims, wire.BadVersion
	case err != nil || kind != wire.Hello:
		return h, claims, wire.BadFrame
	}
	if h, err = wire.ParseHello(body); err != nil {
		return h, claims, wire.BadFrame
	}
	if h.Role < wire.Orders || h.Role > wire.Market {
		return h, claims, wire.NoSuchRole
	}
	if s.o.Enforced {
		if claims, err = s.o.Verifier.Verify(h.Token); err != nil {
			return h, claims, wire.BadToken
		}
	}
	return h, claims, wire.OK
}

// listenTo answers a session's frames until the client hangs up or misbehaves; or, with gone false,
// until the session's own goroutine has ended it or is about to. A frame that a client may not send
// now is a fault, which becomes the reason of the session's end.
func (s *Server) listenTo(one *session) (gone bool) {
	buffer := make([]byte, wire.MaxFrameBytes+1)
	for {
		n, err := one.conn.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) { // finish or stop: only these set one
			return false
		}
		if err != nil || n == 0 {
			return true
		}
		kind, _, body, err := wire.Parse(buffer[:n])
		switch {
		case err != nil:
			one.fault.Store(uint32(wire.BadFrame))
			return true
		case kind == wire.Renew:
			err = say(one.conn, wire.AppendRefusal(nil, wire.Renewed, s.renew(one, body)), nil)
		case kind == wire.Lookup:
			id, _ := s.o.Gate.Security(body)
			err = say(one.conn, wire.AppendText(nil, wire.Found, wire.OK, littleEndian(id)), nil)
		default:
			one.fault.Store(uint32(wire.BadFrame))
			return true
		}
		if err != nil {
			return true
		}
	}
}

// littleEndian is the body of a Found.
func littleEndian(v uint32) []byte {
	return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}
}

// renew gives the session another token if it has the same subject: a session does not change its
// owner. BadToken leaves the present one.
func (s *Server) renew(one *session, token []byte) wire.Status {
	if !s.o.Enforced {
		return wire.OK
	}
	claims, err := s.o.Verifier.Verify(token)
	if err != nil || claims.Subject != one.token.Load().claims.Subject {
		return wire.BadToken
	}
	one.token.Store(newSessionToken(token, claims))
	return wire.OK
}

// say sends one frame. A client that does not take it in time is treated as gone.
func say(c *net.UnixConn, frame, rights []byte) error {
	c.SetWriteDeadline(time.Now().Add(helloTime))
	_, _, err := c.WriteMsgUnix(frame, rights, nil)
	return err
}

// interrupt makes a connection's Read return, now and from now on, without closing the descriptor
// under it.
func interrupt(c *net.UnixConn) { c.SetReadDeadline(time.Unix(1, 0)) }
