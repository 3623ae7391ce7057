package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
)

// TestRequestEndsOnTheServiceItBeganOn, also when another service has taken its place by then.
func TestRequestEndsOnTheServiceItBeganOn(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	old, next := newRig(t), newRig(t)
	old.serve(func(d *Deps) {
		d.Clock = func() int64 { entered <- struct{}{}; <-leave; return testStart }
	})
	r := newLeader(t, "order-matcher", old.m)
	post := request{method: "POST", path: "/orders", body: goodOrder}
	first := make(chan answer)
	go func() { first <- r.call(post) }()
	<-entered
	ended := r.relay.Swap(next.m)
	for range 2 {
		r.call(post).from(t, "1").want(t, 201, "")
	}
	if old.sequence() != 0 || next.sequence() != 2 {
		t.Errorf("%d orders on the old service, %d on the next", old.sequence(), next.sequence())
	}
	select {
	case <-ended:
		t.Error("ended before the request")
	default:
	}
	close(leave)
	if a := <-first; a.status != 201 || old.sequence() != 1 {
		t.Errorf("%d %s", a.status, a.body)
	}
	<-ended
	<-r.relay.Swap(nil) // nothing is under way: it has ended already
	r.call(post).from(t, "1").want(t, 503, CodeNoLeader)
}

// TestReportHoldsItsServiceUntilItsEnd, after its handler has returned.
func TestReportHoldsItsServiceUntilItsEnd(t *testing.T) {
	reached, leave := make(chan struct{}), make(chan struct{})
	engine := newRig(t)
	engine.report.head = 20
	engine.report.each = func(_ context.Context, n int) error {
		if n == 5 {
			close(reached)
			<-leave
		}
		return nil
	}
	r := newLeader(t, "order-matcher", engine.m)
	conn, resp := engine.askAt(r.address, "", nil)
	defer conn.Close()
	<-reached
	ended := r.relay.Swap(nil)
	select {
	case <-ended:
		t.Error("ended in the middle of a report")
	default:
	}
	close(leave)
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != wantReport(1, 20) {
		t.Errorf("%v %.200s", err, body)
	}
	<-ended
}

