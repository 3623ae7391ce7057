package httpapi

import (
	"context"
	"net"
	"testing"

	"posttrade/ring/must"
)

// TestShutdownDoesNotWaitForWhoSaysNothing: programs dial in advance, and the library counts such a
// connection as busy until its read times out.
func TestShutdownDoesNotWaitForWhoSaysNothing(t *testing.T) {
	r := newRig(t)
	var quiet []net.Conn
	for range 3 {
		conn := must.Get(net.Dial("tcp", r.address))(t)
		defer conn.Close()
		quiet = append(quiet, conn)
	}
	w := r.dial() // accepted after them
	w.send("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
	w.receive("GET").want(t, 200, "")
	ctx, cancel := context.WithTimeout(t.Context(), readTimeout/2)
	defer cancel()
	if err := r.m.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	for _, conn := range quiet {
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("read %d bytes, %v, from a server that is down", n, err)
		}
	}
}
