package session

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/matcher/gate"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
)

// idlePoller is a poller that no goroutine runs, with one session.
func idlePoller(t *testing.T) (*poller, *session) {
	t.Helper()
	s, one := idleServer(t, wire.Orders, newRig(t).o)
	s.poll.sessions = []*session{one}
	return &s.poll, one
}

// idleServer is a server that no goroutine runs, with one session that has not joined.
func idleServer(t *testing.T, role wire.Role, o Options) (*Server, *session) {
	t.Helper()
	o.Socket += "2"
	s, err := Open(o)
	must.OK(t, err)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: o.Socket, Net: "unixpacket"})
	must.OK(t, err)
	one, status := s.newSession(conn, &wire.HelloFrame{Role: role, CommandSlots: 16, EventSlots: 16},
		gate.Claims{})
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

// The last look sees work that came before the doorbells were set, and the poller does not sleep.
// Without work it sleeps until its time-out.
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
			if one.doorbell.Parked() || p.server.park.waiter.Own.Parked() {
				t.Error("a doorbell is still set")
			}
		})
	}
}

// A command whose doorbell was read too early is found after a short sleep, not by the time-out.
func TestSecondLookAfterAShortSleep(t *testing.T) {
	p, _ := idlePoller(t)
	looks := 0
	p.server.park.sleep(p.sessions, func() bool { looks++; return looks > 1 })
	if m := p.server.Metrics(); m.Sleeps != 1 || m.Rescues != 0 {
		t.Errorf("%d sleeps, %d of them to their end", m.Sleeps, m.Rescues)
	}
}

// The poller does not wait on the doorbell of a session of which no command can be taken. The
// goroutine that makes room for it again wakes the poller.
func TestNoDoorbellWhileNothingCanBeTaken(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(one *session)
		unarmed bool
	}{
		{"it waits for commands", func(*session) {}, false},
		{"at its quota", func(one *session) { one.inFlight = len(one.flights) }, true},
		{"an answer is half told", func(one *session) { one.filled = 0 }, true},
		{"no room for answers", func(one *session) {
			for one.out.Room() > 0 {
				one.out.Put(&wire.Record{})
			}
			one.out.Flush()
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, one := idlePoller(t)
			tt.change(one)
			park := &p.server.park
			park.sleep(p.sessions, func() bool {
				if rings := one.doorbell.Parked(); rings == tt.unarmed {
					t.Errorf("its doorbell is set: %v", rings)
				}
				park.lease.Lend() // a committer borrows the sessions and has no answer for them
				p.server.Wake()
				park.lease.Regain()
				if !park.waiter.Own.Parked() {
					t.Error("the poller is woken for nothing")
				}
				return true
			})
		})
	}
}

// A goroutine that answers a session without a waited-on doorbell leaves the rest to the poller:
// the poller sets the doorbell again, for a later command.
func TestAnsweredSessionRingsAgain(t *testing.T) {
	s, one := lentPoller(t, 1)
	one.flights = one.flights[:1] // the session is at its quota
	s.park.sleep(s.poll.sessions, func() bool {
		s.park.lease.Lend()
		s.Wake()
		s.park.lease.Regain()
		if one.inFlight != 0 || s.park.waiter.Own.Parked() {
			t.Errorf("%d commands on their way, the poller parks: %v", one.inFlight,
				s.park.waiter.Own.Parked())
		}
		return true
	})
	s.park.sleep(s.poll.sessions, func() bool {
		if !one.doorbell.Parked() {
			t.Error("its doorbell is not set")
		}
		return true
	})
}

// A wake-up counts against its doorbell, whether it changes the word or not.
func TestFalseAlarmsAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name string
		ring func(word *uint32) int
	}{
		{"the word changes", changeAndWake},
		{"the word stays", wakeOne},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old := runtime.GOMAXPROCS(runtime.NumCPU() + 2)
			defer runtime.GOMAXPROCS(old)
			p, one := idlePoller(t)
			var stop atomic.Bool
			done := make(chan struct{})
			go func() {
				defer close(done)
				for !stop.Load() {
					tt.ring((*uint32)(unsafe.Pointer(one.doorbell)))
					runtime.Gosched()
				}
			}()
			for sleeps := 0; one.alarms < falseAlarms && sleeps < 2_000; sleeps++ {
				p.server.park.sleep(p.sessions, p.busy)
			}
			stop.Store(true)
			<-done
			if one.alarms != falseAlarms {
				t.Errorf("%d false alarms counted", one.alarms)
			}
			p.server.park.sleep(p.sessions, func() bool {
				if one.doorbell.Parked() {
					t.Error("it is still trusted")
				}
				return true
			})
		})
	}
}

// wakeOne wakes one thread that sleeps on the word, and returns how many it woke.
func wakeOne(word *uint32) int {
	n, _, _ := unix.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
	return int(n)
}