// TestSwapUnderLoad changes the service behind an open listener under load: every request is
// answered by a service that stood there, or by a problem that says that none does.
func TestSwapUnderLoad(t *testing.T) {
	engines := []*rig{newRig(t), newRig(t)}
	r := newLeader(t, "order-matcher", engines[0].m)
	const callers, each = 8, 150
	var created, refused, ended atomic.Int64
	var load, swaps sync.WaitGroup
	answered := make(chan struct{}, callers*each)
	transport := &http.Transport{MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	for range callers {
		load.Go(func() {
			for range each {
				q, err := http.NewRequest("POST", "http://"+r.address+"/orders", strings.NewReader(goodOrder))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := transport.RoundTrip(q)
				if err != nil {
					t.Error(err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				switch {
				case err != nil:
					t.Error(err)
				case resp.StatusCode == 201:
					created.Add(1)
				case resp.StatusCode == 503 && strings.Contains(string(text), `"sequenced":false`):
					refused.Add(1)
				default:
					t.Errorf("%d %s", resp.StatusCode, text)
				}
				answered <- struct{}{}
			}
		})
	}
	swaps.Go(func() {
		for n := 0; ; n++ {
			for range 5 { // the requests set the pace
				if _, ok := <-answered; !ok {
					return
				}
			}
			var gone <-chan struct{}
			if n%3 == 2 {
				gone = r.relay.Swap(nil)
			} else {
				gone = r.relay.Swap(engines[n%3].m)
			}
			<-gone
			ended.Add(1)
		}
	})
	load.Wait()
	close(answered)
	swaps.Wait()
	if n := created.Load() + refused.Load(); n != callers*each {
		t.Errorf("%d answers, want %d", n, callers*each)
	}
	if n := engines[0].sequence() + engines[1].sequence(); n != uint64(created.Load()) {
		t.Errorf("%d orders sequenced, %d answered 201", n, created.Load())
	}
	t.Logf("%d orders, %d refusals, %d swaps", created.Load(), refused.Load(), ended.Load())
}

// TestRoleChangesUnderLoad: two members, and the leader changes while orders come in at both. Each
// order has a clientOrderId and the client repeats what is safe, so one of the engines decides
// every order.
func TestRoleChangesUnderLoad(t *testing.T) {
	engines := []*rig{newRig(t), newRig(t)}
	members := []*relayRig{newLeader(t, "order-matcher", engines[0].m),
		newRelayRig(t, "order-matcher", "2", nil, nil)}
	members[1].relay.Swap(engines[1].m)
	elect := func(n int) {
		name, at := []string{"1", "2"}[n], map[string]string{"order-matcher": members[n].address}
		members[n].cluster.lead(name, at) // for a moment both may lead, or one member's view is old
		members[1-n].cluster.lead(name, at)
	}
	elect(0)
	const callers, each = 4, 100
	var load, changes sync.WaitGroup
	decided := make(chan struct{}, callers*each)
	for caller := range callers {
		load.Go(func() {
			for n := range each {
				id := itoa(uint64(caller*each + n))
				q := request{method: "POST", path: "/orders",
					body: orderBody("1", "Buy", "1", "100", `,"clientOrderId":"`+id+`"`)}
				for at := caller; ; at++ {
					a := roundTrip(t, members[at%2].address, q)
					if a.status == 201 {
						decided <- struct{}{}
						break
					}
					if a.status != 503 || a.field(t, "sequenced") != false {
						t.Errorf("order %s: %d %s", id, a.status, a.body)
						return
					}
				}
			}
		})
	}
	changes.Go(func() {
		for n := 1; ; n++ {
			for range 3 {
				if _, ok := <-decided; !ok {
					return
				}
			}
			elect(n % 2)
		}
	})
	load.Wait()
	close(decided)
	changes.Wait()
	if n := engines[0].sequence() + engines[1].sequence(); n != callers*each {
		t.Errorf("%d orders sequenced, want %d: one was sent twice or lost", n, callers*each)
	}
}

// TestShutdownLetsRelayedRequestsEnd, and leaves no goroutine and no connection.
func TestShutdownLetsRelayedRequestsEnd(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("a request under way", func(t *testing.T) {
		entered, leave := make(chan struct{}), make(chan struct{})
		leader := newScriptedLeader(t, func(c net.Conn, q handed) bool {
			close(entered)
			<-leave
			return reply(created)(c, q)
		})
		r := newFollower(t, "order-matcher", "1", leader.address)
		first := make(chan answer)
		go func() {
			first <- roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder})
		}()
		<-entered
		stopped := make(chan struct{})
		go func() { r.stop(); close(stopped) }()
		for !r.relay.server.stopping.Load() {
			runtime.Gosched()
		}
		close(leave)
		(<-first).want(t, 201, "")
		<-stopped
	})
	t.Run("a report under way", func(t *testing.T) {
		engine := newRig(t)
		engine.report.head = 1 << 40
		engine.report.each = func(ctx context.Context, n int) error {
			if n < 2 {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		leader := newLeader(t, "order-matcher", engine.m)
		conn, resp := engine.askAt(leader.address, "", nil)
		defer conn.Close()
		leader.stop()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a sweep that was sent on", func(t *testing.T) {
		leader := newScriptedLeader(t, hang)
		r := newFollower(t, "trade-processor", "1", leader.address)
		first := make(chan answer)
		go func() {
			first <- r.call(request{method: "POST", path: "/recon/orphan-sweep",
				token: testToken(testStart, "admin")})
		}()
		<-leader.more
		r.stop()
		(<-first).want(t, 504, CodeOutcomeUnknown)
	})
	t.Run("a feed that was sent on", func(t *testing.T) {
		const event = "id: 7.1\nevent: mark\ndata: {}\n\n"
		leader := newScriptedLeader(t, reply(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: "+
			"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(event), event)))
		r := newFollower(t, "order-matcher", "1", leader.address)
		r.relay.forwarder.stall = time.Hour
		conn := must.Get(net.Dial("tcp", r.address))(t)
		defer conn.Close()
		must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		must.Get(io.WriteString(conn, "GET /feed?topics=trades HTTP/1.1\r\nHost: x\r\n\r\n"))(t)
		answer := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		first := make([]byte, len(event))
		must.Get(io.ReadFull(answer.Body, first))(t)
		stopped := make(chan struct{})
		go func() { r.stop(); close(stopped) }()
		if rest, err := io.ReadAll(answer.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("behind %q came %q, %v", first, rest, err)
		}
		<-stopped
	})
	// The HTTP library's pool looks every ten seconds whether its server is there. Its clock goes on.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction(
		"github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// TestFaultsOfServicesThatHaveLeft stay in the counts.
func TestFaultsOfServicesThatHaveLeft(t *testing.T) {
	engine := newRig(t)
	engine.serve(func(d *Deps) { d.Clock = func() int64 { panic("planted") } })
	r := newLeader(t, "order-matcher", engine.m)
	r.call(request{method: "POST", path: "/orders", body: goodOrder}).from(t, "1").want(t, 500,
		CodeInternal)
	r.rawExchange("nonsense\r\n\r\n")
	engine.m.server.panics.Add(10) // of a report
	for _, place := range []string{"in its place", "gone"} {
		got := map[string]uint64{}
		r.relay.Counted(Counts{
			Fault:   func(service, fault string, n uint64) { got[service+" "+fault] = n },
			Request: func(service, route, code string, n uint64) { got[route+" "+code] = n },
		})
		if got["order-matcher panic"] != 11 || got["order-matcher refused"] != 1 {
			t.Errorf("%s: %v, want 11 panics and 1 refused", place, got)
		}
		<-r.relay.Swap(nil)
	}
}

// TestMemberThatLostItsLead while an order was on its way to the engine. A refused order was not
// sequenced; a lost one has an unknown outcome.
func TestMemberThatLostItsLead(t *testing.T) {
	r := newRig(t, withoutEngine)
	leader := newLeader(t, "order-matcher", r.m)
	first := make(chan answer)
	go func() { first <- leader.call(request{method: "POST", path: "/orders", body: goodOrder}) }()
	var lo, hi int64
	for lo == hi {
		runtime.Gosched()
		lo, hi = r.in.Ready(16)
	}
	for slot := lo; slot < hi; slot++ {
		r.desk.Refuse(r.in.At(slot).InputSeq)
	}
	r.in.Release(hi)
	a := (<-first).from(t, "1").want(t, 503, CodeNotLeader)
	if a.field(t, "sequenced") != false || a.header.Get("Retry-After") != "1" {
		t.Errorf("%v %s", a.header, a.body)
	}
	if n := r.desk.Out(); n != 0 {
		t.Errorf("%d tickets are out", n)
	}
}

// TestRelayDoesNotAllocate when the request runs on this member.
func TestRelayDoesNotAllocate(t *testing.T) {
	b := newBench(t, "/orders", orderBody("1", "Buy", "1", "100", `,"timeInForce":"FOK"`))
	relay := must.Get(NewRelay("order-matcher",
		RelayOptions{Cluster: leading("1"), Durability: "quorum"}))(t)
	relay.Swap(b.rig.m)
	run := func() {
		b.ctx.Response.Reset()
		b.ctx.ResetUserValues()
		relay.server.serve(&b.ctx)
	}
	for range 200 {
		run()
	}
	if status := b.ctx.Response.StatusCode(); status != 201 {
		t.Fatalf("status %d: %s", status, b.ctx.Response.Body())
	}
	if n := testing.AllocsPerRun(500, run); n >= 1 && !raceEnabled {
		t.Errorf("%v allocations an order, want 0", n)
	}
}
