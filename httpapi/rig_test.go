package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/ring"
	"posttrade/ring/must"
)

var testSecret = []byte("0123456789abcdef0123456789abcdef")

// testStart is the clock's first reading: 2026-03-02T10:00:00.000Z.
const testStart = 1772445600000

// testGenesis: account 4 is disabled, XOFF disabled, XHLT halted.
func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{
			{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3, Enabled: true}, {ID: 4},
		},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true},
			{Ticker: "XOFF"}, {Ticker: "XHLT", Enabled: true, Halted: true},
			{Ticker: "BRK.B", Enabled: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 100_000, MaxOrderNotional: 1e14, MaxPositionQty: 1_000_000,
			MaxConcentrationNotional: 1e15, CreditLimit: 1e15, PriceMaxAgeMillis: 30_000,
			PriceCollarBps:      5000,
			IdempotencyCapacity: 4096, MaxAccounts: 16, MaxSecurities: 16, MaxContracts: 4096,
			MaxOpenOrders: 4096, RetainedOrders: 4096,
		},
	}
}

// rig is the whole path without a disk: real gate, desk, rings, engine, views and blotter, and a
// recorder loop that makes everything durable at once, unless hold stops it.
type rig struct {
	t        testing.TB
	deps     Deps
	m        *OrderMatcher
	ln       net.Listener
	address  string
	gate     *gate.Gate
	desk     *desk.Desk
	in       *ring.MPSC[matcher.Command]
	out      *ring.Fanout[matcher.Event]
	views    *blotter.Views
	blotter  *blotter.Blotter
	stage    *matcher.Stage
	recorder *fakeRecorder
	report   *fakeReporter
	history  *fakeHistory
	now      atomic.Int64
	full     atomic.Bool
	held     atomic.Bool
	failure  atomic.Pointer[error]
}

// option changes a rig before it starts.
type option func(r *rig)

func enforced(r *rig)      { r.deps.Enforced = true }
func unsequenced(r *rig)   { r.deps.SequenceRefusals = false }
func prefixed(r *rig)      { r.deps.PathPrefix = "/om/" }
func withoutEngine(r *rig) { r.stage = nil }
func slots(tickets int) option {
	return func(r *rig) { r.desk = must.Get(desk.New(r.in, tickets))(r.t) }
}

func newRig(t testing.TB, options ...option) *rig {
	return newRigWith(t, testGenesis(), options...)
}

func newRigWith(t testing.TB, g *matcher.Genesis, options ...option) *rig {
	t.Helper()
	return newRigFrom(t, g, must.Get(matcher.New(g))(t), options...)
}

// newRigFrom is newRigWith for an engine that the caller has made.
func newRigFrom(t testing.TB, g *matcher.Genesis, engine *matcher.Engine, options ...option) *rig {
	t.Helper()
	region := func(bytes int) *ring.Region {
		r := must.Get(ring.Anonymous(bytes))(t)
		t.Cleanup(func() { r.Close() })
		return r
	}
	r := &rig{t: t}
	r.now.Store(testStart)
	r.in = must.Get(
		ring.NewMPSC[matcher.Command](region(ring.MPSCBytes[matcher.Command](4096)), 4096))(t)
	r.out = must.Get(
		ring.NewFanout[matcher.Event](region(ring.FanoutBytes[matcher.Event](8192)), 8192))(t)
	r.gate = gate.New(g.Limits.MaxAccounts, g.Limits.MaxSecurities)
	must.OK(t, r.gate.Load(g))
	r.gate.SetReady()
	r.desk = must.Get(desk.New(r.in, 256))(t)
	r.views = must.Get(blotter.NewViews(g))(t)
	r.blotter = must.Get(blotter.New(1000))(t)
	r.stage = matcher.NewStage(engine, r.in, r.out, ring.Park, -1)
	verifier := must.Get(
		gate.NewVerifier(testSecret, "", 0, func() time.Time { return time.UnixMilli(r.now.Load()) }))(t)
	r.recorder = newFakeRecorder(r)
	r.report, r.history = newFakeReporter(5), &fakeHistory{}
	r.deps = Deps{
		Report: r.report, History: r.history,
		Decider: admission.Decider{
			Gate: r.gate, Views: r.views, StorageFull: r.full.Load, Held: r.held.Load,
			Failed: func() error {
				if p := r.failure.Load(); p != nil {
					return *p
				}
				return nil
			},
			SequenceRefusals: true,
		},
		Desk: r.desk, Blotter: r.blotter, Verifier: verifier,
		Durable: r.recorder, Seen: r.stage.Applied, Clock: r.now.Load,
		Durability: "fsync", AnswerTimeout: 20 * time.Second,
	}
	for _, o := range options {
		o(r)
	}
	r.deps.Desk = r.desk
	r.views.SetWake(r.out.Waiter().Wake)
	r.start(engine)
	return r
}

// start runs the stages and the server and stops them, in order, at the end of the test.
func (r *rig) start(engine *matcher.Engine) {
	var stages sync.WaitGroup
	if r.stage != nil {
		stages.Go(func() {
			if err := r.stage.Run(); err != nil {
				r.t.Error(err)
			}
		})
		stages.Go(r.recorder.run)
	}
	r.t.Cleanup(func() {
		if r.stage != nil {
			r.stage.Stop()
			r.recorder.stop()
		}
		stages.Wait()
		for _, c := range []io.Closer{engine, r.views, r.blotter} {
			if err := c.Close(); err != nil {
				r.t.Error(err)
			}
		}
	})
	r.serve(func(*Deps) {})
}

