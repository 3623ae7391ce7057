package httpapi

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/ring/waittest"

	"github.com/valyala/fasthttp"
)

// boundedRig is a rig that counts bodies, and the count.
func boundedRig(t *testing.T) (*rig, *BodyMemory) {
	t.Helper()
	m := NewBodyMemory(0)
	r := newRig(t)
	r.serve(func(*Deps) {}, func(s *OrderMatcher) { s.Share(m) })
	return r, m
}

// until waits for a condition that other goroutines bring about.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	waittest.Until(t, what, func() (bool, any) { return holds(), "it does not" })
}

// A body for which there is no memory is refused before it is read, with a code of its own. Small
// bodies are still accepted, and large ones too when there is memory again.
func TestBodiesBeyondTheBoundAreBusy(t *testing.T) {
	r, m := boundedRig(t)
	batch := "[" +
		strings.Repeat(`{"accountId":1,"security":"AAA","side":"Buy","quantity":1,"limitPrice":1},`, 99) +
		`{"accountId":1,"security":"AAA","side":"Buy","quantity":1,"limitPrice":1}]`
	head := func(more string) string {
		return "POST /orders/batch HTTP/1.1\r\nHost: x\r\n" +
			more + "\r\n"
	}
	announced := head(fmt.Sprintf("Content-Length: %d\r\nAuthorization: Bearer %s\r\n",
		maxLargeBodyBytes, r.named("one")))
	slow := []*wire{r.dial(), r.dial()} // their bodies are announced, and never come
	for i, w := range slow {
		w.send(announced)
		until(t, "a body is counted", func() bool {
			return m.used.Load() == int64(i+1)*maxLargeBodyBytes*bodyCost
		})
	}
	for name, text := range map[string]string{
		"by its length": head(fmt.Sprintf("Content-Length: %d\r\n", len(batch))),
		"expecting a word": head(fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n",
			len(batch))),
		"by its chunk": head("Transfer-Encoding: chunked\r\n") + "1001\r\n",
		"by many chunks": head("Transfer-Encoding: chunked\r\n") + "800\r\n" +
			strings.Repeat(" ", 0x800) + "\r\n801\r\n",
	} {
		w := r.dial()
		w.send(text)
		a := w.receive("POST")
		if a.status != 503 || !a.closes || a.header.Get("Retry-After") != "1" ||
			!strings.Contains(string(a.body), `"code":"BUSY"`) ||
			!strings.Contains(string(a.body), `"sequenced":false`) {
			t.Errorf("%s: %d %v %s", name, a.status, a.header, a.body)
		}
		w.closed()
	}
	if got := m.refused.Load(); got != 4 {
		t.Errorf("%d refusals are counted", got)
	}
	if a := r.order("1", "Buy", "1", "1", ""); a.status != 201 {
		t.Errorf("an order beside them: %d %s", a.status, a.body)
	}
	slow[0].conn.Close()
	until(t, "a closed connection gives back",
		func() bool { return m.used.Load() == maxLargeBodyBytes*bodyCost })
	w := r.dial()
	for range 3 {
		w.send(head(fmt.Sprintf("Content-Length: %d\r\n", len(batch))) + batch)
		if a := w.receive("POST"); a.status != 201 {
			t.Fatalf("a batch when there is room again: %d %s", a.status, a.body)
		}
		until(t, "an answered one gives back",
			func() bool { return m.used.Load() == maxLargeBodyBytes*bodyCost })
	}
	slow[1].conn.Close()
	until(t, "nothing is held", func() bool { return m.used.Load() == 0 })
	w.send(announced) // cut off in the middle by a shutdown
	until(t, "a body is counted", func() bool { return m.used.Load() != 0 })
}

