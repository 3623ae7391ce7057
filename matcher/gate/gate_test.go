package gate

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

const (
	unit = 1_000_000
	noon = 1_700_000_000_000
)

func testGenesis() *matcher.Genesis {
	return &matcher.Genesis{
		Format: matcher.GenesisFormat,
		TickPx: 1000,
		Limits: matcher.Limits{
			MaxOrderQty: 1000, MaxOrderNotional: 50_000 * unit, MaxPositionQty: 1 << 40,
			MaxConcentrationNotional: 1 << 60, CreditLimit: 1 << 61, PriceMaxAgeMillis: 30_000,
			PriceCollarBps:      5000,
			IdempotencyCapacity: 64, MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8,
			MaxOpenOrders: 1 << 12, RetainedOrders: 1 << 8,
		},
		Accounts: []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3},
			{ID: 0, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAPL", Enabled: true}, {Ticker: "MSFT", Enabled: true, Halted: true}, {Ticker: "NVDA"},
			{Ticker: "A", Enabled: true},
		},
	}
}

func newTestGate(t testing.TB) *Gate {
	t.Helper()
	g := testGenesis()
	out := New(g.Limits.MaxAccounts, g.Limits.MaxSecurities)
	must.OK(t, out.Load(g))
	return out
}

// order is a BUY of 10 AAPL at 100 by account 1.
func order() matcher.Command {
	c := matcher.NewCommand(matcher.OrderNew)
	c.AccountID, c.SecurityID, c.Qty, c.LimitPx, c.EventTimeMillis = 1, 1, 10, 100*unit, noon
	return c
}

