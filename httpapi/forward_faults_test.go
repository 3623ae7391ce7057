package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// hang keeps a connection until the other side is gone.
func hang(c net.Conn, _ handed) bool {
	_, _ = io.Copy(io.Discard, c) // ends with the connection, whatever ends that
	return false
}

// part answers with some bytes and ends the connection.
func part(raw string) step {
	return func(c net.Conn, _ handed) bool {
		_, _ = io.WriteString(c, raw)
		return false
	}
}

// reset ends the connection with a reset.
func reset(c net.Conn, _ handed) bool {
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		panic(err)
	}
	return false
}

// TestLeaderDiesDuringAnExchange at every point of it. A request that may have arrived has an
// unknown outcome, one that cannot have arrived may be sent again, and none is sent twice.
func TestLeaderDiesDuringAnExchange(t *testing.T) {
	partThenHang := func(raw string) step {
		return func(c net.Conn, q handed) bool { part(raw)(c, q); return hang(c, q) }
	}
	head := "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
	for _, tt := range []struct {
		name  string
		step  step
		hangs bool // until the time-out, which comes when the leader has the request
	}{
		{"after the request", part(""), false},
		{"after the request, with a reset", reset, false},
		{"in the status line", part("HTTP/1.1 20"), false},
		{"in the headers", part(head), false},
		{"before the body", part(head + "Content-Length: 10\r\n\r\n"), false},
		{"in the body", part(head + "Content-Length: 10\r\n\r\n{\"a\":"), false},
		{"in a refusal",
			part(
				"HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\n{\"code\":\"NOT_LEADER\",\"sequenced\":false"),
			false},
		{"with nonsense", part("nonsense\r\n\r\n"), false},
		{"with two lengths", part(head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}"), false},
		{"with endless headers", part(head + "A: " + strings.Repeat("a", maxRelayHeader+8192) +
			"\r\n\r\n"), false},
		{"silent", hang, true},
		{"silent in the headers", partThenHang(head), true},
		{"silent in the body", partThenHang(head + "Content-Length: 10\r\n\r\n{\"a\":"), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leader := newScriptedLeader(t, tt.step)
			r := newFollower(t, "order-matcher", "1", leader.address)
			if tt.hangs {
				r.relay.forwarder.after = func(d time.Duration, late func()) *time.Timer {
					if d != DefaultRelayTimeout {
						t.Errorf("a time-out of %v", d)
					}
					go func() { <-leader.more; late() }()
					return time.AfterFunc(time.Hour, late)
				}
			}
			for n, q := range []request{
				{method: "POST", path: "/orders", body: goodOrder},
				{method: "POST", path: "/orders/ord-1/cancel",
					header: map[string]string{"Idempotency-Key": "k"}},
			} {
				a := r.call(q).from(t, "2").want(t, 504, CodeOutcomeUnknown)
				if a.field(t, "sequenced") != nil {
					t.Errorf("%s", a.body)
				}
				if asked := len(leader.requests()); asked != n+1 {
					t.Errorf("asked %d times for %d requests", asked, n+1)
				}
			}
		})
	}
}