// Bodies without a valid token leave half of the memory to the others, in whatever order and pieces
// their heads arrive, at a service and at a relay in front of it.
func TestBodiesWithoutATokenLeaveRoom(t *testing.T) {
	r, m := boundedRig(t)
	relay := must.Get(NewRelay("order-matcher", RelayOptions{Cluster: leading("1"),
		Applied: r.sequence, Durable: r.sequence}))(t)
	relay.Swap(r.m)
	relay.Share(m)
	announced := func(token string) string {
		if token != "" {
			token = "Authorization: Bearer " + token + "\r\n"
		}
		return fmt.Sprintf("POST /orders/batch HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n"+
			"X-More: 1\r\n\r\n", token, maxLargeBodyBytes)
	}
	const one = maxLargeBodyBytes * bodyCost
	for _, s := range []*server{r.m.server, relay.server} {
		var held []*framedConn
		begin := func(text string, step int, want fault, used int64) {
			t.Helper()
			c := s.framed(&scriptedConn{input: []byte(text), step: step}).(*framedConn)
			s.open.Add(1)
			held = append(held, c)
			buffer, left := make([]byte, 4096), len(text)
			for left > 0 && c.why == faultNone {
				n := must.Get(c.Read(buffer))(t)
				clear(buffer) // it is the library's
				left -= n
			}
			if c.why != want || m.used.Load() != used {
				t.Errorf("fault %d and %d bytes, want %d and %d", c.why, m.used.Load(), want, used)
			}
		}
		good := r.named("one")
		begin(announced(""), 4096, faultNone, one)
		for _, bad := range []string{"", "x", good + "x", r.named("expired")} {
			begin(announced(bad), 4096, faultBusy, one)
		}
		begin("POST /orders/batch HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1001\r\n", 7,
			faultBusy, one)
		for step := 1; step < 500; step += 9 { // the line of the token ends anywhere in a piece
			begin(announced(good), step, faultNone, 2*one)
			held[len(held)-1].Close()
		}
		begin("GET /health HTTP/1.1\r\nAuthorization: Bearer "+good+"\r\nHost: x\r\n\r\n"+announced(""),
			4096, faultBusy, one) // the token is of another message
		for _, c := range held {
			c.Close()
		}
		if m.used.Load() != 0 || m.open.Load() != 0 {
			t.Errorf("%d and %d bytes are held", m.used.Load(), m.open.Load())
		}
	}
}

// A connection that is shut down while it counts a body in holds nothing.
func TestReserveOfAClosedConnection(t *testing.T) {
	m := NewBodyMemory(0)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	c := newFramedConn(ours)
	c.bodies = m
	if why := c.reserve(smallBody); why != faultNone || c.held.Load() != 0 {
		t.Errorf("a small body: fault %d, held %d", why, c.held.Load())
	}
	if why := c.reserve(1 << 40); why != faultNone || m.used.Load() != maxLargeBodyBytes*bodyCost {
		t.Errorf("a body beyond every limit: fault %d, used %d", why, m.used.Load())
	}
	if why := c.reserve(smallBody + 1); why != faultNone ||
		m.used.Load() != maxLargeBodyBytes*bodyCost {
		t.Errorf("a pipelined one behind it: fault %d, used %d", why, m.used.Load())
	}
	c.Close()
	if m.used.Load() != 0 {
		t.Errorf("%d bytes are held after the close", m.used.Load())
	}
	if why := c.reserve(1 << 20); why != faultNone || m.used.Load() != 0 || c.held.Load() != 0 {
		t.Errorf("after the close: fault %d, used %d", why, m.used.Load())
	}
}

// What a burst has left in pools is collected when no more bodies come, and only then.
func TestCrowdsAreCollected(t *testing.T) {
	m := NewBodyMemory(1 << 30)
	collects := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.rest != nil && m.rest.Stop()
	}
	m.take(muchMemory, 0)
	m.giveBack(muchMemory, 0)
	if collects() {
		t.Error("a small crowd is worth a collection")
	}
	m.take(muchMemory, 0)
	m.take(1, 0)
	m.giveBack(1, 0)
	if collects() {
		t.Error("a collection while bodies are in work")
	}
	m.giveBack(muchMemory, 0)
	if !collects() {
		t.Error("no collection after a crowd")
	}
	m.take(1, 0)
	m.collect()
	if m.peak.Load() == 0 || !collects() {
		t.Error("collected while a body is in work")
	}
	m.collect()
	m.giveBack(1, 0)
	m.take(1, 0)
	m.giveBack(1, 0)
	m.collect()
	if m.peak.Load() == 0 || !collects() {
		t.Error("collected although another body came")
	}
	m.collect()
	if m.peak.Load() != 0 || m.rest != nil {
		t.Errorf("after the collection: peak %d", m.peak.Load())
	}
}

// An idle connection keeps no large buffer of its last request.
func TestIdleConnectionsKeepNoLargeBody(t *testing.T) {
	s := newServer(serverConfig{handler: func(ctx *fasthttp.RequestCtx) {},
		bodyLimit: func([]byte) int { return maxLargeBodyBytes }})
	var kept []int
	s.http.Handler = func(ctx *fasthttp.RequestCtx) {
		// The first byte of the next body shows what the last request has left behind.
		kept = append(kept, cap(ctx.Request.SwapBody(nil)), cap(ctx.Response.SwapBody(nil)))
		ctx.Response.SwapBody(make([]byte, len(ctx.Request.Header.Peek("X-Large"))<<10))
	}
	large := strings.Repeat("x", 1<<19)
	conn := &scriptedConn{input: []byte("POST / HTTP/1.1\r\nHost: x\r\nX-Large: " + large[:4096] +
		"\r\nContent-Length: 524288\r\n\r\n" + large +
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"), step: 1 << 16}
	must.OK(t, s.http.ServeConn(newFramedConn(conn)))
	if len(kept) != 4 || kept[0] < 1<<19 || kept[2] > keptBody || kept[3] > keptBody {
		t.Errorf("buffers of request and answer: %d", kept)
	}
}
