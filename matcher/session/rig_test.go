package session

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/admission"
	"posttrade/matcher/desk"
	"posttrade/matcher/gate"
	"posttrade/matcher/session/client"
	"posttrade/matcher/session/wire"
	"posttrade/ring"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

const testTime = 1_772_445_600_000

// Ids of testGenesis: account 4 is disabled, security 3 halted.
const (
	aaa = 1
	bbb = 2
)

func testSecret() []byte { return []byte("0123456789abcdef0123456789abcdef") }

func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat, TickPx: 1000,
		Accounts: []matcher.GenesisAccount{
			{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3, Enabled: true}, {ID: 4},
		},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true},
			{Ticker: "XHLT", Enabled: true, Halted: true},
		},
		Limits: matcher.Limits{
			MaxOrderQty: 100_000, MaxOrderNotional: 1e15, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 60, CreditLimit: 1 << 61, PriceMaxAgeMillis: 30_000,
			IdempotencyCapacity: 4096, MaxAccounts: 16, MaxSecurities: 16, MaxContracts: 64,
			MaxOpenOrders: 1 << 14, RetainedOrders: 1 << 12,
		},
	}
}

// rig is the whole path in one process, without a disk: real gate, desk, rings, engine and views,
// and a recorder that declares every event durable at once unless it holds.
type rig struct {
	t       testing.TB
	o       Options
	server  *Server
	gate    *gate.Gate
	desk    *desk.Desk
	in      *ring.MPSC[matcher.Command]
	out     *ring.Fanout[matcher.Event]
	views   *blotter.Views
	stage   *matcher.Stage
	now     atomic.Int64 // the clock: edge and verifier
	full    atomic.Bool
	failure atomic.Pointer[error]

	durable  atomic.Uint64
	recorded atomic.Uint64
	limit    atomic.Uint64 // the recorder makes no sequence durable beyond it
	lastRef  atomic.Uint64 // the desk's id of the last command
	stopping atomic.Bool
	done     chan struct{}

	watch                  func(*matcher.Event) // gets each recorded event; set before run
	prepare                func(*Server)        // between Open and Run
	recorder, stopRecorder func()               // start and end the reader of the output ring
}

// region is private memory that the test releases.
func region(t testing.TB, bytes int) *ring.Region {
	t.Helper()
	return must.Get(ring.Anonymous(bytes))(t)
}

// rigOptions changes a rig before its server opens.
type rigOptions func(r *rig)

func enforced(r *rig) { r.o.Enforced = true }

func newRig(t testing.TB, change ...rigOptions) *rig {
	t.Helper()
	g := testGenesis()
	r := &rig{t: t, done: make(chan struct{})}
	r.recorder = func() { go r.record() }
	r.stopRecorder = func() {
		r.stopping.Store(true)
		r.out.Waiter().Wake()
	}
	r.now.Store(testTime)
	r.limit.Store(math.MaxUint64)
	var err error
	regions := []*ring.Region{region(t, ring.MPSCBytes[matcher.Command](4096)),
		region(t, ring.FanoutBytes[matcher.Event](8192))}
	if r.in, err = ring.NewMPSC[matcher.Command](regions[0], 4096); err != nil {
		t.Fatal(err)
	}
	if r.out, err = ring.NewFanout[matcher.Event](regions[1], 8192); err != nil {
		t.Fatal(err)
	}
	engine, err := matcher.New(g)
	must.OK(t, err)
	r.gate = gate.New(g.Limits.MaxAccounts, g.Limits.MaxSecurities)
	must.OK(t, r.gate.Load(g))
	r.gate.SetReady()
	if r.desk, err = desk.New(r.in, 256); err != nil {
		t.Fatal(err)
	}
	if r.views, err = blotter.NewViews(g); err != nil {
		t.Fatal(err)
	}
	r.stage = matcher.NewStage(engine, r.in, r.out, ring.Adaptive, -1)
	verifier, err := gate.NewVerifier(testSecret(), "", 0,
		func() time.Time { return time.UnixMilli(r.now.Load()) })
	must.OK(t, err)
	r.o = Options{
		Decider: admission.Decider{
			Gate: r.gate, Views: r.views, StorageFull: r.full.Load,
			Failed: func() error {
				if p := r.failure.Load(); p != nil {
					return *p
				}
				return nil
			},
			SequenceRefusals: true,
		},
		Socket: filepath.Join(socketDir(t), "s"), Desk: r.desk, Verifier: verifier,
		Clock: r.now.Load, Durable: r.durable.Load, Seen: r.stage.Applied,
		Idle: ring.Adaptive, TapSlots: 1 << 12,
	}
	for _, f := range change {
		f(r)
	}
	if r.server, err = Open(r.o); err != nil {
		t.Fatal(err)
	}
	if r.prepare != nil {
		r.prepare(r.server)
	}
	r.run(regions, engine)
	return r
}