// TestLeaderThatCannotBeReached received nothing: the request may be sent again.
func TestLeaderThatCannotBeReached(t *testing.T) {
	gone := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	gone.Close()
	// it never takes part in a TLS handshake
	hello := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer hello.Close()
	server, roots := certificates(t)
	for _, tt := range []struct {
		name    string
		address string
		secured bool
		timeout time.Duration
	}{
		{"no listener", gone.Addr().String(), false, 0},
		{"no address", "nowhere", false, 0},
		{"no TLS", hello.Addr().String(), true, 50 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := &waittest.Log{}
			r := newFollower(t, "order-matcher", "1", tt.address, func(o *RelayOptions) {
				o.Timeout, o.Logger = tt.timeout, textLog(log)
				if tt.secured {
					o.TLS = server.Clone()
					o.TLS.RootCAs = roots
				}
			})
			for range 3 {
				a := r.call(request{method: "POST", path: "/orders", body: goodOrder}).from(t, "2").want(t, 503,
					CodeNoLeader)
				if a.field(t, "leader") != "1" || a.field(t, "sequenced") != false ||
					a.header.Get("Retry-After") != "1" {
					t.Errorf("%v %s", a.header, a.body)
				}
			}
			if n := strings.Count(log.String(), "cannot be reached"); n != 1 {
				t.Errorf("logged %d times:\n%s", n, log)
			}
			leader := newScriptedLeader(t, reply(created))
			if !tt.secured {
				r.cluster.lead("1", map[string]string{"order-matcher": leader.address})
				roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder}).want(t, 201,
					"")
				if !strings.Contains(log.String(), "reached again") {
					t.Errorf("%s", log)
				}
			}
		})
	}
}

// TestSealedConnectionSendsNothing: a request that was given up before its first byte must not be
// sent later, or 503 would be wrong.
func TestSealedConnectionSendsNothing(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := &meteredConn{Conn: a}
	go io.Copy(io.Discard, b)
	if _, err := c.Write([]byte("abc")); err != nil || c.written() != 3 {
		t.Errorf("%d bytes: %v", c.written(), err)
	}
	if n := c.seal(); n != 3 {
		t.Errorf("sealed at %d", n)
	}
	if n, err := c.Write([]byte("d")); n != 0 || !errors.Is(err, errSealed) || c.written() != 3 {
		t.Errorf("wrote %d bytes: %v", n, err)
	}
	c.Close()
}

// TestConnectionThatEndedWhileIdle: the leader closes its end between two requests. No request
// arrives twice, whatever the follower notices of the close.
func TestConnectionThatEndedWhileIdle(t *testing.T) {
	leader := newScriptedLeader(t, part(created))
	r := newFollower(t, "order-matcher", "1", leader.address)
	for n := 1; n <= 50; n++ {
		before := len(leader.requests())
		a := roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder})
		got := len(leader.requests()) - before
		switch {
		case a.status == 201 && got == 1, a.status == 504 && got <= 1, a.status == 503 && got == 0:
		default:
			t.Fatalf("request %d: answered %d, arrived %d times: %s", n, a.status, got, a.body)
		}
	}
}

// TestStreamThatBreaksOff never looks whole.
func TestStreamThatBreaksOff(t *testing.T) {
	big := strings.Repeat("x", maxWholeAnswer+1)
	for _, tt := range []struct {
		name, raw string
		hangs     bool
	}{
		{"of known length", "HTTP/1.1 200 OK\r\nContent-Length: " + itoa(uint64(len(big)+10)) +
			"\r\n\r\n" + big, false},
		{"in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false},
		{"in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc", false},
		{"before a trailer",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n3\r\nabc\r\n0\r\n", false},
		{"silent", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leader := newScriptedLeader(t, func(c net.Conn, q handed) bool {
				part(tt.raw)(c, q)
				return tt.hangs && hang(c, q)
			})
			r := newFollower(t, "order-matcher", "1", leader.address)
			if tt.hangs {
				r.relay.forwarder.stall = 100 * time.Millisecond
			}
			conn := must.Get(net.Dial("tcp", r.address))(t)
			defer conn.Close()
			must.Get(io.WriteString(conn,
				"GET /orders HTTP/1.1\r\nHost: x\r\nX-Consistency: confirmed\r\n\r\n"))(t)
			resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "GET"})
			if err != nil {
				return // cut even before its head: no client takes that for an answer
			}
			if body, err := io.ReadAll(resp.Body); resp.StatusCode != 200 ||
				!errors.Is(err, io.ErrUnexpectedEOF) && !isReset(err) {
				t.Errorf("%d, %d bytes: %v", resp.StatusCode, len(body), err)
			}
			resp.Body.Close()
			if len(leader.requests()) != 1 {
				t.Errorf("asked %d times", len(leader.requests()))
			}
		})
	}
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op)
}

