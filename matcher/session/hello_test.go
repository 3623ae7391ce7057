package session

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// raw is a connection to the socket on which the test sends any bytes.
func (r *rig) raw() *net.UnixConn {
	r.t.Helper()
	c := must.Get(net.Dial("unixpacket", r.o.Socket))(r.t)
	r.t.Cleanup(func() { c.Close() })
	return c.(*net.UnixConn)
}

// hear reads one frame.
func hear(t testing.TB, c *net.UnixConn) (wire.Frame, wire.Status) {
	t.Helper()
	buffer := make([]byte, wire.MaxFrameBytes)
	n, err := c.Read(buffer)
	must.OK(t, err)
	kind, status, _, err := wire.Parse(buffer[:n])
	must.OK(t, err)
	return kind, status
}

func helloOf(role wire.Role, token string) []byte {
	h := wire.HelloFrame{Role: role, Token: []byte(token)}
	return h.Append(nil)
}

// Every bad hello is refused with its own status, and no resource stays in use.
func TestHellos(t *testing.T) {
	r := newRig(t, enforced)
	good := r.token(false, 1)
	old := gate.Mint(testSecret(), gate.Claims{Subject: "someone"}, "", time.Hour,
		time.UnixMilli(testTime-7_200_000))
	foreign := gate.Mint(bytes.Repeat([]byte{7}, 32), gate.Claims{Subject: "someone"}, "", time.Hour,
		time.UnixMilli(testTime))
	change := func(at int, v byte) []byte {
		b := helloOf(wire.Orders, good)
		b[at] = v
		return b
	}
	tests := []struct {
		name  string
		frame []byte
		want  wire.Status
	}{
		{"orders", helloOf(wire.Orders, good), wire.OK},
		{"drop copy", helloOf(wire.DropCopy, good), wire.OK},
		{"trades", helloOf(wire.Trades, good), wire.OK},
		{"market", helloOf(wire.Market, good), wire.OK},
		{"no token", helloOf(wire.Orders, ""), wire.BadToken},
		{"a word", helloOf(wire.Orders, "letmein"), wire.BadToken},
		{"expired token", helloOf(wire.Orders, old), wire.BadToken},
		{"another secret", helloOf(wire.Orders, foreign), wire.BadToken},
		{"cut signature", helloOf(wire.Orders, good[:len(good)-1]), wire.BadToken},
		{"feed without a token", helloOf(wire.Trades, ""), wire.BadToken},
		{"role 0", helloOf(0, good), wire.NoSuchRole},
		{"role 4", helloOf(5, good), wire.NoSuchRole},
		{"magic", change(0, 'X'), wire.BadFrame},
		{"version", change(4, 2), wire.BadVersion},
		{"another frame", change(6, byte(wire.Renew)), wire.BadFrame},
		{"length", change(8, 1), wire.BadFrame},
		{"reserved", change(28, 1), wire.BadFrame},
		{"one byte", []byte{1}, wire.BadFrame},
		{"head alone", wire.AppendHead(nil, wire.Hello, wire.OK, 0), wire.BadFrame},
		{"too long", append(helloOf(wire.Orders, strings.Repeat("t", wire.MaxTokenBytes)), 'x'),
			wire.BadFrame},
		{"long token", helloOf(wire.Orders, strings.Repeat("t", wire.MaxTokenBytes)), wire.BadToken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := r.raw()
			must.Get(c.Write(tt.frame))(t)
			if kind, status := hear(t, c); kind != wire.Welcome || status != tt.want {
				t.Errorf("got frame %d with %s, want %s", kind, status, tt.want)
			}
			if tt.want != wire.OK {
				if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
					t.Errorf("the connection stays open: %d, %v", n, err)
				}
			}
			c.Close()
			until(t, "left", func() bool { m := r.server.Metrics(); return m.Orders == 0 && m.Feeds == 0 })
		})
	}
	m := r.server.Metrics()
	if m.Begun != 4 || m.Ended[wire.OK] != 4 || m.Refused[wire.BadToken] != 7 ||
		m.Refused[wire.BadVersion] != 1 {
		t.Errorf("metrics %+v", m)
	}
}

// A client that connects and sends nothing, or half a frame, does not hold up other clients. A
// client that hangs up is forgotten.
func TestSilentConnections(t *testing.T) {
	r := newRig(t)
	for range 5 {
		r.raw()
		r.raw().Close()
	}
	c := r.dial("", client.Options{})
	if got := send(t, c, 1, order(), ""); got.Code != wire.Decided {
		t.Errorf("beside them: %+v", got)
	}
}