// serve puts an edge with changed dependencies in front of the same engine; from then on the rig
// talks to that edge.
func (r *rig) serve(change func(d *Deps), tune ...func(m *OrderMatcher)) {
	r.t.Helper()
	deps := r.deps
	change(&deps)
	r.m = NewOrderMatcher(deps)
	for _, f := range tune {
		f(r.m)
	}
	r.ln = must.Get(net.Listen("tcp", "127.0.0.1:0"))(r.t)
	r.address = r.ln.Addr().String()
	m, ln := r.m, r.ln
	var server sync.WaitGroup
	server.Go(func() {
		if err := m.Serve(ln); err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(func() {
		r.recorder.letGo()
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := m.Shutdown(ctx); err != nil {
			r.t.Errorf("shutdown: %v", err)
		}
		server.Wait()
	})
}

// fail makes the journal fail.
func (r *rig) fail(cause error) {
	r.failure.Store(&cause)
	r.recorder.mu.Lock()
	r.recorder.broken = cause
	r.recorder.mu.Unlock()
	r.recorder.moved.Broadcast()
	r.desk.Fail()
}

// token mints a token: "admin", "expired", or one for the accounts given.
func (r *rig) token(kind string, accounts ...uint32) string {
	return testToken(r.now.Load(), kind, accounts...)
}

func testToken(nowMillis int64, kind string, accounts ...uint32) string {
	now := time.UnixMilli(nowMillis)
	claims := gate.Claims{Subject: "tester", Admin: kind == "admin", Accounts: accounts}
	if kind == "expired" {
		now = now.Add(-2 * time.Hour)
	}
	return gate.Mint(testSecret, claims, "", time.Hour, now)
}

// answer is a response as a test reads it.
type answer struct {
	status int
	header http.Header
	body   []byte
	closes bool // it says that the connection ends with it
}

// json decodes the body into a generic value.
func (a answer) json(t testing.TB) any {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("answer %d is no JSON: %v: %q", a.status, err, a.body)
	}
	return v
}

// field is a member of the body, an object.
func (a answer) field(t testing.TB, name string) any {
	t.Helper()
	o, ok := a.json(t).(map[string]any)
	if !ok {
		t.Fatalf("answer %d is no object: %q", a.status, a.body)
	}
	if n, ok := o[name].(json.Number); ok {
		return n.String()
	}
	return o[name]
}

// request is one call of a test.
type request struct {
	method, path, body, token string
	header                    map[string]string
}

// call makes one request over a connection of its own.
func (r *rig) call(q request) answer {
	r.t.Helper()
	return r.callAt(r.address, q)
}

func (r *rig) callAt(address string, q request) answer {
	r.t.Helper()
	a := roundTrip(r.t, address, q)
	matcherAPI.checkAnswer(r.t, q.method, q.path, a)
	return a
}

// roundTrip makes one request over a connection of its own.
func roundTrip(t testing.TB, address string, q request) answer {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	defer conn.Close()
	must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	var b bytes.Buffer
	b.WriteString(q.method + " " + q.path + " HTTP/1.1\r\nHost: test\r\n")
	if q.token != "" {
		b.WriteString("Authorization: Bearer " + q.token + "\r\n")
	}
	for name, value := range q.header {
		b.WriteString(name + ": " + value + "\r\n")
	}
	if q.body != "" || q.method == "POST" {
		b.WriteString("Content-Length: " + itoa(uint64(len(q.body))) + "\r\n")
	}
	b.WriteString("\r\n" + q.body)
	must.Get(conn.Write(b.Bytes()))(t)
	return readAnswer(t, bufio.NewReader(conn), q.method)
}

func readAnswer(t testing.TB, br *bufio.Reader, method string) answer {
	t.Helper()
	resp, err := http.ReadResponse(br, &http.Request{Method: method})
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer's body: %v", err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: body, closes: resp.Close}
}

func (r *rig) post(path, body, token string) answer {
	r.t.Helper()
	return r.call(request{method: "POST", path: path, body: body, token: token})
}

func (r *rig) get(path, token string) answer {
	r.t.Helper()
	return r.call(request{method: "GET", path: path, token: token})
}

// sequence is the last sequence that the engine has issued.
func (r *rig) sequence() uint64 { return r.stage.Applied() }

// contracts is how many contracts show, at most 100.
func (r *rig) contracts() int {
	rows, _ := r.views.Contracts(blotter.ContractFilter{}, 0, 100, nil)
	return len(rows)
}

// price sequences a market price.
func (r *rig) price(security, price string) {
	r.t.Helper()
	a := r.post("/prices", `[{"security":"`+security+`","price":`+price+`}]`, r.token("admin"))
	if a.status != 202 {
		r.t.Fatalf("price: %d %s", a.status, a.body)
	}
}

// order posts an order of AAA with further members and returns its answer.
func (r *rig) order(account, side, qty, price, more string) answer {
	r.t.Helper()
	return r.post("/orders", orderBody(account, side, qty, price, more), "")
}

func orderBody(account, side, qty, price, more string) string {
	return `{"accountId":` + account + `,"security":"AAA","side":"` + side + `","quantity":` + qty +
		`,"limitPrice":` + price + more + `}`
}

// want checks status and code of a problem, or status alone for code "".
func (a answer) want(t testing.TB, status int, code Code) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if code != "" && a.field(t, "code") != string(code) {
		t.Fatalf("code %v, want %s: %s", a.field(t, "code"), code, a.body)
	}
	return a
}
