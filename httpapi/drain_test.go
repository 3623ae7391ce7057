package httpapi

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

// gone is a context that has ended.
func gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// awaitClosed returns when an address has no listener any more.
func awaitClosed(address string) {
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		conn.Close()
	}
}

// TestRequestsAreRefusedWhenTheServerStops sends requests after one that is still being handled
// when the time of a shutdown is up: on that connection the library would go on without end.
func TestRequestsAreRefusedWhenTheServerStops(t *testing.T) {
	order := postOrder("Content-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder)
	for _, tt := range []struct{ name, method, path, raw string }{
		{"an order", "POST", "/orders", order},
		{"health", "GET", "/health", healthy},
		{"the document", "GET", "/openapi.json", "GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"no endpoint", "GET", "/nothing", "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.recorder.hold()
			w := r.dial()
			w.send(order + tt.raw)
			r.recorder.waitApplied(1)
			down := make(chan error, 1)
			go func() { down <- r.m.Shutdown(gone()) }()
			awaitClosed(r.address)
			// after the one that is under way; or the accepting loop, which ends itself when it takes a
			// connection meanwhile, has closed the listener before that one began
			err := r.m.server.http.ShutdownWithContext(gone())
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			r.recorder.letGo()
			w.receive("POST").want(t, 201, "")
			a := w.receive(tt.method).want(t, stoppingStatus, CodeStopping)
			if a.field(t, "sequenced") != false || a.header.Get("Retry-After") != "1" || !a.closes {
				t.Errorf("%v %s, closes: %v", a.header, a.body, a.closes)
			}
			w.closed()
			if err := <-down; err != nil {
				t.Errorf("shutdown: %v", err)
			}
			if n := r.sequence(); n != 1 {
				t.Errorf("%d commands are sequenced, want 1", n)
			}
			for _, d := range []api{matcherAPI, processorAPI, accountAPI, referenceAPI} {
				d.checkAnswer(t, tt.method, tt.path, a)
			}
		})
	}
}

// TestShutdownWaitsForHandlers that run longer than its time. It returns an error when one runs
// longer than its patience.
func TestShutdownWaitsForHandlers(t *testing.T) {
	const given, patience = 10 * time.Second, 5 * time.Second
	for _, tt := range []struct {
		name    string
		handler time.Duration // how long the handler takes
		streams bool          // the handler returns at once, and its answer takes as long
		want    time.Duration // when Shutdown returns
		err     error
	}{
		{"one that ends in time", 3 * time.Second, false, 3 * time.Second, nil},
		{"one that ends late", 12 * time.Second, false, 12 * time.Second, nil},
		{"one that does not end", time.Hour, false, given + patience, context.DeadlineExceeded},
		{"an answer that ends late", 12 * time.Second, true, 12 * time.Second, nil},
		{"an answer that does not end", time.Hour, true, given + patience, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *server
				var running sync.WaitGroup
				defer running.Wait()
				s = newServer(serverConfig{patience: patience, handler: func(*fasthttp.RequestCtx) {
					if tt.streams {
						s.streams.Add(1)
						running.Go(func() {
							<-time.After(tt.handler)
							s.streams.Add(-1)
						})
						return
					}
					<-time.After(tt.handler)
				}})
				begun := time.Now()
				running.Go(func() { s.serve(&fasthttp.RequestCtx{}) })
				synctest.Wait() // it is being handled
				ctx, cancel := context.WithTimeout(t.Context(), given)
				defer cancel()
				err := s.Shutdown(ctx)
				if !errors.Is(err, tt.err) {
					t.Errorf("shutdown: %v", err)
				}
				if took := time.Since(begun); took < tt.want || took > tt.want+drainLook {
					t.Errorf("shutdown took %v, want %v", took, tt.want)
				}
				if err := s.Shutdown(gone()); (err == nil) != (tt.err == nil) {
					t.Errorf("a second shutdown: %v", err)
				}
			})
		})
	}
}

// TestShutdownEndsAReportThatNobodyReads: a stalled reader must not hold up the goroutine that
// makes the report.
func TestShutdownEndsAReportThatNobodyReads(t *testing.T) {
	for _, relayed := range []bool{false, true} {
		r := newRig(t)
		r.report.head = 1 << 40
		address, shutdown := r.address, r.m.Shutdown
		if relayed {
			leader := newRelayRig(t, "order-matcher", "1", nil, nil)
			leader.cluster.lead("1", nil)
			leader.relay.Swap(r.m)
			address, shutdown = leader.address, leader.relay.Shutdown
		}
		conn, _ := r.askAt(address, "", nil)
		defer conn.Close()
		if err := shutdown(gone()); err != nil {
			t.Errorf("relayed %v: shutdown: %v", relayed, err)
		}
		select {
		case err := <-r.report.ended:
			if !errors.Is(err, errStopping) {
				t.Errorf("relayed %v: the report ended with %v", relayed, err)
			}
		default:
			t.Errorf("relayed %v: the report is still being made", relayed)
		}
	}
}