// socketDir is a short path, because a socket's path may have at most 107 bytes.
func socketDir(t testing.TB) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "pts"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// run starts all parts, and stops them in reverse order when the test ends.
func (r *rig) run(regions []*ring.Region, engine *matcher.Engine) {
	old := runtime.GOMAXPROCS(runtime.NumCPU() + 4)
	staged := make(chan error, 1)
	served := make(chan error, 1)
	r.recorder()
	go func() { staged <- r.stage.Run() }()
	go func() { served <- r.server.Run() }()
	var once sync.Once
	r.t.Cleanup(func() {
		once.Do(func() {
			r.server.Close()
			if err := <-served; err != nil {
				r.t.Error(err)
			}
			r.stage.Stop()
			if err := <-staged; err != nil {
				r.t.Error(err)
			}
			r.stopRecorder()
			<-r.done
			engine.Close()
			r.views.Close()
			for _, one := range regions {
				one.Close()
			}
			runtime.GOMAXPROCS(old)
		})
	})
}

// record is recorder and committer in one.
func (r *rig) record() {
	defer close(r.done)
	idle := ring.NewIdler(ring.Adaptive, r.out.Waiter())
	if err := idle.Lock(-1); err != nil { // as the recorder of a journal does
		r.t.Error(err)
	}
	var id []byte
	for {
		lo, hi := r.out.Ready(256)
		if lo == hi {
			more := r.views.Flush()
			r.catchUp()
			if r.stopping.Load() && r.out.Empty() {
				return
			}
			if !more {
				idle.Idle(r.out)
			}
			continue
		}
		idle.Reset()
		for at := lo; at < hi; at++ {
			ev := r.out.At(at)
			if ev.Flags&matcher.EventFirst != 0 {
				id = r.desk.ClientID(ev.Ref)
			}
			r.gate.Observe(ev)
			r.views.Observe(ev, id)
			r.server.Observe(ev, id)
			r.desk.Observe(ev)
			if r.watch != nil {
				r.watch(ev)
			}
			if ev.Ref != 0 {
				r.lastRef.Store(ev.Ref)
			}
			r.recorded.Store(ev.InputSeq)
		}
		r.out.Release(hi)
		r.views.Flush()
		r.catchUp()
	}
}

// catchUp makes all recorded events durable, unless the rig holds.
func (r *rig) catchUp() {
	if seq := min(r.recorded.Load(), r.limit.Load()); seq > r.durable.Load() {
		r.durable.Store(seq)
		r.desk.Durable(seq)
		r.server.Wake()
	}
}

// hold stops durability at its current sequence, allow lets it continue up to a sequence, letGo
// removes the limit. hold must not be called while commands are on their way.
func (r *rig) hold()  { r.limit.Store(r.durable.Load()) }
func (r *rig) letGo() { r.allow(math.MaxUint64) }
func (r *rig) allow(seq uint64) {
	r.limit.Store(seq)
	r.out.Waiter().Wake()
}

// token is a token for the accounts.
func (r *rig) token(admin bool, accounts ...uint32) string {
	return gate.Mint(testSecret(), gate.Claims{Subject: "someone", Admin: admin, Accounts: accounts},
		"",
		time.Hour, time.UnixMilli(r.now.Load()))
}

// dial opens a session that the test closes.
func (r *rig) dial(token string, o client.Options) *client.Client {
	r.t.Helper()
	c := must.Get(client.Dial(context.Background(), r.o.Socket, token, o))(r.t)
	r.t.Cleanup(func() { c.Close() })
	return c
}

// until waits for a condition that other goroutines make true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	waittest.Spin(t, what, ok)
}

// next is the next record; the test fails without one.
func next(t testing.TB, c *client.Client) wire.Record {
	t.Helper()
	r := must.Get(c.Next())(t)
	return *r
}

// ask flushes the command that send wrote and returns its answer.
func ask(t testing.TB, c *client.Client, send error) wire.Record {
	t.Helper()
	if send != nil {
		t.Fatal(send)
	}
	c.Flush()
	return next(t, c)
}