// TestRelayedReportIsTheReport: streamed, compressed as requested, with its trailers.
func TestRelayedReportIsTheReport(t *testing.T) {
	engine := newRig(t)
	leader := newLeader(t, "order-matcher", engine.m)
	follower := newFollower(t, "order-matcher", "1", leader.address)
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		for _, head := range []uint64{0, 5, 20_000} {
			engine.report.head = head
			header := map[string]string{"Accept": contentNDJSON, "Accept-Encoding": coding,
				headerConsistency: valueConfirmed}
			there, here := engine.fetchAt(follower.address, "", header), engine.fetch("", header)
			if there.err != nil || here.err != nil || there.status != 200 ||
				string(there.unpack(t)) != string(here.unpack(t)) ||
				there.trailer.Get(headerReportSHA256) != here.trailer.Get(headerReportSHA256) ||
				len(there.trailer.Get(headerReportSHA256)) != 64 ||
				there.trailer.Get(headerReportCount) != itoa(head) || there.header.Get(headerMember) != "1" {
				t.Fatalf("%s, %d records: %d %v trailer %v, directly %d %v trailer %v", coding, head,
					there.status, there.err, there.trailer, here.status, here.err, here.trailer)
			}
		}
	}
	engine.report.each = func(_ context.Context, n int) error {
		if n > 2 {
			return errPlanted
		}
		return nil
	}
	if a := engine.fetchAt(follower.address, "",
		map[string]string{headerConsistency: valueConfirmed}); a.status != 200 || a.err == nil ||
		a.trailer.Get(headerReportCount) != "" {
		t.Errorf("a cut report: %d %v %v", a.status, a.err, a.trailer)
	}
}

// TestNoChunksThroughTheRelayForHTTP10: a client of HTTP/1.0 gets no answer of unknown length from
// another member either. Every other answer it gets.
func TestNoChunksThroughTheRelayForHTTP10(t *testing.T) {
	engine, rows := newRig(t), newProcessorRig(t)
	matcher := newFollower(t, "order-matcher", "1",
		newLeader(t, "order-matcher", engine.m).address)
	processor := newFollower(t, "trade-processor", "1",
		newLeader(t, "trade-processor", rows.p).address)
	for _, tt := range []struct {
		to   *relayRig
		path string
		want string
	}{
		{matcher, "/regulatory/report", "400"},
		{matcher, "/recon/trades/blotter?format=csv", "400"},
		{matcher, "/recon/trades/blotter", "200"},
		{processor, "/trades?format=csv", "400"}, {processor, "/trades?format=parquet", "400"},
		{processor, "/trades", "200"},
	} {
		got := string(tt.to.rawExchange("GET " + tt.path + " HTTP/1.0\r\nHost: x\r\n" +
			headerConsistency + ": " + valueConfirmed + "\r\nAuthorization: Bearer " +
			namedToken(testStart, "admin") + "\r\n\r\n"))
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+tt.want) || strings.Contains(head, "chunked") ||
			tt.want == "400" && !strings.Contains(body, string(CodeBadRequest)) {
			t.Errorf("%s for HTTP/1.0: %.300q, want %s", tt.path, got, tt.want)
		}
	}
}

// TestGoneCallerEndsTheRelayedReport, at the leader too.
func TestGoneCallerEndsTheRelayedReport(t *testing.T) {
	engine := newRig(t)
	engine.report.head = 1 << 40
	leader := newLeader(t, "order-matcher", engine.m)
	follower := newFollower(t, "order-matcher", "1", leader.address)
	conn, _ := engine.askAt(follower.address, "", map[string]string{headerConsistency: valueConfirmed})
	conn.Close()
	<-engine.report.ended
}

