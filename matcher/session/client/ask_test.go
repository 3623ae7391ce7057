package client

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"

	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
)

// talking is a client without rings whose server is the test, at the other end of the socket.
func talking(t *testing.T) (c *Client, server *net.UnixConn) {
	t.Helper()
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: "unixpacket"}
	l := must.Get(net.ListenUnix("unixpacket", at))(t)
	defer l.Close()
	conn := must.Get(net.DialUnix("unixpacket", nil, at))(t)
	server = must.Get(l.AcceptUnix())(t)
	total, page := wire.CommandBytes(16)
	region := must.Get(ring.Anonymous(total))(t)
	c = &Client{conn: conn, page: wire.PageAt(region, page), replies: make(chan reply, 1),
		done: make(chan struct{})}
	go c.listen()
	t.Cleanup(func() {
		c.Close()
		server.Close()
		region.Close()
	})
	return c, server
}

// heard is the body of the next frame that the client sends.
func heard(t *testing.T, server *net.UnixConn) string {
	t.Helper()
	frame := make([]byte, wire.MaxFrameBytes)
	n := must.Get(server.Read(frame))(t)
	_, _, body, err := wire.Parse(frame[:n])
	must.OK(t, err)
	return string(body)
}

// A question that was abandoned by its context leaves its reply behind, before or after the next
// question. The next question gets its own.
func TestReplyBelongsToItsQuestion(t *testing.T) {
	found := func(id byte) []byte {
		return wire.AppendText(nil, wire.Found, wire.OK, []byte{id, 0, 0, 0})
	}
	renewed := func(s wire.Status) []byte { return wire.AppendRefusal(nil, wire.Renewed, s) }
	lookup := func(c *Client, ctx context.Context, ticker string) (uint32, error) {
		return c.Security(ctx, ticker)
	}
	renew := func(c *Client, ctx context.Context, token string) (uint32, error) {
		return 0, c.Renew(ctx, token)
	}
	for _, tt := range []struct {
		name  string
		ask   func(*Client, context.Context, string) (uint32, error)
		reply [3][]byte // to two abandoned questions, then to the one that waits
		early int       // replies that come before the last question
		want  uint32
	}{
		{"security", lookup, [3][]byte{found(1), found(2), found(3)}, 0, 3},
		{"security, one reply early", lookup, [3][]byte{found(1), found(2), found(3)}, 1, 3},
		{"security, both early", lookup, [3][]byte{found(1), found(2), found(3)}, 2, 3},
		{"renew", renew,
			[3][]byte{renewed(wire.BadToken), renewed(wire.BadToken), renewed(wire.OK)}, 0, 0},
		{"renew, one reply early", renew,
			[3][]byte{renewed(wire.BadToken), renewed(wire.BadToken), renewed(wire.OK)}, 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := talking(t)
			type result struct {
				id  uint32
				err error
			}
			results := make(chan result, 1)
			question := func(ctx context.Context, body string) {
				go func() {
					id, err := tt.ask(c, ctx, body)
					results <- result{id, err}
				}()
				if got := heard(t, server); got != body {
					t.Fatalf("question %q, want %q", got, body)
				}
			}
			for _, body := range []string{"first", "second"} {
				ctx, cancel := context.WithCancel(t.Context())
				question(ctx, body)
				cancel()
				if got := <-results; !errors.Is(got.err, context.Canceled) {
					t.Fatalf("%s, abandoned: %+v", body, got)
				}
			}
			for _, frame := range tt.reply[:tt.early] {
				must.Get(server.Write(frame))(t)
			}
			question(t.Context(), "third")
			for _, frame := range tt.reply[tt.early:] {
				must.Get(server.Write(frame))(t)
			}
			if got := <-results; got.id != tt.want || got.err != nil {
				t.Errorf("third: %+v, want %d", got, tt.want)
			}
		})
	}
}

// A context that has ended asks nothing.
func TestEndedContextAsksNothing(t *testing.T) {
	c, server := talking(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Security(ctx, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	must.Get(server.Write(wire.AppendText(nil, wire.Goodbye, wire.Shutdown, nil)))(t)
	<-c.done
	c.conn.CloseWrite()
	if n, _ := server.Read(make([]byte, wire.MaxFrameBytes)); n != 0 {
		t.Errorf("the server got a frame of %d bytes", n)
	}
}