func TestScreenNamesTheFirstReason(t *testing.T) {
	type edit = func(*matcher.Command)
	account := func(id uint32) edit { return func(c *matcher.Command) { c.AccountID = id } }
	security := func(id uint32) edit { return func(c *matcher.Command) { c.SecurityID = id } }
	qty := func(n int32) edit { return func(c *matcher.Command) { c.Qty = n } }
	limit := func(px int64) edit { return func(c *matcher.Command) { c.LimitPx = px } }
	flags := func(f uint16) edit { return func(c *matcher.Command) { c.Flags = f } }
	kind := func(k matcher.CommandType) edit { return func(c *matcher.Command) { c.Type = k } }
	at := func(ms int64) edit { return func(c *matcher.Command) { c.EventTimeMillis = ms } }
	side := func(s matcher.Side) edit { return func(c *matcher.Command) { c.Side = s } }
	type terms = func(*matcher.ContractTerms)
	booking := func(changes ...terms) edit {
		return func(c *matcher.Command) {
			x := matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: -5, Effective: 20_000,
				Maturity: 21_000}
			for _, change := range changes {
				change(&x)
			}
			*c = x.Command()
		}
	}
	option := func(x *matcher.ContractTerms) {
		x.Swaption, x.Expiry, x.Style = true, 20_000, matcher.American
	}
	const trade, replace = matcher.TradeNew, matcher.OrderReplace

	// AAPL (1) last traded at 100 at noon; A (4) never; 5 is registered only; 6 is restricted.
	tests := []struct {
		name  string
		edits []edit
		want  matcher.RiskReason
	}{
		{"limit order", nil, matcher.Accepted}, {"sell", []edit{side(matcher.Sell)}, matcher.Accepted},
		{"account 0", []edit{account(0)}, matcher.Accepted},
		{"market order", []edit{limit(0)}, matcher.Accepted},
		{"negative limit is market", []edit{limit(-1)}, matcher.Accepted},
		{"market trade", []edit{kind(trade), limit(0)}, matcher.Accepted},
		{"replace", []edit{kind(replace)}, matcher.Accepted},
		{"replace post-only", []edit{kind(replace), flags(matcher.FlagPostOnly)}, matcher.Accepted},
		{"IOC", []edit{flags(matcher.FlagIOC)}, matcher.Accepted},
		{"FOK market", []edit{limit(0), flags(matcher.FlagFOK)}, matcher.Accepted},
		{"shadow", []edit{flags(matcher.FlagShadow | matcher.FlagIOC)}, matcher.Accepted},
		{"post-only", []edit{flags(matcher.FlagPostOnly)}, matcher.Accepted},
		{"cancel of anything", []edit{kind(matcher.OrderCancel), account(99), security(99)},
			matcher.Accepted},
		{"tick", []edit{kind(matcher.PriceTick), account(99)}, matcher.Accepted},
		{"swap", []edit{booking()}, matcher.Accepted},
		{"swaption", []edit{booking(option)}, matcher.Accepted},
		{"swap in a security that is halted, far from any price",
			[]edit{booking(), limit(1), security(2)}, matcher.Accepted},
		{"largest notional of a swap", []edit{booking(), qty(50_000)}, matcher.Accepted},
		{"shadow swap", []edit{booking(), flags(matcher.FlagShadow)}, matcher.Accepted},
		{"swap of nobody", []edit{booking(), account(99), qty(0)}, matcher.UnknownAccount},
		{"swaption of a disabled account", []edit{booking(option), account(3), qty(0)},
			matcher.AccountDisabled},
		{"swap without a rate", []edit{booking(), limit(0)}, matcher.Invalid},
		{"swap of nothing", []edit{booking(), qty(0)}, matcher.Invalid},
		{"swap under an unknown convention", []edit{booking(), security(5)}, matcher.Invalid},
		{"swap that ends at once", []edit{booking(func(x *matcher.ContractTerms) {
			x.Maturity = x.Effective
		})}, matcher.Invalid},
		{"swaption after its swap", []edit{booking(option,
			func(x *matcher.ContractTerms) { x.Expiry = 20_001 })}, matcher.Invalid},
		{"swaption in an unknown style", []edit{booking(option,
			func(x *matcher.ContractTerms) { x.Style = 3 })}, matcher.Invalid},
		{"swap or cancel", []edit{booking(), flags(matcher.FlagIOC)}, matcher.Invalid},
		{"swap, terms before notional", []edit{booking(), limit(0), qty(50_001)}, matcher.Invalid},
		{"swap's notional", []edit{booking(), qty(50_001)}, matcher.OrderNotional},
		{"swap's whole notional", []edit{booking(), qty(math.MaxInt32)}, matcher.OrderNotional},

		{"another template", []edit{func(c *matcher.Command) { *c = matcher.NewSymbolRegister("X") }},
			matcher.Accepted},

		{"unknown account", []edit{account(99)}, matcher.UnknownAccount},
		{"largest account", []edit{account(math.MaxUint32)}, matcher.UnknownAccount},
		{"disabled account", []edit{account(3)}, matcher.AccountDisabled},
		{"account before security", []edit{account(99), security(99)}, matcher.UnknownAccount},
		{"security 0", []edit{security(0)}, matcher.UnknownSecurity},
		{"security 7, no ticker", []edit{security(7)}, matcher.UnknownSecurity},
		{"security beyond the table", []edit{security(9)}, matcher.UnknownSecurity},
		{"largest security", []edit{security(math.MaxUint32)}, matcher.UnknownSecurity},
		{"registered, no control yet", []edit{security(5)}, matcher.UnknownSecurity},
		{"halted", []edit{security(2)}, matcher.SecurityDisabled},
		{"disabled", []edit{security(3)}, matcher.SecurityDisabled},
		{"restricted", []edit{security(6)}, matcher.Restricted},
		{"security before quantity", []edit{security(2), qty(0)}, matcher.SecurityDisabled},
		{"quantity 0", []edit{qty(0)}, matcher.Invalid},
		{"quantity negative", []edit{qty(-5)}, matcher.Invalid},
		{"side 2", []edit{side(2)}, matcher.Invalid},
		{"off the grid", []edit{limit(100*unit + 1)}, matcher.Invalid},
		{"IOC and FOK", []edit{flags(matcher.FlagIOC | matcher.FlagFOK)}, matcher.Invalid},
		{"IOC and post-only", []edit{flags(matcher.FlagIOC | matcher.FlagPostOnly)}, matcher.Invalid},
		{"market post-only", []edit{limit(0), flags(matcher.FlagPostOnly)}, matcher.Invalid},
		{"replace without limit", []edit{kind(replace), limit(0)}, matcher.Invalid},
		{"replace IOC", []edit{kind(replace), flags(matcher.FlagIOC)}, matcher.Invalid},
		{"market trade of 0", []edit{kind(trade), qty(0)}, matcher.Invalid},
		{"grid before size", []edit{limit(unit/1000 + 1), qty(1001)}, matcher.Invalid},
		{"largest size", []edit{qty(500)}, matcher.Accepted},
		{"too large", []edit{qty(1001)}, matcher.OrderSize},
		{"size before collar", []edit{qty(1001), limit(unit)}, matcher.OrderSize},
		{"market trade too large", []edit{kind(trade), qty(1001)}, matcher.OrderSize},
		{"replace too large", []edit{kind(replace), qty(1001)}, matcher.OrderSize},
		{"edge of the collar, above", []edit{limit(150 * unit)}, matcher.Accepted},
		{"edge of the collar, below", []edit{limit(50 * unit)}, matcher.Accepted},
		{"over the collar", []edit{limit(150*unit + 1000)}, matcher.PriceCollar},
		{"under the collar", []edit{limit(50*unit - 1000)}, matcher.PriceCollar},
		{"collar of a stale price", []edit{limit(151 * unit), at(noon + 1e9)}, matcher.PriceCollar},
		{"replace over the collar", []edit{kind(replace), limit(151 * unit)}, matcher.PriceCollar},
		{"collar before notional", []edit{limit(math.MaxInt64 / 1000 * 1000)}, matcher.PriceCollar},
		{"no collar without a price", []edit{security(4), limit(5000 * unit)}, matcher.Accepted},
		{"market at the oldest price", []edit{limit(0), at(noon + 30_000)}, matcher.Accepted},
		{"market, stale", []edit{limit(0), at(noon + 30_001)}, matcher.PriceStale},
		{"market before the price", []edit{limit(0), at(0)}, matcher.Accepted},
		{"market at the end of time", []edit{limit(0), at(math.MaxInt64)}, matcher.PriceStale},
		{"market at its beginning", []edit{limit(0), at(math.MinInt64)}, matcher.Accepted},
		{"market trade, stale", []edit{kind(trade), at(noon + 30_001)}, matcher.PriceStale},
		{"market without a price", []edit{security(4), limit(0)}, matcher.Accepted},
		{"market trade without a price", []edit{security(4), kind(trade)}, matcher.PriceMissing},
		{"largest notional", []edit{qty(500)}, matcher.Accepted},
		{"notional", []edit{qty(501)}, matcher.OrderNotional},
		{"market notional", []edit{qty(501), limit(0)}, matcher.OrderNotional},
		{"market trade notional", []edit{qty(501), kind(trade)}, matcher.OrderNotional},
		{"replace notional", []edit{qty(501), kind(replace)}, matcher.OrderNotional},
		{"notional past 64 bits", []edit{security(4), qty(1000), limit(math.MaxInt64 / 1000 * 1000)},
			matcher.OrderNotional},
	}
	g := newTestGate(t)
	must := func(err error) {
		t.Helper()
		must.OK(t, err)
	}
	must(g.SetPrice(1, 100*unit, noon))
	must(g.Register(5, "NEW"))
	must(g.SetSecurity(6, "RSTR", true, false, 1))
	must(g.SetRestricted(6, true, 2))
	for _, tt := range tests {
		c := order()
		for _, e := range tt.edits {
			e(&c)
		}
		if got := g.Screen(&c); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	g.SetPolicy(1, true, 0, 0)
	for _, kind := range []matcher.CommandType{matcher.OrderNew, trade, replace} {
		c := order()
		c.Type, c.AccountID = kind, 99
		if got := g.Screen(&c); got != matcher.KillSwitch {
			t.Errorf("type %d under the kill switch: got %v", kind, got)
		}
	}
}

