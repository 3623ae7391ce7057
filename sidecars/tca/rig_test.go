package tca

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

const (
	unit = matcher.PriceScale
	noon = int64(1_700_000_000_000)
)

var tickers = []string{"AAA", "BBB", "CCC", "DDD"} // ids are positions, from 1

func testGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat,
		Limits: matcher.Limits{
			MaxOrderQty: 1_000_000, MaxOrderNotional: 1 << 62, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 62, CreditLimit: 1 << 62, PriceMaxAgeMillis: 1 << 50,
			IdempotencyCapacity: 64, MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8,
			MaxOpenOrders: 4096, RetainedOrders: 32,
		},
		TickPx: 1000,
	}
	for id := range uint32(6) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: id + 1, Enabled: true})
	}
	for _, ticker := range tickers {
		g.Securities = append(g.Securities, matcher.GenesisSecurity{Ticker: ticker, Enabled: true})
	}
	return g
}

// snapshot is an engine's state at a command.
type snapshot struct {
	inputSeq uint64
	state    []byte
}

// venue is a live engine with all its commands and events in memory: a journal for tests.
type venue struct {
	t      testing.TB
	engine *matcher.Engine
	out    *matcher.Outlet
	now    int64

	events []matcher.Event // all of them
	said   []matcher.Event // of the last command
	trades []store.Trade   // as a projection would write them

	mu        sync.Mutex // what shadows read
	commands  []matcher.Command
	snapshots []snapshot
	durable   uint64
	broken    error // the error of a shadow's Follow
}

func newVenue(t testing.TB) *venue {
	t.Helper()
	engine := must.Get(matcher.New(testGenesis()))(t)
	t.Cleanup(func() { engine.Close() })
	v := &venue{t: t, engine: engine, now: noon}
	v.out = matcher.NewOutlet(8, func(events []matcher.Event) { v.said = append(v.said, events...) })
	return v
}

// do decides a command at the venue's time; it is durable at once.
func (v *venue) do(c matcher.Command) []matcher.Event {
	v.t.Helper()
	c.EventTimeMillis = v.now
	v.said = v.said[:0]
	v.engine.Apply(&c, v.out)
	v.out.Flush()
	v.events = append(v.events, v.said...)
	for i := range v.said {
		ev := &v.said[i]
		if ev.Kind != matcher.EventFilled {
			continue
		}
		v.trades = append(v.trades, store.Trade{
			ID: matcher.TradeID(ev.TradeSeq), Seq: ev.TradeSeq, AccountID: ev.AccountID,
			Security: tickers[ev.SecurityID-1], Side: ev.Side, Quantity: int64(ev.Qty), Price: ev.Px,
			ExecutedAt: ev.TimeMillis, BookedAt: ev.TimeMillis, UpdatedAt: ev.TimeMillis,
			Sequence: ev.InputSeq,
		})
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.commands = append(v.commands, *v.said[0].Cmd())
	v.durable = uint64(len(v.commands))
	return v.said
}

// must is do for a command that must not be refused; it returns its order.
func (v *venue) must(c matcher.Command) uint32 {
	v.t.Helper()
	said := v.do(c)
	if said[0].Kind == matcher.EventRejected {
		v.t.Fatalf("%+v was refused: %v", c, said[0].Reason)
	}
	return said[0].OrderRef
}

func (v *venue) at(millis int64) *venue { v.now = noon + millis; return v }

func (v *venue) snapshot() {
	v.t.Helper()
	var b bytes.Buffer
	must.OK(v.t, v.engine.WriteSnapshot(&b))
	v.mu.Lock()
	defer v.mu.Unlock()
	v.snapshots = append(v.snapshots, snapshot{v.engine.AppliedSeq(), b.Bytes()})
}

func (v *venue) head() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.durable
}

// become makes the venue's journal end at inputSeq, for shadows.
func (v *venue) become(inputSeq uint64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.durable = inputSeq
}

func (v *venue) breaks(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.broken = err
}

// shadow is an engine from the newest snapshot at or before inputSeq before.
func (v *venue) shadow(before uint64) (Shadow, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken != nil {
		return nil, v.broken
	}
	engine, err := matcher.New(testGenesis())
	for i := len(v.snapshots) - 1; i >= 0 && err == nil; i-- {
		if v.snapshots[i].inputSeq <= before {
			engine.Close()
			engine, err = matcher.ReadSnapshot(testGenesis(), bytes.NewReader(v.snapshots[i].state))
			break
		}
	}
	if err != nil {
		return nil, err
	}
	s := &shadow{v: v, engine: engine}
	s.out = matcher.NewOutlet(8, func(events []matcher.Event) {
		s.events = append(s.events, events...)
	})
	return s, nil
}

// shadow replays a venue's commands.
type shadow struct {
	v      *venue
	engine *matcher.Engine
	out    *matcher.Outlet
	events []matcher.Event
}

func (s *shadow) Applied() uint64 { return s.engine.AppliedSeq() }
func (s *shadow) Close() error    { return s.engine.Close() }

func (s *shadow) Follow(ctx context.Context, to uint64, fn func([]matcher.Event) error) error {
	for at := s.Applied(); at < to; at = s.Applied() {
		s.v.mu.Lock()
		batch, broken := s.v.commands[min(at, s.v.durable):min(to, at+1000, s.v.durable)], s.v.broken
		s.v.mu.Unlock()
		if err := context.Cause(ctx); err != nil || broken != nil {
			return cmp.Or(broken, err)
		}
		if len(batch) == 0 {
			return nil
		}
		s.events = s.events[:0]
		if _, err := s.engine.ReplayBatch(batch, s.out); err != nil {
			return err
		}
		s.out.Flush()
		if fn != nil {
			if err := fn(s.events); err != nil {
				return err
			}
		}
	}
	return nil
}

// options follow a venue with an index in a folder of the test's own.
func (v *venue) options() Options {
	return Options{
		Dir: v.t.TempDir(), Window: 5 * time.Minute, Genesis: testGenesis().Marshal(),
		Shadow: v.shadow, Durable: v.head, SecurityID: securityID, Poll: time.Millisecond,
	}
}

func securityID(ticker string) (uint32, bool) {
	for i, s := range tickers {
		if s == ticker {
			return uint32(i + 1), true
		}
	}
	return 0, false
}

// open opens an index; it is closed when the test ends, if it is not closed before.
func open(t testing.TB, o Options) *TCA {
	t.Helper()
	x := must.Get(Open(o))(t)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

// run runs an index and returns the function that ends it.
func run(t testing.TB, x *TCA) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// follow brings an index to the venue's head.
func follow(t testing.TB, x *TCA, v *venue) {
	t.Helper()
	stop := run(t, x)
	defer stop()
	caughtUp(t, x, v)
}

func caughtUp(t testing.TB, x *TCA, v *venue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	must.OK(t, x.CatchUp(ctx, v.head()))
}

// text is a report's JSON.
func text(t testing.TB, x *TCA, trade store.Trade) string {
	t.Helper()
	r := must.Get(x.Report(t.Context(), trade))(t)
	return string(r.AppendJSON(nil))
}

func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// scaled is n, or a tenth of it for a short run.
func scaled(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func closeAll(t testing.TB, closers ...io.Closer) {
	t.Helper()
	for _, c := range closers {
		must.OK(t, c.Close())
	}
}
