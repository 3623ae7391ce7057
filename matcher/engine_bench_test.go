package matcher

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"posttrade/matcher/flow"
)

// flowEngineAccounts is how many accounts the orders of a flow belong to.
const flowEngineAccounts = 64

// flowEngineGenesis is a universe with limits that never refuse an order of a flow: the engine
// makes every check, and every check passes.
func flowEngineGenesis(symbols int) *Genesis {
	g := &Genesis{Format: GenesisFormat, TickPx: 1000, Limits: Limits{
		MaxOrderQty: 1_000_000, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
		MaxConcentrationNotional: 1 << 61, CreditLimit: 1 << 61, PriceMaxAgeMillis: 30_000,
		PriceCollarBps:      5_000,
		IdempotencyCapacity: 65_536, MaxAccounts: 4_096, MaxSecurities: 4_096, MaxContracts: 1_024,
		MaxOpenOrders: benchOrders, RetainedOrders: 65_536,
	}}
	for a := range flowEngineAccounts {
		g.Accounts = append(g.Accounts, GenesisAccount{ID: uint32(a + 1), Enabled: true})
	}
	for s := range symbols {
		g.Securities = append(g.Securities, GenesisSecurity{Ticker: fmt.Sprintf("S%02d", s),
			Enabled: true})
	}
	return g
}

// flowEngineCommands turns a flow into commands. Every order has an idempotency key. Makers are odd
// accounts and takers even ones, so that the engine tests for self-trades and never finds one.
func flowEngineCommands(f *flow.Flow) []Command {
	random := flow.NewRandom(7)
	commands := make([]Command, 0, len(f.Commands))
	refs, owners := make([]uint32, f.MaxID+1), make([]uint32, f.MaxID+1)
	next := uint32(1) // the engine numbers orders in order of arrival
	for i := range f.Commands {
		in := &f.Commands[i]
		c := NewCommand(OrderCancel)
		if in.Op == flow.Cancel {
			c.OrderRef, c.AccountID = refs[in.ID], owners[in.ID]
		} else {
			c.Type, c.Side, c.Qty, c.LimitPx = OrderNew, Side(in.Side), in.Qty, in.Px*10_000
			c.PriceTicks = int64(random.Uint64() | 1)
			c.AccountID = uint32(random.N(flowEngineAccounts/2))*2 + 1
			if in.Op == flow.Take {
				c.AccountID++
			}
			refs[in.ID], owners[in.ID] = next, c.AccountID
			next++
		}
		c.SecurityID = uint32(in.Symbol) + 1
		c.EventTimeMillis = noon + int64(i/1000)
		commands = append(commands, c)
	}
	return commands
}

// BenchmarkEngine runs the whole decision step, as the stage does: in batches, with the events in a
// ring of the default size. The bare ladder runs over the same flow in turns. Both are timed in
// laps. It reports the lower quartile of the laps and the ratio, because the time of an interrupted
// lap means nothing.
func BenchmarkEngine(b *testing.B) {
	for _, o := range benchFlows {
		b.Run(fmt.Sprintf("op=flow/symbols=%d", o.Symbols), func(b *testing.B) {
			o.N *= 2 // the first half is not timed: it touches pages, fills tables and the retained orders
			f := flow.Generate(o)
			f.Prefill += len(f.Timed()) / 2
			benchEngine(b, f)
		})
	}
}

func benchEngine(b *testing.B, f *flow.Flow) {
	commands := flowEngineCommands(f)
	const slots = 1 << 17
	out := &Outlet{Slots: make([]Event, slots), Mask: slots - 1}
	var ours, bare []float64
	for b.Loop() {
		e, err := New(flowEngineGenesis(f.Symbols))
		if err != nil {
			b.Fatal(err)
		}
		// as a running engine's memory is, by another thread: see ring.Frontier
		ahead := e.Frontier(nil)
		if err := errors.Join(e.MakeResident(), ahead.MakeRoom(1, uint64(len(commands)))); err != nil {
			b.Fatal(err)
		}
		out.Next, out.Limit = 0, 1<<62
		e.ApplyBatch(commands[:f.Prefill], out)
		timed := commands[f.Prefill:]
		ours = append(ours, laps(len(timed), func(lo, hi int) { e.ApplyBatch(timed[lo:hi], out) })...)
		if e.TradeSeq() != 2*f.Result.Trades {
			b.Fatalf("%d fills, want %d", e.TradeSeq(), 2*f.Result.Trades)
		}
		if err := e.Close(); err != nil {
			b.Fatal(err)
		}

		ladder := flow.NewLadder(f.Symbols, f.MaxID)
		for i := range f.Commands[:f.Prefill] {
			ladder.Apply(&f.Commands[i])
		}
		last := f.Timed()
		bare = append(bare, laps(len(last), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				ladder.Apply(&last[i])
			}
		})...)
	}
	slices.Sort(ours)
	slices.Sort(bare)
	step, floor := ours[len(ours)/4], bare[len(bare)/4]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(step, "ns/command")
	b.ReportMetric(ours[len(ours)/2], "median-ns/command")
	b.ReportMetric(floor, "ladder-ns/command")
	b.ReportMetric(step/floor, "x-ladder")
}

// laps runs n steps in batches of maxBatch and returns nanoseconds per step for every 20 batches.
func laps(n int, batch func(lo, hi int)) (ns []float64) {
	const lap = 20 * maxBatch
	for lo := 0; lo < n; lo += lap {
		hi := min(lo+lap, n)
		start := time.Now()
		for at := lo; at < hi; at += maxBatch {
			batch(at, min(at+maxBatch, hi))
		}
		ns = append(ns, float64(time.Since(start).Nanoseconds())/float64(hi-lo))
	}
	return ns
}
