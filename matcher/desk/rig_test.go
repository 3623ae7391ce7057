package desk

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/must"
)

const (
	testAccounts = 100
	testTime     = 1_700_000_000_000
)

// rig is a desk in front of a real engine. A test steps it by hand, or runs it on two goroutines as
// the product does: the recorder's and the committer's.
type rig struct {
	t      testing.TB
	desk   *Desk
	in     *ring.MPSC[matcher.Command]
	engine *matcher.Engine
	outlet *matcher.Outlet
	watch  func(ev *matcher.Event) // before the desk sees it; may be nil

	observed atomic.Uint64
	stop     atomic.Bool
	stopped  sync.WaitGroup
}

func testGenesis() *matcher.Genesis {
	g := &matcher.Genesis{
		Format: matcher.GenesisFormat,
		TickPx: 1000,
		Limits: matcher.Limits{
			MaxOrderQty: 1 << 30, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 60, CreditLimit: 1 << 61, PriceMaxAgeMillis: 1 << 40,
			IdempotencyCapacity: 1024, MaxAccounts: 128, MaxSecurities: 16, MaxContracts: 16,
			MaxOpenOrders: 1 << 12, RetainedOrders: 1 << 10,
		},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAPL", Enabled: true}, {Ticker: "MSFT", Enabled: true},
			{Ticker: "NVDA", Enabled: true},
		},
	}
	for id := range testAccounts {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: uint32(id), Enabled: true})
	}
	return g
}

func newRig(t testing.TB, slots, tickets int) *rig {
	t.Helper()
	region := must.Get(ring.Anonymous(ring.MPSCBytes[matcher.Command](slots)))(t)
	in := must.Get(ring.NewMPSC[matcher.Command](region, slots))(t)
	engine := must.Get(matcher.New(testGenesis()))(t)
	d := must.Get(New(in, tickets))(t)
	r := &rig{t: t, desk: d, in: in, engine: engine}
	r.outlet = matcher.NewOutlet(256, func(events []matcher.Event) {
		for i := range events {
			if r.watch != nil {
				r.watch(&events[i])
			}
			d.Observe(&events[i])
		}
	})
	t.Cleanup(func() {
		r.stop.Store(true)
		r.stopped.Wait()
		engine.Close()
		region.Close()
	})
	return r
}

// step decides and observes up to max commands and returns how many there were.
func (r *rig) step(max int) int {
	lo, hi := r.in.Ready(max)
	for pos := lo; pos < hi; pos++ {
		r.engine.Apply(r.in.At(pos), r.outlet)
		r.outlet.Flush()
	}
	r.in.Release(hi)
	return int(hi - lo)
}

// durable makes everything decided so far durable.
func (r *rig) durable() { r.desk.Durable(r.engine.AppliedSeq()) }

// run starts the recorder and the committer.
func (r *rig) run() {
	r.stopped.Go(func() {
		for !r.stop.Load() {
			if r.step(64) == 0 {
				runtime.Gosched()
				continue
			}
			r.observed.Store(r.engine.AppliedSeq())
		}
	})
	r.stopped.Go(func() {
		last := uint64(0)
		for !r.stop.Load() {
			if seq := r.observed.Load(); seq != last {
				last = seq
				r.desk.Durable(seq)
				continue
			}
			runtime.Gosched()
		}
	})
}

// acquire is Acquire that must succeed.
func (r *rig) acquire(n int) *Ticket {
	r.t.Helper()
	return must.Get(r.desk.Acquire(n))(r.t)
}

// submit fills a ticket with the commands and submits it.
func (r *rig) submit(commands ...matcher.Command) *Ticket {
	r.t.Helper()
	t := r.acquire(len(commands))
	for i, c := range commands {
		*t.Command(i) = c
	}
	must.OK(r.t, t.Submit())
	return t
}

// decide sends commands through by hand and returns their durable answers.
func (r *rig) decide(commands ...matcher.Command) *Ticket {
	r.t.Helper()
	t := r.submit(commands...)
	for r.step(1024) > 0 {
	}
	r.durable()
	must.OK(r.t, t.Wait(0))
	return t
}

// newOrder is an order of security 1.
func newOrder(account uint32, side matcher.Side, qty int32, px int64,
	flags uint16) matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.EventTimeMillis, c.AccountID, c.SecurityID = testTime, account, 1
	c.Side, c.Qty, c.LimitPx, c.Flags = side, qty, px, flags
	return c
}
