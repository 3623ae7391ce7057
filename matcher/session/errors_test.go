package session

import (
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// When the input ring is full because the engine does not keep up, the client is told at once.
func TestFullInputRing(t *testing.T) {
	r := newRig(t, func(r *rig) {
		stuck := region(r.t, ring.MPSCBytes[matcher.Command](16))
		in, err := ring.NewMPSC[matcher.Command](stuck, 16)
		must.OK(r.t, err)
		if _, ok := in.ClaimN(14); !ok {
			r.t.Fatal("an empty ring has no room")
		}
		if r.desk, err = desk.New(in, 16); err != nil {
			r.t.Fatal(err)
		}
		r.o.Desk = r.desk
	})
	c := r.dial("", client.Options{})
	for i := range 3 {
		cmd := order()
		must.OK(t, c.Send(uint64(i), &cmd, ""))
	}
	c.Flush() // three at once do not fit, and none is handed in
	for i := range 3 {
		if got := next(t, c); got.Code != wire.Busy || got.Correlation != uint64(i) {
			t.Errorf("%+v", got)
		}
	}
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets out", r.desk.Out())
	}
}

// Without free descriptors there is no session; when there are free ones again, there is. The test
// runs in a process of its own, where no other code frees descriptors meanwhile.
func TestNoDescriptors(t *testing.T) {
	const alone = "POSTTRADE_SESSION_ALONE"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoDescriptors$", "-test.count=1",
			"-test.timeout=1m")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	log := &waittest.Log{}
	r := newRig(t, func(r *rig) { r.o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	r.before()
	connections := func(n int) func() bool {
		return func() bool {
			r.server.mu.Lock()
			defer r.server.mu.Unlock()
			return len(r.server.conns) == n
		}
	}
	until(t, "left", connections(0))
	waiting := r.raw()
	until(t, "accepted", connections(1))
	late := must.Get(unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(late)

	restore := limitDescriptors(t)
	t.Cleanup(restore)
	// A connection that cannot be accepted now is accepted later.
	if err := unix.Connect(late, &unix.SockaddrUnix{Name: r.o.Socket}); err != nil {
		t.Error(err)
	}
	until(t, "not accepted", func() bool { return strings.Contains(log.String(), "session: accept") })
	if _, err := waiting.Write(helloOf(wire.Orders, "")); err != nil {
		t.Error(err)
	}
	if kind, status := hear(t, waiting); kind != wire.Welcome || status != wire.NoMemory {
		t.Errorf("frame %d, %s", kind, status)
	}
	restore()
	until(t, "left", func() bool { return r.server.Metrics().Orders == 0 })
	if got := send(t, r.dial("", client.Options{}), 1, order(), ""); got.Code != wire.Decided {
		t.Errorf("afterwards: %+v", got)
	}
}

// limitDescriptors lets the process open no further descriptor until restore.
func limitDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	limit := old
	for limit.Cur = 0; ; limit.Cur++ {
		if _, err := unix.FcntlInt(uintptr(limit.Cur), unix.F_GETFD, 0); err != nil {
			break
		}
	}
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	return func() {
		must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
	}
}

// A session that is made while the server ends is told so.
func TestJoiningAfterTheEnd(t *testing.T) {
	r := newRig(t)
	o := r.o
	o.Socket += "2"
	s := must.Get(Open(o))(t)
	defer s.Close()
	path := r.o.Socket + "3"
	l := must.Get(net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"}))(t)
	defer l.Close()
	for _, before := range []bool{true, false} {
		conn := must.Get(net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"}))(t)
		defer conn.Close()
		one, status := s.newSession(conn, &wire.HelloFrame{Role: wire.Orders}, gate.Claims{})
		if status != wire.OK {
			t.Fatal(status)
		}
		if before {
			s.join(one)
			s.refuseJoining()
		} else {
			s.join(one)
		}
		<-one.ended
		one.unmap()
		if one.status != wire.Shutdown || s.Metrics().Orders != 0 {
			t.Errorf("status %s, metrics %+v", one.status, s.Metrics())
		}
	}
}

// The server works with every strategy, and Trade books at the last price.
func TestStrategies(t *testing.T) {
	for _, idle := range []ring.Strategy{ring.Yield, ring.Spin, ring.Park} {
		t.Run(idle.String(), func(t *testing.T) {
			r := newRig(t, func(r *rig) { r.o.Idle = idle })
			c := r.dial("", client.Options{})
			r.tick(aaa, 100_000_000)
			if got := ask(t, c, c.Trade(7, 1, aaa, matcher.Sell, 3, "t")); got.Fills != 1 ||
				got.Flags != wire.FlagMarket || got.Side != matcher.Sell {
				t.Errorf("%+v", got)
			}
			if c.Err() != nil || c.Quota() != DefaultQuota || c.Session() == 0 {
				t.Errorf("err %v, quota %d, session %d", c.Err(), c.Quota(), c.Session())
			}
		})
	}
}

// Every call of a closed client reports that it is closed, and its load ends with the session's
// end.
func TestLoadAndClosedClient(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{CommandSlots: 16})
	write := func(c *client.Client, i int) error {
		cmd := order()
		return c.Send(uint64(i), &cmd, "")
	}
	for _, l := range []volley{{}, {Count: 1}, {Count: 1, Window: 1, Batch: 2}} {
		if _, err := l.run(c); err == nil {
			t.Errorf("%+v: no error", l)
		}
	}
	// A window beyond the ring is as large as the ring.
	l := volley{Count: 500, Window: 200, Write: write}
	if res, err := l.run(c); err != nil || res.Answers != 500 || res.Codes[wire.Decided] != 500 {
		t.Errorf("%+v, %v", res, err)
	}
	stop := errors.New("enough")
	l = volley{Count: 5, Window: 1, Write: write,
		Answered: func(*wire.Record) error { return stop }}
	if _, err := l.run(c); err != stop {
		t.Errorf("stopped: %v", err)
	}
	l = volley{Count: 5, Window: 1, Write: func(*client.Client, int) error { return stop }}
	if _, err := l.run(c); err != stop {
		t.Errorf("not written: %v", err)
	}
	l = volley{Count: 2, Window: 1,
		Write: func(c *client.Client, i int) error { return write(c, 9) }}
	if _, err := l.run(c); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("foreign answer: %v", err)
	}
	r.server.Close()
	l = volley{Count: 100, Window: 100, Write: write}
	if _, err := l.run(c); !errors.Is(err, client.ErrEnded) {
		t.Errorf("ended: %v", err)
	}
	if _, err := c.Security(t.Context(), "AAA"); !errors.Is(err, client.ErrEnded) {
		t.Errorf("lookup: %v", err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A session that has ended takes no command, although its ring has room. A command that it took
// would never be answered.
func TestEndedSessionTakesNoCommand(t *testing.T) {
	r := newRig(t)
	c := r.dial("", client.Options{})
	r.server.Close()
	_, ended := c.Next()
	if !errors.Is(ended, client.ErrEnded) {
		t.Fatalf("end: %v", ended)
	}
	for name, got := range map[string]error{
		"order":   c.Order(1, &client.NewOrder{Account: 1, Security: aaa, Qty: 5}, ""),
		"cancel":  c.Cancel(2, 1, 1),
		"replace": c.Replace(3, 1, 1, 5, 100_000_000, ""),
		"trade":   c.Trade(4, 1, aaa, matcher.Sell, 3, ""),
	} {
		if got != ended {
			t.Errorf("%s: %v, want %v", name, got, ended)
		}
	}
	c.Close()
	if got := c.Cancel(5, 1, 1); got != ended {
		t.Errorf("after Close: %v, want %v", got, ended)
	}
}