// The setting limits the sessions of either kind; a released place is free.
func TestSessionsAreCounted(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.MaxSessions = 2 })
	a, b := r.dial("", client.Options{}), r.dial("", client.Options{})
	r.dial("", client.Options{Role: wire.DropCopy})
	r.dial("", client.Options{Role: wire.Trades})
	for _, role := range []wire.Role{wire.Orders, wire.DropCopy, wire.Trades} {
		_, err := client.Dial(context.Background(), r.o.Socket, "", client.Options{Role: role})
		if !errors.Is(err, client.ErrRefused) || !strings.Contains(err.Error(), wire.TooMany.String()) {
			t.Errorf("role %d: %v", role, err)
		}
	}
	a.Close()
	until(t, "one place", func() bool { return r.server.Metrics().Orders == 1 })
	c := r.dial("", client.Options{})
	for _, one := range []*client.Client{b, c} {
		if got := send(t, one, 1, order(), ""); got.Code != wire.Decided {
			t.Errorf("%+v", got)
		}
	}
}

// A server that stands aside ends its sessions of every role, those that sleep too, and refuses
// every hello, with the reason.
func TestAServerThatStandsAsideHasNoSessions(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.MaxSessions = 3 })
	roles := []wire.Role{wire.Orders, wire.DropCopy, wire.Trades, wire.Market}
	var open []*client.Client
	for _, role := range roles {
		open = append(open, r.dial("", client.Options{Role: role}))
	}
	if got := send(t, open[0], 1, order(), ""); got.Code != wire.Decided {
		t.Fatalf("before: %+v", got)
	}
	for range 2 {
		r.server.StandAside()
	}
	for i, one := range open {
		until(t, "the session ends", func() bool { return one.Err() != nil })
		if err := one.Err(); !strings.Contains(err.Error(), wire.Aside.String()) {
			t.Errorf("role %d ended with %v", roles[i], err)
		}
		_, err := client.Dial(t.Context(), r.o.Socket, "", client.Options{Role: roles[i]})
		if !errors.Is(err, client.ErrRefused) || !strings.Contains(err.Error(), wire.Aside.String()) {
			t.Errorf("role %d dials: %v", roles[i], err)
		}
	}
	if m := r.server.Metrics(); m.Orders+m.Feeds != 0 || m.Ended[wire.Aside] != uint64(len(roles)) ||
		m.Refused[wire.Aside] != uint64(len(roles)) {
		t.Errorf("%+v", m)
	}
}

// Connections beyond the possible number of sessions are refused at once.
func TestSocketFlood(t *testing.T) {
	r := newRig(t, func(r *rig) { r.o.MaxSessions = 1 })
	c := r.dial("", client.Options{})
	const n = 60
	for range n {
		r.raw()
	}
	until(t, "turned away",
		func() bool { return r.server.Metrics().Refused[wire.TooMany] >= n-2-handshakeRoom })
	if got := send(t, c, 1, order(), ""); got.Code != wire.Decided {
		t.Errorf("the session beside them: %+v", got)
	}
}

// After the hello only frames with tickers and tokens are allowed.
func TestFramesOfASession(t *testing.T) {
	r := newRig(t, enforced)
	ctx := context.Background()
	c := r.dial(r.token(false, 1), client.Options{})
	for ticker, want := range map[string]uint32{"AAA": aaa, "BBB": bbb, "NONE": 0, "": 0} {
		if id, err := c.Security(ctx, ticker); id != want || err != nil {
			t.Errorf("security %q: %d, %v", ticker, id, err)
		}
	}
	if got := send(t, c, 1, with(order(), func(c *matcher.Command) { c.AccountID = 2 }),
		""); got.Code != wire.NotEntitled {
		t.Errorf("before: %+v", got)
	}
	must.OK(t, c.Renew(ctx, r.token(false, 1, 2)))
	if got := send(t, c, 2, with(order(), func(c *matcher.Command) { c.AccountID = 2 }),
		""); got.Code != wire.Decided {
		t.Errorf("after: %+v", got)
	}
	other := gate.Mint(testSecret(), gate.Claims{Subject: "else", Admin: true}, "", time.Hour,
		time.UnixMilli(testTime))
	for _, token := range []string{other, "nonsense", ""} {
		if err := c.Renew(ctx, token); !errors.Is(err, client.ErrRefused) {
			t.Errorf("token %.10q: %v", token, err)
		}
	}
	for _, frame := range [][]byte{helloOf(wire.Orders, ""),
		wire.AppendText(nil, wire.Goodbye, wire.OK, nil), {1, 2, 3}} {
		one := r.raw()
		one.Write(helloOf(wire.Orders, r.token(false, 1)))
		hear(t, one)
		one.Write(frame)
		if kind, status := hear(t, one); kind != wire.Goodbye || status != wire.BadFrame {
			t.Errorf("frame %x: %d, %s", frame[:3], kind, status)
		}
	}
}

