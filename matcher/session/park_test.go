package session

import (
	"net"
	"sync/atomic"
	"testing"
	"unsafe"

	"posttrade/matcher/gate"
	"posttrade/matcher/session/wire"
)

// idlePoller is a poller that nobody runs, with one session.
func idlePoller(t *testing.T) (*poller, *session) {
	t.Helper()
	s, one := idleServer(t, wire.Orders, newRig(t).o)
	s.poll.sessions = []*session{one}
	return &s.poll, one
}

// idleServer is a server that nobody runs, with one session that has not joined.
func idleServer(t *testing.T, role wire.Role, o Options) (*Server, *session) {
	t.Helper()
	o.Socket += "2"
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: o.Socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	one, status := s.newSession(conn, &wire.HelloFrame{Role: role, CommandSlots: 16, EventSlots: 16}, gate.Claims{})
	if status != wire.OK {
		t.Fatal(status)
	}
	t.Cleanup(func() {
		one.finish(wire.OK)
		one.unmap()
		conn.Close()
		s.Close()
	})
	return s, one
}

// cursorAt is a word of the region that the client writes.
func cursorAt(one *session, offset uint64) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&one.regions[0].Bytes()[offset]))
}

// What happened before the doorbells were set is seen by the last look, and the poller
// does not sleep; with nothing to do it does, until its time is over.
func TestLastLookBeforeSleep(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *poller, one *session)
	}{
		{"a command", func(_ *poller, one *session) {
			one.commands.Claim().Command = order()
			one.commands.Publish()
		}},
		{"an impossible cursor", func(_ *poller, one *session) { cursorAt(one, published).Store(99) }},
		{"a client that left", func(_ *poller, one *session) { one.leaving.Store(true) }},
		{"a client that joins", func(p *poller, _ *session) { p.knock.Store(true) }},
		{"the end", func(p *poller, _ *session) { p.server.stopping.Store(true) }},
		{"a reader's impossible cursor, with a command", func(_ *poller, one *session) {
			one.commands.Claim().Command = order()
			one.commands.Publish()
			for one.out.Room() > 0 {
				one.out.Put(&wire.Record{})
			}
			one.out.Flush()
			cursorAt(one, one.layout().ClientPage).Store(99)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, one := idlePoller(t)
			p.server.park.sleep(p.sessions, p.busy)
			if got := p.server.Metrics().Sleeps; got != 1 {
				t.Fatalf("%d sleeps with nothing to do, want 1", got)
			}
			tt.change(p, one)
			p.server.park.sleep(p.sessions, p.busy)
			if got := p.server.Metrics().Sleeps; got != 1 {
				t.Error("it slept")
			}
			if one.doorbell.Load() != awake || p.server.park.word.Load() != awake {
				t.Error("a doorbell is still set")
			}
		})
	}
}
