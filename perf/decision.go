package perf

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/flow"
)

// What the row asks for: no allocation, because the collector's pauses would come with it. The
// figure has two decimals (see runEngine).
var decisionAllocs = atMost("P4", 0, "decision step, allocations a command")

// decisionLadder asks that the whole decision takes at most 3.2 times the time of the bare ladder.
// Risk, positions, reservations, idempotency and events are in it, and the ladder has none of them.
func decisionLadder(symbols int) goal {
	return atMost("P4", 3.2, fmt.Sprintf("decision step against the bare ladder, %d symbols", symbols))
}

// wideLimits never refuse an order of a generated flow: all checks are made, and all pass. The
// capacities are those that the flow needs; the collar is half of the price.
func wideLimits() matcher.Limits {
	return matcher.Limits{
		MaxOrderQty: 1_000_000, MaxOrderNotional: 1 << 60, MaxPositionQty: 1 << 40,
		MaxConcentrationNotional: 1 << 61, CreditLimit: 1 << 61, PriceMaxAgeMillis: 30_000,
		PriceCollarBps:      5_000,
		IdempotencyCapacity: 65_536, MaxAccounts: 4_096, MaxSecurities: 4_096, MaxContracts: 1_024,
		MaxOpenOrders: 1 << 20, RetainedOrders: 65_536,
	}
}

// flowAccounts is the number of accounts that share a flow's orders.
const flowAccounts = 64

// flowGenesis is a universe for a flow: its symbols and flowAccounts accounts, all enabled.
// Securities have the numbers from 1 on, in the order of the symbols; accounts have the numbers
// from 1 on.
func flowGenesis(symbols int) *matcher.Genesis {
	g := &matcher.Genesis{Format: matcher.GenesisFormat, TickPx: 1000, Limits: wideLimits()}
	for a := range flowAccounts {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: uint32(a + 1), Enabled: true})
	}
	for s := range symbols {
		g.Securities = append(g.Securities, matcher.GenesisSecurity{Ticker: fmt.Sprintf("S%02d", s),
			Enabled: true})
	}
	return g
}

// flowCommands turns a flow into the engine's commands. Prices become cents; every order carries an
// idempotency key. Makers have odd accounts and takers even ones, so that self-trade prevention is
// checked and never applies.
func flowCommands(f *flow.Flow) []matcher.Command {
	random := flow.NewRandom(7)
	commands := make([]matcher.Command, 0, len(f.Commands))
	refs := make([]uint32, f.MaxID+1) // the engine numbers new orders from 1, as they come
	owners := make([]uint32, f.MaxID+1)
	next := uint32(1)
	for i := range f.Commands {
		in := &f.Commands[i]
		var c matcher.Command
		if in.Op == flow.Cancel {
			c = matcher.NewCommand(matcher.OrderCancel)
			c.OrderRef, c.AccountID = refs[in.ID], owners[in.ID]
		} else {
			c = matcher.NewCommand(matcher.OrderNew)
			c.LimitPx = in.Px * 10_000
			c.Qty = in.Qty
			c.Side = matcher.Side(in.Side)
			c.PriceTicks = int64(random.Uint64() | 1)
			c.AccountID = uint32(random.N(flowAccounts/2))*2 + 1
			if in.Op == flow.Take {
				c.AccountID++
			}
			refs[in.ID], owners[in.ID] = next, c.AccountID
			next++
		}
		c.SecurityID = uint32(in.Symbol) + 1
		c.EventTimeMillis = 1_700_000_000_000 + int64(i/1000)
		commands = append(commands, c)
	}
	return commands
}

// measureDecision is row P4: the whole decision step, from a command to its events in the slots of
// an output ring, beside the bare ladder.
//
// The load is the flow of row P2, twice as long; the first half warms up. It runs on the calling
// goroutine with nothing on the other core: no ring between threads, no recorder, no journal. So it
// is the time that the matcher's thread needs when it never waits and the lines of its rings are
// its own. The figures are nanoseconds a command, and a ratio to the ladder on the same flow in the
// same run.
//
// It lies when a neighbour of the machine fills the shared cache. The engine reads and writes more
// memory a command than the ladder, so the ratio rises although the code is the same.
func measureDecision(r *Run) error {
	for _, o := range publishedFlows {
		o.N *= 2 // the first half warms up engine and ladder: pages, tables, retained orders
		f := r.flowFor(o)
		f.Prefill += len(f.Timed()) / 2
		commands := flowCommands(f)
		n := len(f.Timed())
		ladder := newFlowLadder(f)
		var ours, bare pieces
		var allocs float64
		for range flowRuns {
			mallocs, err := runEngine(f, commands, ours.time)
			if err != nil {
				return err
			}
			allocs = max(allocs, mallocs)
			ladder.run(bare.time)
		}
		step, floor := ours.perStep(n), bare.perStep(n)
		r.bench(fmt.Sprintf("Engine/op=flow/symbols=%d", o.Symbols), n, time.Duration(step*float64(n)),
			metric{floor, "ladder-ns/op"}, metric{step / floor, "x-ladder"}, metric{allocs, "allocs/op"})
		r.judge(decisionLadder(o.Symbols), step/floor).beside("%.4g ns, ladder %.4g", step, floor)
		r.judge(decisionAllocs, allocs)
	}
	return nil
}

// stageBatch is how many commands the matcher's stage decides before it publishes. It repeats a
// constant that the stage does not export (maxBatch in matcher/stage.go), and must be changed with
// it.
const stageBatch = 256

// runEngine decides a flow on a new engine and closes it. The events go round a ring of the size of
// the default output ring, which no goroutine reads. It runs the last part under timed and returns
// allocations per command.
//
// The allocations are those of the whole process. The figure has two decimals, so the
// few of the measurement itself vanish behind so many commands. A number of fills other than that
// of the flow is an error.
func runEngine(f *flow.Flow, commands []matcher.Command,
	timed func(n int, step func(lo, hi int))) (allocs float64, err error) {
	e, err := matcher.New(flowGenesis(f.Symbols))
	if err != nil {
		return 0, err
	}
	defer e.Close()
	// A running engine has another thread that makes memory resident ahead of the orders: see
	// ring.Frontier.
	ahead := e.Frontier(nil)
	if err := errors.Join(e.MakeResident(), ahead.MakeRoom(1, uint64(len(commands)))); err != nil {
		return 0, err
	}
	const slots = 1 << 17
	out := &matcher.Outlet{Slots: make([]matcher.Event, slots), Mask: slots - 1, Limit: 1 << 62}
	e.ApplyBatch(commands[:f.Prefill], out)
	rest := commands[f.Prefill:]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	timed(len(rest), func(lo, hi int) {
		for ; lo < hi; lo += stageBatch {
			e.ApplyBatch(rest[lo:min(lo+stageBatch, hi)], out)
		}
	})
	runtime.ReadMemStats(&after)
	if got := e.TradeSeq(); got != 2*f.Result.Trades {
		return 0, fmt.Errorf("engine made %d fills, want %d", got, 2*f.Result.Trades)
	}
	mallocs := float64(after.Mallocs-before.Mallocs) / float64(len(rest))
	return math.Round(mallocs*100) / 100, nil
}