func TestTickIsTheGrid(t *testing.T) {
	g := newTestGate(t)
	must.OK(t, g.SetTick(250_000))
	c := order()
	for px, want := range map[int64]matcher.RiskReason{100_250_000: matcher.Accepted,
		100_001_000: matcher.Invalid} {
		if c.LimitPx = px; g.Screen(&c) != want {
			t.Errorf("limit %d: got %v, want %v", px, g.Screen(&c), want)
		}
	}
	for _, px := range []int64{0, -1} {
		if err := g.SetTick(px); !errors.Is(err, ErrLimit) {
			t.Errorf("tick %d: got %v, want %v", px, err, ErrLimit)
		}
	}
}

func TestNoCollar(t *testing.T) {
	g, l := newTestGate(t), testGenesis().Limits
	l.PriceCollarBps = 0
	must.OK(t, errors.Join(g.SetLimits(l), g.SetPrice(1, unit, noon)))
	c := order()
	if got := g.Screen(&c); got != matcher.Accepted {
		t.Errorf("got %v", got)
	}
}

func TestEmptyGateLetsNothingIn(t *testing.T) {
	g := New(0, -1)
	c := order()
	if got := g.Screen(&c); got != matcher.UnknownAccount || g.Ready() {
		t.Errorf("got %v, ready %v", got, g.Ready())
	}
	if _, ok := g.Security([]byte("AAPL")); ok || g.Ticker(1) != "" || g.Ticker(0) != "" ||
		g.Ticker(9) != "" {
		t.Error("a security in an empty gate")
	}
}

