package httpapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/ring/must"

	"github.com/valyala/fasthttp"
)

// countingConn counts how often a deadline is set on it.
type countingConn struct {
	net.Conn
	told  int
	fails error // of the setting of a deadline
}

func (c *countingConn) SetReadDeadline(t time.Time) error {
	c.told++
	return errors.Join(c.fails, c.Conn.SetReadDeadline(t))
}

func (c *countingConn) SetWriteDeadline(t time.Time) error {
	c.told++
	return errors.Join(c.fails, c.Conn.SetWriteDeadline(t))
}

// linked returns a framed connection, the connection below it, and its other end.
func linked(t *testing.T) (c *framedConn, under *countingConn, peer net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	under = &countingConn{Conn: near}
	return newFramedConn(under), under, far
}

// linkedTLS is linked over TLS.
func linkedTLS(t *testing.T) (c *framedConn, peer net.Conn) {
	secured, roots := certificates(t)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	return newFramedConn(tls.Server(near, secured)),
		tls.Client(far, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
}

// TestReadsEndAtTheLastDeadline, when it is later or earlier than the one that the connection has.
func TestReadsEndAtTheLastDeadline(t *testing.T) {
	for _, tt := range []struct {
		name      string
		deadlines []time.Duration // set one after the other, the last one counts; 0: none
		want      time.Duration
	}{
		{"the only one", []time.Duration{time.Second}, time.Second},
		{"a later one", []time.Duration{time.Second, time.Minute}, time.Minute},
		{"an earlier one", []time.Duration{time.Minute, time.Second}, time.Second},
		{"one behind none", []time.Duration{time.Minute, 0, time.Second}, time.Second},
		{"one that has passed", []time.Duration{time.Minute, -time.Second}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, _, peer := linked(t)
				begun, buf := time.Now(), make([]byte, 256)
				for i, d := range tt.deadlines {
					due := time.Time{}
					if d != 0 {
						due = begun.Add(d)
					}
					c.SetReadDeadline(due)
					if i+1 == len(tt.deadlines) {
						break
					}
					go peer.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
					must.Get(io.ReadAtLeast(c, buf, len("GET / HTTP/1.1\r\n\r\n")))(t)
				}
				if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatalf("read ended with %v", err)
				}
				if took := time.Since(begun); took != tt.want {
					t.Errorf("read ended after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// TestWritesEndAtTheLastDeadline also counts the bytes: what was written before the deadline stays
// written. Over TLS a write that a deadline has ended is the last one of its connection.
func TestWritesEndAtTheLastDeadline(t *testing.T) {
	for _, tt := range []struct {
		name string
		link func(t *testing.T) (c *framedConn, peer net.Conn)
	}{
		{"plain", func(t *testing.T) (*framedConn, net.Conn) { c, _, peer := linked(t); return c, peer }},
		{"TLS", linkedTLS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := tt.link(t)
				begun := time.Now()
				c.SetWriteDeadline(begun.Add(time.Second))
				go io.ReadFull(peer, make([]byte, 3))
				if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
					t.Fatalf("wrote %d, %v", n, err)
				}
				c.SetWriteDeadline(begun.Add(time.Minute))
				sent := bytes.Repeat([]byte("defgh"), 20_000) // of several TLS records
				got := make([]byte, len(sent))
				arrived := make(chan error, 1)
				go func() {
					_, first := io.ReadFull(peer, got[:2]) // at once
					<-time.After(30 * time.Second)
					_, rest := io.ReadFull(peer, got[2:]) // when the first deadline has long passed
					arrived <- errors.Join(first, rest)
				}()
				if n, err := c.Write(sent); n != len(sent) || err != nil {
					t.Fatalf("wrote %d, %v", n, err)
				}
				if err := <-arrived; err != nil || !bytes.Equal(got, sent) {
					t.Fatalf("something else arrived, %v", err)
				}
				if _, err := c.Write([]byte("i")); !errors.Is(err, os.ErrDeadlineExceeded) ||
					time.Since(begun) != time.Minute {
					t.Errorf("write ended after %v with %v", time.Since(begun), err)
				}
			})
		})
	}
}

// TestDeadlinesAreRarelyTold plays an hour of requests, one in two seconds.
func TestDeadlinesAreRarelyTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, under, peer := linked(t)
		go func() {
			for range 1800 {
				<-time.After(2 * time.Second)
				peer.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				io.ReadFull(peer, make([]byte, 1))
			}
			peer.Close()
		}()
		buf := make([]byte, 256)
		for {
			c.SetReadDeadline(time.Now().Add(idleTimeout))
			if _, err := c.Read(buf); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			c.SetReadDeadline(time.Now().Add(readTimeout))
			c.SetWriteDeadline(time.Now().Add(writeTimeout))
			must.Get(c.Write([]byte{'.'}))(t)
		}
		if under.told > 3600/50+3600/25 {
			t.Errorf("told %d times in 1800 requests", under.told)
		}
	})
}

// TestConnectionThatTakesNoDeadlineIsNotUsed: a request must not wait without a deadline.
func TestConnectionThatTakesNoDeadlineIsNotUsed(t *testing.T) {
	c, under, _ := linked(t)
	under.fails = errors.New("no deadlines here")
	c.SetDeadline(time.Now().Add(time.Minute))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, under.fails) {
		t.Errorf("read %d, %v", n, err)
	}
	if n, err := c.Write([]byte{1}); n != 0 || !errors.Is(err, under.fails) {
		t.Errorf("wrote %d, %v", n, err)
	}
}

// served is a server that answers one connection until peer closes.
func served(t *testing.T) (peer net.Conn, answers *bufio.Reader) {
	t.Helper()
	near, far := net.Pipe()
	s := newServer(serverConfig{bodyLimit: func([]byte) int { return 8 },
		handler: func(ctx *fasthttp.RequestCtx) { ctx.SetBody(ctx.Request.Body()) }})
	var serving sync.WaitGroup
	serving.Go(func() {
		_ = s.http.ServeConn(newFramedConn(near)) // an error about a refused request
		near.Close()
	})
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { far.Close() })
	return far, bufio.NewReader(far)
}

// TestAnswersBehindARest sends a request on a connection after the last answer's deadline has
// passed. It is about what the library writes before a handler runs, or without one.
func TestAnswersBehindARest(t *testing.T) {
	// The library starts a goroutine for the date, which never ends: it must not start in a bubble.
	must.Get(new(fasthttp.Response).WriteTo(io.Discard))(t)
	const rest = idleTimeout - time.Second
	for _, tt := range []struct {
		name, request string
		status        int
	}{
		{"a request", healthy, 200},
		{"a body that is announced", postOrder("Content-Length: 2\r\nExpect: 100-continue\r\n", ""), 100},
		{"a body that is too large", postOrder("Content-Length: 9\r\n", ""), 413},
		{"no request", "nonsense\r\n", 400},
		{"half a request", "GET /health HT", 408},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				peer, answers := served(t)
				for _, ask := range []struct {
					request string
					status  int
				}{{healthy, 200}, {tt.request, tt.status}} {
					must.Get(io.WriteString(peer, ask.request))(t)
					if a := readAnswer(t, answers, "GET"); a.status != ask.status {
						t.Errorf("status %d, want %d: %s", a.status, ask.status, a.body)
					}
					<-time.After(rest)
				}
			})
		})
	}
}
