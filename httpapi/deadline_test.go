package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// countingConn counts how often it is told of a deadline.
type countingConn struct {
	net.Conn
	told  int
	fails error // of being told
}

func (c *countingConn) SetReadDeadline(t time.Time) error {
	c.told++
	return errors.Join(c.fails, c.Conn.SetReadDeadline(t))
}

func (c *countingConn) SetWriteDeadline(t time.Time) error {
	c.told++
	return errors.Join(c.fails, c.Conn.SetWriteDeadline(t))
}

// linked returns a framed connection, what it stands on, and its other end.
func linked(t *testing.T) (c *framedConn, under *countingConn, peer net.Conn) {
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	under = &countingConn{Conn: near}
	return newFramedConn(under), under, far
}

// TestReadsEndAtTheLastDeadline: later and earlier ones than the connection was told.
func TestReadsEndAtTheLastDeadline(t *testing.T) {
	for _, tt := range []struct {
		name      string
		deadlines []time.Duration // one after the other, the last one counts; 0: none
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
					if _, err := io.ReadAtLeast(c, buf, len("GET / HTTP/1.1\r\n\r\n")); err != nil {
						t.Fatal(err)
					}
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

// TestWritesEndAtTheLastDeadline also counts: what was written before it stays written.
func TestWritesEndAtTheLastDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, peer := linked(t)
		begun := time.Now()
		c.SetWriteDeadline(begun.Add(time.Second))
		go io.ReadFull(peer, make([]byte, 3))
		if n, err := c.Write([]byte("abc")); n != 3 || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		c.SetWriteDeadline(begun.Add(time.Minute))
		got := make([]byte, 5)
		go func() {
			io.ReadFull(peer, got[:2]) // at once
			<-time.After(30 * time.Second)
			io.ReadFull(peer, got[2:]) // when the first deadline has long passed
		}()
		if n, err := c.Write([]byte("defgh")); n != 5 || err != nil || !bytes.Equal(got, []byte("defgh")) {
			t.Fatalf("wrote %d, %v, arrived %q", n, err, got)
		}
		if _, err := c.Write([]byte("i")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != time.Minute {
			t.Errorf("write ended after %v with %v", time.Since(begun), err)
		}
	})
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
			if _, err := c.Write([]byte{'.'}); err != nil {
				t.Fatal(err)
			}
		}
		if under.told > 3600/50+3600/25 {
			t.Errorf("told %d times in 1800 requests", under.told)
		}
	})
}

// TestConnectionThatTakesNoDeadlineIsNotUsed: a request must not wait without one.
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
