package httpapi

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httputil"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
)

// writesCounted counts the calls of Write.
type writesCounted struct {
	net.Conn
	writes int
}

func (c *writesCounted) Write(p []byte) (int, error) {
	c.writes++
	return c.Conn.Write(p)
}

// sockets are both ends of a TCP connection.
func sockets(t *testing.T) (near, far net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	defer ln.Close()
	if far, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// TestChunksArriveWhole: pieces of all lengths, over TCP, over TLS and in memory, as a client reads
// them; a piece is one write where the socket cannot take parts of several.
func TestChunksArriveWhole(t *testing.T) {
	secured, roots := certificates(t)
	pieces := [][]byte{[]byte("aa"), bytes.Repeat([]byte("b"), 4096), bytes.Repeat([]byte("c"), 3<<20),
		[]byte("id: 1.1\n\n")}
	counted := &writesCounted{}
	for name, link := range map[string]func() (near, far net.Conn){
		"TCP": func() (net.Conn, net.Conn) { return sockets(t) },
		"TLS": func() (net.Conn, net.Conn) {
			near, far := sockets(t)
			return tls.Server(near, secured), tls.Client(far, &tls.Config{RootCAs: roots,
				ServerName: "127.0.0.1"})
		},
		"memory": func() (net.Conn, net.Conn) {
			near, far := net.Pipe()
			counted.Conn = near
			return counted, far
		},
	} {
		t.Run(name, func(t *testing.T) {
			near, far := link()
			defer near.Close()
			c := newFramedConn(near)
			var writing sync.WaitGroup
			writing.Go(func() {
				for _, piece := range pieces {
					_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
					if err := c.writeChunk([][]byte{piece[:1], piece[1:]}); err != nil {
						t.Error(err)
					}
				}
				if _, err := io.WriteString(c, "0\r\n\r\n"); err != nil {
					t.Error(err)
				}
			})
			got, err := io.ReadAll(httputil.NewChunkedReader(far))
			writing.Wait()
			if want := bytes.Join(pieces, nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
			}
		})
	}
	if counted.writes != len(pieces)+1 {
		t.Errorf("%d writes of %d pieces and the end", counted.writes, len(pieces))
	}
}

// TestAChunkEndsAtItsDeadline: a client that does not read does not hold the writer.
func TestAChunkEndsAtItsDeadline(t *testing.T) {
	near, _ := sockets(t)
	c := newFramedConn(near)
	_ = c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	if err := c.writeChunk([][]byte{make([]byte, 64<<20)}); err == nil {
		t.Error("64 MiB went to a client that reads nothing")
	}
}