// A token that expires ends its session at the next command, or a feed at the next look. A session
// with a token renewed in time continues.
func TestTokensRunOut(t *testing.T) {
	r := newRig(t, enforced)
	ends, stays := r.dial(r.token(false, 1), client.Options{}),
		r.dial(r.token(false, 1), client.Options{})
	feed := r.dial(r.token(false, 1), client.Options{Role: wire.DropCopy})
	send(t, ends, 1, order(), "")
	next(t, feed)
	r.now.Add(3_590_000)
	must.OK(t, stays.Renew(context.Background(), r.token(false, 1)))
	r.now.Add(20_000)
	if got := send(t, stays, 1, order(), ""); got.Code != wire.Decided {
		t.Errorf("renewed: %+v", got)
	}
	for name, one := range map[string]*client.Client{"orders": ends, "feed": feed} {
		if name == "orders" {
			cmd := order()
			must.OK(t, one.Send(2, &cmd, ""))
			one.Flush()
		}
		for {
			if _, err := one.Next(); err != nil {
				if !errors.Is(err, client.ErrEnded) ||
					!strings.Contains(err.Error(), wire.TokenExpired.String()) {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
		}
	}
	if got := r.stage.Applied(); got != 2 {
		t.Errorf("applied %d, want 2", got)
	}
}

// A file that a killed server left is replaced. A socket on which a process listens stays, and so
// does a file that is not a socket.
func TestSocketFile(t *testing.T) {
	r := newRig(t)
	if info, err := os.Stat(r.o.Socket); err != nil || info.Mode().Perm() != DefaultMode ||
		info.Mode().Type() != fs.ModeSocket {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if _, err := Open(r.o); !errors.Is(err, ErrInUse) {
		t.Errorf("a second server: %v", err)
	}
	if got := send(t, r.dial("", client.Options{}), 1, order(), ""); got.Code != wire.Decided {
		t.Errorf("after it: %+v", got)
	}

	o := r.o
	o.Socket = filepath.Join(filepath.Dir(r.o.Socket), "stale")
	l := must.Get(net.ListenUnix("unixpacket", &net.UnixAddr{Name: o.Socket, Net: "unixpacket"}))(t)
	l.SetUnlinkOnClose(false)
	l.Close()
	o.Mode = 0o660
	s := must.Get(Open(o))(t)
	if info, err := os.Stat(o.Socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info, err)
	}
	s.Close()
	if _, err := os.Stat(o.Socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}

	file := filepath.Join(filepath.Dir(r.o.Socket), "file")
	must.OK(t, os.WriteFile(file, []byte("precious"), 0o600))
	o.Socket = file
	if _, err := Open(o); !errors.Is(err, ErrNotSocket) {
		t.Errorf("a file: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "precious" {
		t.Errorf("the file: %q, %v", b, err)
	}
	// A listener of another type is a process that listens, too.
	stream := filepath.Join(filepath.Dir(file), "stream")
	ls := must.Get(net.Listen("unix", stream))(t)
	defer ls.Close()
	o.Socket = stream
	if _, err := Open(o); !errors.Is(err, ErrInUse) {
		t.Errorf("a stream socket: %v", err)
	}
	for _, path := range []string{filepath.Join(filepath.Dir(file), "no", "such"),
		filepath.Join(filepath.Dir(file), strings.Repeat("x", 120))} {
		o.Socket = path
		if _, err := Open(o); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

func TestOpenOptions(t *testing.T) {
	r := newRig(t)
	for name, change := range map[string]func(o *Options){
		"socket":    func(o *Options) { o.Socket = "" },
		"gate":      func(o *Options) { o.Gate = nil },
		"desk":      func(o *Options) { o.Desk = nil },
		"views":     func(o *Options) { o.Views = nil },
		"verifier":  func(o *Options) { o.Verifier = nil },
		"clock":     func(o *Options) { o.Clock = nil },
		"durable":   func(o *Options) { o.Durable = nil },
		"seen":      func(o *Options) { o.Seen = nil },
		"quota":     func(o *Options) { o.Quota = MaxSlots + 1 },
		"sessions":  func(o *Options) { o.MaxSessions = MaxSessions + 1 },
		"tap slots": func(o *Options) { o.TapSlots = 1000 },
	} {
		o := r.o
		o.Socket += "2"
		change(&o)
		if _, err := Open(o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Run reports a core that does not exist, and ends cleanly.
func TestRunOnAMissingCore(t *testing.T) {
	r := newRig(t)
	o := r.o
	o.Socket, o.CPU, o.Pinned = o.Socket+"2", 4000, true
	s := must.Get(Open(o))(t)
	if err := s.Run(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("run: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Close answers the commands on their way, sends the goodbye, and admits no further client.
func TestCloseSaysGoodbye(t *testing.T) {
	r := newRig(t)
	c, feed := r.dial("", client.Options{}), r.dial("", client.Options{Role: wire.Trades})
	r.hold()
	cmd := order()
	must.OK(t, c.Send(1, &cmd, ""))
	c.Flush()
	until(t, "recorded", func() bool { return r.recorded.Load() == 1 })
	closed := make(chan error)
	go func() { closed <- r.server.Close() }()
	until(t, "stopping", r.server.stopping.Load)
	r.letGo()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if got := next(t, c); got.Code != wire.Decided || got.Correlation != 1 {
		t.Errorf("on its way: %+v", got)
	}
	for _, one := range []*client.Client{c, feed} {
		if _, err := one.Next(); !errors.Is(err, client.ErrEnded) ||
			!strings.Contains(err.Error(), wire.Shutdown.String()) {
			t.Errorf("goodbye: %v", err)
		}
		if err := one.Send(2, &cmd, ""); err == nil {
			one.Flush() // to a server that has ended
		}
	}
	if _, err := client.Dial(context.Background(), r.o.Socket, "", client.Options{}); err == nil {
		t.Error("a peer got in")
	}
}

// The client distinguishes the possible replies of its server.
func TestDialRefusals(t *testing.T) {
	path := filepath.Join(socketDir(t), "s")
	l := must.Get(net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"}))(t)
	defer l.Close()
	welcome := wire.WelcomeFrame{CommandSlots: 16, EventSlots: 16}
	total, at := wire.CommandBytes(16)
	welcome.CommandBytes, welcome.ClientPage, welcome.EventBytes = uint64(total), uint64(at),
		uint64(wire.EventBytes(16))
	unsealed := mustRegion(t, total)
	tests := []struct {
		name  string
		frame []byte
		fds   []int
		want  error
	}{
		{"hangs up", nil, nil, client.ErrRefused},
		{"refusal", wire.AppendRefusal(nil, wire.Welcome, wire.BadToken), nil, client.ErrRefused},
		{"another frame", wire.AppendText(nil, wire.Found, wire.OK, nil), nil, client.ErrRefused},
		{"no frame", []byte("hello"), nil, wire.ErrFrame},
		{"no descriptors", welcome.Append(nil), nil, wire.ErrFrame},
		{"short welcome", wire.AppendText(nil, wire.Welcome, wire.OK, []byte("abc")), nil, wire.ErrFrame},
		{"no ring inside", welcome.Append(nil), []int{unsealed.Fd(), unsealed.Fd()}, ring.ErrFormat},
	}
	for _, tt := range tests {
		go func() {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			defer c.Close()
			c.Read(make([]byte, wire.MaxFrameBytes))
			if tt.frame != nil {
				c.WriteMsgUnix(tt.frame, syscall.UnixRights(tt.fds...), nil)
			}
		}()
		if _, err := client.Dial(
			context.Background(), path, "", client.Options{},
		); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			defer c.Close()
			c.Read(make([]byte, wire.MaxFrameBytes))
			cancel()
			c.Read(make([]byte, 1))
		}
	}()
	if _, err := client.Dial(ctx, path, "", client.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if got := binary.LittleEndian.Uint32(welcome.Append(nil)); got != wire.Magic {
		t.Errorf("magic %x", got)
	}
}

// mustRegion is sealed shared memory, too small for an event ring.
func mustRegion(t *testing.T, bytes int) *ring.Region {
	t.Helper()
	r := must.Get(ring.Memfd("test", bytes))(t)
	t.Cleanup(func() { r.Close() })
	return r
}
