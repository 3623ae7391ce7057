package blotter

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"posttrade/matcher"
)

// benchGenesis has the default limits, without memory that no benchmark touches.
func benchGenesis() *matcher.Genesis {
	g := smallGenesis()
	g.Accounts = nil
	for id := range uint32(100) {
		g.Accounts = append(g.Accounts, matcher.GenesisAccount{ID: 22_000 + id, Enabled: true})
	}
	g.Securities = nil
	for id := range 500 {
		g.Securities = append(g.Securities,
			matcher.GenesisSecurity{Ticker: fmt.Sprintf("S%d", id), Enabled: true})
	}
	l := &g.Limits
	l.MaxOrderQty, l.MaxPositionQty = 1_000_000, 1<<40
	l.MaxAccounts, l.MaxSecurities = 4096, 4096
	l.MaxOpenOrders, l.RetainedOrders, l.IdempotencyCapacity = 1<<20, 1<<16, 1<<16
	return g
}

// stream is a prepared list of events: resting orders first, then rounds that
// leave as many orders open as they found.
type stream struct {
	fill, round []matcher.Event
	commands    int // of a round
}

// streamOf fills the book of some securities with open orders, then makes a round.
func streamOf(tb testing.TB, g *matcher.Genesis, securities, open, commands int,
	kind string) stream {
	s := newSource(tb, g, 71)
	var out stream
	to := &out.fill
	apply := func(c matcher.Command) []matcher.Event {
		s.time++
		c.EventTimeMillis = s.time
		events := s.apply(c)
		*to = append(*to, events...)
		return events
	}
	var live []matcher.Command
	passive := func(keyed bool) {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID = 22_000+s.rng.Uint32N(100), 1+s.rng.Uint32N(uint32(securities))
		c.Side, c.Qty = matcher.Side(s.rng.IntN(2)), 10
		away := s.rng.Int64N(50) * (1 + s.rng.Int64N(8))
		c.LimitPx = 1000 * (100_000 - 1 - away)
		if c.Side == matcher.Sell {
			c.LimitPx = 1000 * (100_000 + 1 + away)
		}
		if keyed {
			c.PriceTicks = s.rng.Int64()
		}
		c.OrderRef = 0
		c.OrderRef = apply(c)[0].OrderRef
		live = append(live, c)
	}
	cancel := func() {
		i := s.rng.IntN(len(live))
		c := matcher.NewCommand(matcher.OrderCancel)
		c.AccountID, c.OrderRef = live[i].AccountID, live[i].OrderRef
		apply(c)
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	for range open {
		passive(false)
	}
	to = &out.round
	for n := 0; n < commands; n++ {
		switch {
		case kind == "passive" || kind == "keyed" || n%2 == 0:
			passive(kind != "passive")
		case kind == "cross":
			c := matcher.NewCommand(matcher.OrderNew)
			c.AccountID, c.SecurityID, c.Qty, c.Flags = 22_000, live[len(live)-1].SecurityID, 10,
				matcher.FlagIOC
			c.Side = live[len(live)-1].Side.Opposite()
			c.LimitPx = live[len(live)-1].LimitPx
			apply(c)
		default:
			cancel()
		}
	}
	out.commands = commands
	return out
}

// prefault touches the memory that so many orders use, because views that have run for a while have
// touched it too.
func prefault(v *Views, orders int) {
	for at := range min(orders, len(v.orders.slots)) {
		v.orders.slots[at].row.Qty = 0
	}
	for at := range v.orders.heads {
		v.orders.heads[at] = 0
	}
	for at := range v.keys.slots {
		v.keys.slots[at].row.Key = 0
	}
	for at := range v.keys.heads {
		v.keys.heads[at] = 0
	}
	for at := range min(orders, len(v.levels.all)) {
		v.levels.all[at].px = 0
	}
	for at := range min(orders/4+1000, len(v.levels.branches.all)) {
		v.levels.branches.all[at].count = 0
	}
	for account := range 100 {
		for security := range uint32(500) {
			v.positions.at(account, security+1).row.qty = 0
		}
	}
	for at := range v.orders.retained {
		v.orders.retained[at] = 0
	}
}

func BenchmarkViews(b *testing.B) {
	id := []byte("client-0123456789")
	for _, kind := range []string{"passive", "keyed", "add-cancel", "cross"} {
		for _, shape := range []struct{ securities, open int }{{1, 100}, {32, 10_000}, {500, 200_000}} {
			b.Run(fmt.Sprintf("op=observe/flow=%s/symbols=%d/open=%d", kind, shape.securities, shape.open),
				func(b *testing.B) {
					g := benchGenesis()
					s := streamOf(b, g, shape.securities, shape.open, 50_000, kind)
					best, took, laps := time.Hour, time.Duration(0), 0
					for b.Loop() {
						v := newTestViews(b, g)
						prefault(v, shape.open+s.commands)
						for i := range s.fill {
							v.Observe(&s.fill[i], id)
						}
						start := time.Now()
						for i := range s.round {
							v.Observe(&s.round[i], id)
						}
						lap := time.Since(start)
						best, took, laps = min(best, lap), took+lap, laps+1
						if err := v.Close(); err != nil {
							b.Fatal(err)
						}
					}
					commands := float64(s.commands)
					b.ReportMetric(float64(took.Nanoseconds())/commands/float64(laps), "ns/command")
					b.ReportMetric(float64(best.Nanoseconds())/commands, "best-ns/command")
					b.ReportMetric(0, "ns/op")
				})
		}
	}
	b.Run("op=flush-idle", func(b *testing.B) {
		v := newTestViews(b, smallGenesis())
		for b.Loop() {
			v.Flush()
		}
	})
	g := benchGenesis()
	s, v := streamOf(b, g, 32, 100_000, 0, "passive"), newTestViews(b, g)
	for i := range s.fill {
		v.Observe(&s.fill[i], id)
	}
	b.Run("op=order", func(b *testing.B) {
		for ref := uint32(1); b.Loop(); ref = ref%100_000 + 1 {
			v.Order(ref)
		}
	})
	b.Run("op=orders-page/limit=100", func(b *testing.B) {
		var rows []OrderRow
		for after := uint64(0); b.Loop(); {
			rows, after = v.Orders(OrderFilter{Statuses: OpenOrders}, after, 100, rows[:0])
		}
	})
	b.Run("op=depth/levels=20", func(b *testing.B) {
		for b.Loop() {
			v.copyDepth(1, 20)
		}
	})
}

func BenchmarkBlotter(b *testing.B) {
	b.Run("op=append", func(b *testing.B) {
		blotter := newTestBlotter(b, DefaultCapacity)
		fill := fillOf(1)
		for b.Loop() {
			blotter.Append(&fill)
			fill.TradeSeq++
		}
	})
	b.Run("op=page/limit=1000", func(b *testing.B) {
		blotter := newTestBlotter(b, DefaultCapacity)
		appendTo(blotter, 1, DefaultCapacity)
		var items []matcher.Fill
		for since := uint64(0); b.Loop(); {
			items, since, _ = blotter.Page(since, 1000, items[:0])
			since %= DefaultCapacity
		}
	})
}

func TestObserveDoesNotAllocate(t *testing.T) {
	g := smallGenesis()
	s := newSource(t, g, 72)
	var all []matcher.Event
	for range 6000 {
		all = append(all, s.step()...)
	}
	id := []byte("client-0123456789")
	v := newTestViews(t, g)
	n := testing.AllocsPerRun(1, func() {
		if v.current == 0 {
			// The first of the two runs observes the first part, the second the rest. A build with checks
			// looks at everything after 4096 commands and after 8192, which allocates.
			for v.current < 4096 {
				v.Observe(&all[0], id)
				all = all[1:]
			}
			return
		}
		for i := range all {
			v.Observe(&all[i], id)
			v.Flush()
		}
	})
	if n != 0 || v.Applied() != 6000 {
		t.Errorf("observing allocates %v times up to %d, want 0", n, v.Applied())
	}
	contract := v.contracts.rows[0].ID
	if n := testing.AllocsPerRun(100, func() {
		v.Order(s.issued)
		v.Key(matcher.KeyOrder, 7, 5)
		v.Position(7, 1)
		v.Account(7)
		v.Contract(contract)
	}); n != 0 {
		t.Errorf("reading rows allocates %v times, want 0", n)
	}
	contracts := make([]ContractRow, 0, 100)
	if n := testing.AllocsPerRun(100,
		func() { v.Contracts(ContractFilter{}, contract-1, 50, contracts) }); n != 0 || contract == 0 {
		t.Errorf("a page of contracts from %d into enough memory allocates %v times, want 0", contract, n)
	}
	rows := make([]OrderRow, 0, 100)
	f := OrderFilter{Statuses: OpenOrders}
	if n := testing.AllocsPerRun(100, func() { v.Orders(f, uint64(s.issued-50), 50, rows) }); n != 0 {
		t.Errorf("a page of orders into enough memory allocates %v times, want 0", n)
	}
	if !slices.ContainsFunc(all, func(e matcher.Event) bool { return e.Kind == matcher.EventFilled }) {
		t.Error("no fill among the events")
	}
}