// TestPriceIsReadWhole: readers race with a writer, and each price they read has its own time.
func TestPriceIsReadWhole(t *testing.T) {
	g := newTestGate(t)
	rounds := int64(300_000)
	if testing.Short() {
		rounds = 30_000
	}
	var done atomic.Bool
	var readers sync.WaitGroup
	var reads, gaps atomic.Int64
	g.Observe(event(matcher.EventApplied, 1, tick(1, 1, 1000)))
	for range 3 {
		readers.Go(func() {
			last := int64(0)
			for !done.Load() {
				px, time, ok := g.Price(1)
				if !ok {
					gaps.Add(1)
					continue
				}
				if time != 1000*px || px < last {
					t.Errorf("price %d has time %d, and came after %d", px, time, last)
					return
				}
				last = px
				reads.Add(1)
			}
		})
	}
	for i := int64(2); i < rounds; i++ {
		g.Observe(event(matcher.EventApplied, uint64(i), tick(1, i, 1000*i)))
	}
	done.Store(true)
	readers.Wait()
	t.Logf("%d reads, %d of a price that moved too fast", reads.Load(), gaps.Load())
}

// TestReadersAndWritersTogether runs all readers and writers at once, for the race detector.
func TestReadersAndWritersTogether(t *testing.T) {
	g := New(512, 512)
	must.OK(t, g.SetLimits(testGenesis().Limits))
	var done atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; !done.Load(); i++ {
				c := order()
				c.AccountID, c.SecurityID = uint32(i%512), uint32(1+i%512)
				r := g.Screen(&c)
				name := fmt.Sprintf("T%d", c.SecurityID)
				id, ok := g.Security([]byte(name))
				if ok && (id != c.SecurityID || g.Ticker(id) != name) {
					t.Errorf("%s is %d, %q", name, id, g.Ticker(id))
				}
				if r == matcher.Accepted && !ok {
					t.Errorf("%s is tradable and has no ticker", name)
				}
				g.Ready()
				if i%64 == 0 {
					g.Snapshot()
				}
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for id := uint32(1); id <= 512; id++ {
				err := errors.Join(g.SetAccount(id-1, id%3 > 0, int64(w)),
					g.SetSecurity(id, fmt.Sprintf("T%d", id), true, id%5 == 0, 1),
					g.SetRestricted(id, id%7 == 0, 2), g.SetPrice(id, 100*unit, noon),
					g.SetSource(AccountSource, SourceState(id%4), 1, 2, 3, ""))
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				g.SetPolicy(int64(id), id%2 == 0, 1, 1)
				g.Observe(event(matcher.EventApplied, uint64(id), tick(id, 100*unit, noon)))
			}
			g.SetReady()
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	if s := g.Snapshot(); len(s.Accounts) != 512 || len(s.Securities) != 512 || !g.Ready() {
		t.Errorf("%d accounts, %d securities, ready %v", len(s.Accounts), len(s.Securities), g.Ready())
	}
}

func TestGateDoesNotAllocate(t *testing.T) {
	g := newTestGate(t)
	must.OK(t, g.SetPrice(1, 100*unit, noon))
	good, bad, name := order(), order(), []byte("AAPL")
	terms := matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: -5, Maturity: 1,
		Swaption: true}
	booking := terms.Command()
	bad.AccountID = 99
	ev := event(matcher.EventApplied, 1, tick(1, 100*unit, noon))
	if n := testing.AllocsPerRun(1000, func() {
		g.Screen(&booking)
		g.Screen(&good)
		g.Screen(&bad)
		g.Ready()
		id, _ := g.Security(name)
		g.Ticker(id)
		g.Price(id)
		g.Observe(ev)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkGate(b *testing.B) {
	g := New(4096, 4096)
	if err := g.SetLimits(testGenesis().Limits); err != nil {
		b.Fatal(err)
	}
	for id := uint32(1); id <= 4096; id++ {
		if err := errors.Join(g.SetAccount(id, true, 1),
			g.SetSecurity(id, fmt.Sprintf("TICK%d", id), true, false, 1),
			g.SetPrice(id, 100*unit, noon)); err != nil {
			b.Fatal(err)
		}
	}
	screen := func(name string, edit func(c *matcher.Command, i uint32)) {
		b.Run("op=screen/order="+name, func(b *testing.B) {
			commands := make([]matcher.Command, 1024)
			for i := range commands {
				commands[i] = order()
				edit(&commands[i], uint32(i)*2654435769>>20)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				g.Screen(&commands[i&1023])
				i++
			}
		})
	}
	screen("one", func(c *matcher.Command, _ uint32) { c.AccountID, c.SecurityID = 7, 7 })
	screen("spread", func(c *matcher.Command, i uint32) {
		c.AccountID, c.SecurityID = 1+i, 1+(i*31)%4096
	})
	screen("market", func(c *matcher.Command, i uint32) {
		c.AccountID, c.SecurityID, c.LimitPx = 1+i, 1+i, 0
	})
	screen("refused", func(c *matcher.Command, i uint32) { c.AccountID = 1<<20 + i })
	b.Run("op=ticker", func(b *testing.B) {
		name := []byte("TICK2048")
		for b.Loop() {
			g.Security(name)
		}
	})
	b.Run("op=observe/event=fill", func(b *testing.B) {
		ev := &matcher.Event{Kind: matcher.EventFilled, Flags: matcher.EventAggressor, SecurityID: 7,
			Px: 100 * unit, TimeMillis: noon, InputSeq: 1}
		for b.Loop() {
			g.Observe(ev)
		}
	})
	b.Run("op=observe/event=accepted", func(b *testing.B) {
		ev := event(matcher.EventAccepted, 1, order())
		for b.Loop() {
			g.Observe(ev)
		}
	})
}