// TestRequestsToTheLeaderAreBounded: requests beyond the bound are refused, not queued; a streamed
// answer keeps its slot until its end.
func TestRequestsToTheLeaderAreBounded(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	waiting := func(raw string) step {
		return func(c net.Conn, q handed) bool {
			entered <- struct{}{}
			<-leave
			return reply(raw)(c, q)
		}
	}
	streamed := func(c net.Conn, q handed) bool {
		reply("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")(c, q)
		entered <- struct{}{}
		<-leave
		return reply("0\r\n\r\n")(c, q)
	}
	leader := newScriptedLeader(t, waiting(created), streamed, reply(created))
	r := newFollower(t, "order-matcher", "1", leader.address,
		func(o *RelayOptions) { o.MaxRelayed = 1 })
	post := request{method: "POST", path: "/orders", body: goodOrder}
	for _, want := range []int{201, 200} {
		first := make(chan answer)
		go func() { first <- roundTrip(t, r.address, post) }()
		<-entered
		a := r.call(post).from(t, "2").want(t, 429, CodeTooManyRequests)
		if a.field(t, "sequenced") != false || a.header.Get("Retry-After") != "1" {
			t.Errorf("%v %s", a.header, a.body)
		}
		leave <- struct{}{}
		if a := <-first; a.status != want {
			t.Errorf("the first: %d %s", a.status, a.body)
		}
		for len(r.relay.forwarder.slots) > 0 { // its slot is given back after the answer's last byte
			<-time.After(time.Millisecond)
		}
	}
	roundTrip(t, r.address, post).want(t, 201, "")
	if n := len(leader.requests()); n != 3 {
		t.Errorf("the leader was asked %d times, want 3", n)
	}
	counts := map[string]float64{}
	r.relay.Metrics(func(name, _ string, counter bool, value float64, labels ...string) {
		if name != "svc_cluster_relayed_total" || !counter || labels[1] != "order-matcher" {
			t.Errorf("%s %v", name, labels)
		}
		counts[labels[3]] = value
	})
	if counts["answered"] != 3 || counts["busy"] != 2 || counts["lost"] != 0 ||
		counts["unreached"] != 0 || counts["again"] != 0 {
		t.Errorf("%v", counts)
	}
}

// TestNothingIsRepeatedOnAUsedConnection: HTTP libraries repeat requests that look safe to repeat.
func TestNothingIsRepeatedOnAUsedConnection(t *testing.T) {
	leader := newScriptedLeader(t, reply(created), part(""), reply(created), reset, reply(created))
	r := newFollower(t, "order-matcher", "1", leader.address)
	for n, want := range []int{201, 504, 201, 504, 201} {
		a := roundTrip(t, r.address, request{method: "POST", path: "/orders/ord-1/cancel",
			header: map[string]string{"Idempotency-Key": "k", "X-Idempotency-Key": "k"}})
		if a.status != want || len(leader.requests()) != n+1 {
			t.Fatalf("request %d: %d, and %d arrived: %s", n+1, a.status, len(leader.requests()), a.body)
		}
	}
}

// TestLeaderThatAnswersEarly, before it has read the body: the rest of the body may still be
// written while the next request of the same caller is being read.
func TestLeaderThatAnswersEarly(t *testing.T) {
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				br := bufio.NewReader(c)
				if _, err := http.ReadRequest(br); err != nil {
					return
				}
				_, _ = io.WriteString(c, raw(413, "Connection: close\r\n", "{}"))
				_, _ = io.Copy(io.Discard, br)
			})
		}
	})
	defer serving.Wait()
	defer ln.Close()
	r := newFollower(t, "order-matcher", "1", ln.Addr().String())
	body := "[" + goodOrder + "]" + strings.Repeat(" ", 1<<20-2-len(goodOrder))
	conn := must.Get(net.Dial("tcp", r.address))(t)
	defer conn.Close()
	br := bufio.NewReader(conn)
	for range 20 {
		must.Get(io.WriteString(conn,
			"POST /orders/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"+body))(t)
		if a := readAnswer(t, br, "POST"); a.status != 413 && a.status != 504 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
}