// TestClosedDeskIsAServiceThatStops closes the desk before a request, and between the parts of one.
func TestClosedDeskIsAServiceThatStops(t *testing.T) {
	r := newRig(t)
	r.recorder.hold()
	many := "[" + strings.Repeat(`{"security":"AAA","price":1},`, desk.MaxBatch) +
		`{"security":"BBB","price":7.5}]`
	parts := make(chan answer, 1)
	go func() {
		parts <- r.call(request{method: "POST", path: "/prices", body: many, token: r.token("admin")})
	}()
	r.recorder.waitApplied(maxNotedTicks)
	r.desk.Close()
	r.recorder.letGo()
	if a := (<-parts).want(t, 503, CodeStopping); a.field(t, "sequenced") != nil {
		t.Errorf("a part is sequenced, and the answer is %s", a.body)
	}
	if a := r.post("/orders", goodOrder, "").want(t, 503, CodeStopping); a.field(t,
		"sequenced") != false {
		t.Errorf("%s", a.body)
	}
}

// TestOutcomeBehindAPartIsUnknown, whatever ends a request after one of its parts is sequenced.
func TestOutcomeBehindAPartIsUnknown(t *testing.T) {
	for _, tt := range []struct {
		name   string
		p      problem
		status int // after a part
		code   Code
	}{
		{"too many in flight", problemInflight, 503, CodeOverloaded},
		{"a full ring", problemRing, 503, CodeOverloaded},
		{"a leader no more", problemNotLeader, 503, CodeNotLeader},
		{"a journal that has failed", problemJournal, 503, CodeJournalFailed},
		{"a service that stops", problemStopping, 503, CodeStopping},
		{"no answer in time", problemUnknown, 504, CodeOutcomeUnknown},
	} {
		if first := tt.p.behind(0); first != tt.p {
			t.Errorf("%s: the first part is answered %+v", tt.name, first)
		}
		if p := tt.p.behind(1); p.status != tt.status || p.code != tt.code || p.notSequenced ||
			p.detail != tt.p.detail {
			t.Errorf("%s: behind a part %+v", tt.name, p)
		}
	}
}

// adminAt serves an admin listener with a handler at /x, and asks for it.
func adminAt(t *testing.T, h http.HandlerFunc) (a *Admin, client *bufio.Reader) {
	t.Helper()
	a = NewAdmin(AdminConfig{Extra: map[string]http.Handler{"GET /x": h}})
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := a.Serve(ln); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(serving.Wait)
	conn := must.Get(net.Dial("tcp", ln.Addr().String()))(t)
	t.Cleanup(func() { conn.Close() })
	must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	must.Get(io.WriteString(conn, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
	return a, bufio.NewReader(conn)
}

// TestAdminShutdownEndsWhatLasts: a profile runs until its time is up or its request ends.
func TestAdminShutdownEndsWhatLasts(t *testing.T) {
	entered := make(chan struct{})
	a, client := adminAt(t, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
			t.Error("the request goes on")
		}
		adminJSON(w, 200, "what there is")
	})
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := a.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if a := readAnswer(t, client, "GET"); a.status != 200 || string(a.body) != "\"what there is\"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestAdminShutdownCutsOffWhatDoesNotEnd, and reports that it may still be running.
func TestAdminShutdownCutsOffWhatDoesNotEnd(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	a, client := adminAt(t, func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	})
	defer close(leave)
	<-entered
	if err := a.Shutdown(gone()); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}
	if _, err := client.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// TestSilentConnectionsBeyondTheLimitDoNotStopTLS: an answer to them would wait for a handshake
// that never comes, on the goroutine that accepts.
func TestSilentConnectionsBeyondTheLimitDoNotStopTLS(t *testing.T) {
	secured, roots := certificates(t)
	r := newRig(t)
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	deps := r.deps
	deps.MaxInflight = 1
	m := NewOrderMatcher(deps)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := m.Serve(tls.NewListener(ln, secured)); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer func() {
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	r.address = ln.Addr().String()
	var open []*wire
	for range connectionsPerInflight + 1 {
		open = append(open, r.dial())
	}
	open[connectionsPerInflight].closed() // without a byte, and without a handshake
	for _, w := range open {
		w.conn.Close()
	}
	for range 1000 { // the server notices the closes on its own time
		w := r.dial()
		w.conn = tls.Client(w.conn, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"})
		if _, err := io.WriteString(w.conn, healthy); err == nil {
			w.br.Reset(w.conn)
			w.receive("GET").want(t, 200, "")
			return
		}
		w.conn.Close()
	}
	t.Error("closed connections do not make room")
}
