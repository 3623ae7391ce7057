package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/matcher"
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
			MaxConcentrationNotional: 1 << 60, CreditLimit: 1 << 61, PriceMaxAgeMillis: 30_000, PriceCollarBps: 5000,
			IdempotencyCapacity: 64, MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8,
			MaxOpenOrders: 1 << 12, RetainedOrders: 1 << 8,
		},
		Accounts: []matcher.GenesisAccount{{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3}, {ID: 0, Enabled: true}},
		Securities: []matcher.GenesisSecurity{
			{Ticker: "AAPL", Enabled: true}, {Ticker: "MSFT", Enabled: true, Halted: true}, {Ticker: "NVDA"}, {Ticker: "A", Enabled: true},
		},
	}
}

func newTestGate(t testing.TB) *Gate {
	t.Helper()
	g := testGenesis()
	out := New(g.Limits.MaxAccounts, g.Limits.MaxSecurities)
	if err := out.Load(g); err != nil {
		t.Fatal(err)
	}
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
			x := matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: -5, Effective: 20_000, Maturity: 21_000}
			for _, change := range changes {
				change(&x)
			}
			*c = x.Command()
		}
	}
	option := func(x *matcher.ContractTerms) { x.Swaption, x.Expiry, x.Style = true, 20_000, matcher.American }
	const trade, replace = matcher.TradeNew, matcher.OrderReplace

	// AAPL (1) last traded at 100 at noon; A (4) never; 5 is registered only; 6 is restricted.
	tests := []struct {
		name  string
		edits []edit
		want  matcher.RiskReason
	}{
		{"limit order", nil, matcher.Accepted}, {"sell", []edit{side(matcher.Sell)}, matcher.Accepted},
		{"account 0", []edit{account(0)}, matcher.Accepted}, {"market order", []edit{limit(0)}, matcher.Accepted},
		{"negative limit is market", []edit{limit(-1)}, matcher.Accepted}, {"market trade", []edit{kind(trade), limit(0)}, matcher.Accepted},
		{"replace", []edit{kind(replace)}, matcher.Accepted}, {"replace post-only", []edit{kind(replace), flags(matcher.FlagPostOnly)}, matcher.Accepted},
		{"IOC", []edit{flags(matcher.FlagIOC)}, matcher.Accepted}, {"FOK market", []edit{limit(0), flags(matcher.FlagFOK)}, matcher.Accepted},
		{"shadow", []edit{flags(matcher.FlagShadow | matcher.FlagIOC)}, matcher.Accepted}, {"post-only", []edit{flags(matcher.FlagPostOnly)}, matcher.Accepted},
		{"cancel of anything", []edit{kind(matcher.OrderCancel), account(99), security(99)}, matcher.Accepted},
		{"tick", []edit{kind(matcher.PriceTick), account(99)}, matcher.Accepted},
		{"swap", []edit{booking()}, matcher.Accepted}, {"swaption", []edit{booking(option)}, matcher.Accepted},
		{"swap in a security that is halted, far from any price", []edit{booking(), limit(1), security(2)}, matcher.Accepted},
		{"largest notional of a swap", []edit{booking(), qty(50_000)}, matcher.Accepted},
		{"shadow swap", []edit{booking(), flags(matcher.FlagShadow)}, matcher.Accepted},
		{"swap of nobody", []edit{booking(), account(99), qty(0)}, matcher.UnknownAccount},
		{"swaption of a disabled account", []edit{booking(option), account(3), qty(0)}, matcher.AccountDisabled},
		{"swap without a rate", []edit{booking(), limit(0)}, matcher.Invalid}, {"swap of nothing", []edit{booking(), qty(0)}, matcher.Invalid},
		{"swap under an unknown convention", []edit{booking(), security(5)}, matcher.Invalid},
		{"swap that ends at once", []edit{booking(func(x *matcher.ContractTerms) { x.Maturity = x.Effective })}, matcher.Invalid},
		{"swaption after its swap", []edit{booking(option, func(x *matcher.ContractTerms) { x.Expiry = 20_001 })}, matcher.Invalid},
		{"swaption in an unknown style", []edit{booking(option, func(x *matcher.ContractTerms) { x.Style = 3 })}, matcher.Invalid},
		{"swap or cancel", []edit{booking(), flags(matcher.FlagIOC)}, matcher.Invalid},
		{"swap, terms before notional", []edit{booking(), limit(0), qty(50_001)}, matcher.Invalid},
		{"swap's notional", []edit{booking(), qty(50_001)}, matcher.OrderNotional},
		{"swap's whole notional", []edit{booking(), qty(math.MaxInt32)}, matcher.OrderNotional},

		{"another template", []edit{func(c *matcher.Command) { *c = matcher.NewSymbolRegister("X") }}, matcher.Accepted},

		{"unknown account", []edit{account(99)}, matcher.UnknownAccount}, {"largest account", []edit{account(math.MaxUint32)}, matcher.UnknownAccount},
		{"disabled account", []edit{account(3)}, matcher.AccountDisabled},
		{"account before security", []edit{account(99), security(99)}, matcher.UnknownAccount},
		{"security 0", []edit{security(0)}, matcher.UnknownSecurity}, {"security 7, no ticker", []edit{security(7)}, matcher.UnknownSecurity},
		{"security beyond the table", []edit{security(9)}, matcher.UnknownSecurity}, {"largest security", []edit{security(math.MaxUint32)}, matcher.UnknownSecurity},
		{"registered, no control yet", []edit{security(5)}, matcher.UnknownSecurity},
		{"halted", []edit{security(2)}, matcher.SecurityDisabled}, {"disabled", []edit{security(3)}, matcher.SecurityDisabled},
		{"restricted", []edit{security(6)}, matcher.Restricted}, {"security before quantity", []edit{security(2), qty(0)}, matcher.SecurityDisabled},
		{"quantity 0", []edit{qty(0)}, matcher.Invalid}, {"quantity negative", []edit{qty(-5)}, matcher.Invalid}, {"side 2", []edit{side(2)}, matcher.Invalid},
		{"off the grid", []edit{limit(100*unit + 1)}, matcher.Invalid}, {"IOC and FOK", []edit{flags(matcher.FlagIOC | matcher.FlagFOK)}, matcher.Invalid},
		{"IOC and post-only", []edit{flags(matcher.FlagIOC | matcher.FlagPostOnly)}, matcher.Invalid},
		{"market post-only", []edit{limit(0), flags(matcher.FlagPostOnly)}, matcher.Invalid},
		{"replace without limit", []edit{kind(replace), limit(0)}, matcher.Invalid}, {"replace IOC", []edit{kind(replace), flags(matcher.FlagIOC)}, matcher.Invalid},
		{"market trade of 0", []edit{kind(trade), qty(0)}, matcher.Invalid}, {"grid before size", []edit{limit(unit/1000 + 1), qty(1001)}, matcher.Invalid},
		{"largest size", []edit{qty(500)}, matcher.Accepted}, {"too large", []edit{qty(1001)}, matcher.OrderSize}, {"size before collar", []edit{qty(1001), limit(unit)}, matcher.OrderSize},
		{"market trade too large", []edit{kind(trade), qty(1001)}, matcher.OrderSize}, {"replace too large", []edit{kind(replace), qty(1001)}, matcher.OrderSize},
		{"edge of the collar, above", []edit{limit(150 * unit)}, matcher.Accepted}, {"edge of the collar, below", []edit{limit(50 * unit)}, matcher.Accepted},
		{"over the collar", []edit{limit(150*unit + 1000)}, matcher.PriceCollar}, {"under the collar", []edit{limit(50*unit - 1000)}, matcher.PriceCollar},
		{"collar of a stale price", []edit{limit(151 * unit), at(noon + 1e9)}, matcher.PriceCollar}, {"replace over the collar", []edit{kind(replace), limit(151 * unit)}, matcher.PriceCollar},
		{"collar before notional", []edit{limit(math.MaxInt64 / 1000 * 1000)}, matcher.PriceCollar},
		{"no collar without a price", []edit{security(4), limit(5000 * unit)}, matcher.Accepted},
		{"market at the oldest price", []edit{limit(0), at(noon + 30_000)}, matcher.Accepted}, {"market, stale", []edit{limit(0), at(noon + 30_001)}, matcher.PriceStale},
		{"market before the price", []edit{limit(0), at(0)}, matcher.Accepted}, {"market at the end of time", []edit{limit(0), at(math.MaxInt64)}, matcher.PriceStale},
		{"market at its beginning", []edit{limit(0), at(math.MinInt64)}, matcher.Accepted}, {"market trade, stale", []edit{kind(trade), at(noon + 30_001)}, matcher.PriceStale},
		{"market without a price", []edit{security(4), limit(0)}, matcher.Accepted}, {"market trade without a price", []edit{security(4), kind(trade)}, matcher.PriceMissing},
		{"largest notional", []edit{qty(500)}, matcher.Accepted}, {"notional", []edit{qty(501)}, matcher.OrderNotional}, {"market notional", []edit{qty(501), limit(0)}, matcher.OrderNotional},
		{"market trade notional", []edit{qty(501), kind(trade)}, matcher.OrderNotional}, {"replace notional", []edit{qty(501), kind(replace)}, matcher.OrderNotional},
		{"notional past 64 bits", []edit{security(4), qty(1000), limit(math.MaxInt64 / 1000 * 1000)}, matcher.OrderNotional},
	}
	g := newTestGate(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(g.SetPrice(1, 100*unit, noon))
	must(g.Register(5, "NEW"))
	must(g.SetSecurity(6, "RSTR", true, false, 1))
	must(g.SetRestricted(6, true, 2))
	var want [matcher.ReasonCount]uint64
	for _, tt := range tests {
		c := order()
		for _, e := range tt.edits {
			e(&c)
		}
		if got := g.Screen(&c); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
		if tt.want != matcher.Accepted {
			want[tt.want]++
		}
	}
	g.SetPolicy(1, true, 0, 0)
	for _, kind := range []matcher.CommandType{matcher.OrderNew, trade, replace} {
		c := order()
		c.Type, c.AccountID = kind, 99
		if got := g.Screen(&c); got != matcher.KillSwitch {
			t.Errorf("type %d under the kill switch: got %v", kind, got)
		}
		want[matcher.KillSwitch]++
	}
	g.CountRefusal(matcher.ControlStateStale)
	g.CountRefusal(matcher.ReasonCount) // no reason: not counted
	want[matcher.ControlStateStale]++
	if got := g.Refusals(); got != want {
		t.Errorf("refusals: got %v, want %v", got, want)
	}
}

func TestTickIsTheGrid(t *testing.T) {
	g := newTestGate(t)
	if err := g.SetTick(250_000); err != nil {
		t.Fatal(err)
	}
	c := order()
	for px, want := range map[int64]matcher.RiskReason{100_250_000: matcher.Accepted, 100_001_000: matcher.Invalid} {
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
	if err := errors.Join(g.SetLimits(l), g.SetPrice(1, unit, noon)); err != nil {
		t.Fatal(err)
	}
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
	if _, ok := g.Security([]byte("AAPL")); ok || g.Ticker(1) != "" || g.Ticker(0) != "" || g.Ticker(9) != "" {
		t.Error("a security in an empty gate")
	}
}

func TestTickersAreOnlyAdded(t *testing.T) {
	g := New(4, 300)
	for id := uint32(1); id <= 300; id++ {
		name := fmt.Sprintf("T%d", id)
		if _, ok := g.Security([]byte(name)); ok {
			t.Fatalf("%s before it was registered", name)
		}
		if err := g.Register(id, name); err != nil {
			t.Fatal(err)
		}
		if err := g.Register(id, name); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	for id := uint32(1); id <= 300; id++ {
		name := fmt.Sprintf("T%d", id)
		if got, ok := g.Security([]byte(name)); !ok || got != id || g.Ticker(id) != name {
			t.Errorf("%s: got %d, %v, %q", name, got, ok, g.Ticker(id))
		}
	}
	// These two have one 32-bit hash.
	if hashTicker("altarage") != hashTicker("zinke") {
		t.Error("the hash has changed: find another colliding pair")
	}
	pair := New(1, 2)
	if err := errors.Join(pair.Register(1, "altarage"), pair.Register(2, "zinke")); err != nil {
		t.Error(err)
	}
	for id, name := range []string{1: "altarage", 2: "zinke"} {
		if got, ok := pair.Security([]byte(name)); ok != (id > 0) || got != uint32(id) {
			t.Errorf("%q: got %d, %v, want %d", name, got, ok, id)
		}
	}
	long := string(make([]byte, matcher.MaxTicker+1))
	for _, tt := range []struct {
		id     uint32
		ticker string
		want   error
	}{{0, "X", ErrSecurity}, {301, "X", ErrSecurity}, {math.MaxUint32, "X", ErrSecurity}, {1, "X", ErrTicker}, {2, "T1", ErrTicker}, {1, "", ErrTicker}, {1, long, ErrTicker}} {
		if err := g.Register(tt.id, tt.ticker); !errors.Is(err, tt.want) {
			t.Errorf("register %d %q: got %v, want %v", tt.id, tt.ticker, err, tt.want)
		}
	}
	for _, name := range []string{"", "t1", "T", "T1 ", "T301", long} {
		if id, ok := g.Security([]byte(name)); ok {
			t.Errorf("%q is security %d", name, id)
		}
	}
}

func TestWritersRefuse(t *testing.T) {
	g := newTestGate(t)
	for id := uint32(10); id < 14; id++ {
		if err := g.SetAccount(id, true, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.SetAccount(14, true, 1); !errors.Is(err, ErrCapacity) {
		t.Errorf("a ninth account: got %v, want %v", err, ErrCapacity)
	}
	if err := g.SetAccount(13, false, 2); err != nil {
		t.Errorf("a known one: %v", err)
	}
	if g.AccountKnown(14) || !g.AccountKnown(13) {
		t.Error("the refused account is known, or the disabled one is not")
	}
	for _, id := range []uint32{0, 5, 9, math.MaxUint32} {
		for name, err := range map[string]error{
			"security": g.SetSecurity(id, "", true, false, 1), "restricted": g.SetRestricted(id, true, 1), "price": g.SetPrice(id, 1, 1),
		} {
			if !errors.Is(err, ErrSecurity) {
				t.Errorf("set %s of %d: got %v, want %v", name, id, err, ErrSecurity)
			}
		}
		if _, _, ok := g.Price(id); ok {
			t.Errorf("security %d has a price", id)
		}
	}
	if err := g.SetSecurity(1, "MSFT", true, false, 1); !errors.Is(err, ErrTicker) {
		t.Errorf("another's ticker: got %v, want %v", err, ErrTicker)
	}
	bad := testGenesis()
	bad.Limits.PriceCollarBps = -1
	if err := g.Load(bad); !errors.Is(err, ErrLimit) {
		t.Errorf("negative limit: got %v, want %v", err, ErrLimit)
	}
	bad = testGenesis()
	bad.TickPx = -1
	if err := g.Load(bad); !errors.Is(err, ErrLimit) {
		t.Errorf("negative tick: got %v, want %v", err, ErrLimit)
	}
	bad = testGenesis()
	bad.Securities[0].Ticker = "MSFT"
	if err := g.Load(bad); !errors.Is(err, ErrTicker) {
		t.Errorf("another universe: got %v, want %v", err, ErrTicker)
	}
	bad = testGenesis()
	bad.Accounts[0].ID = 77
	if err := g.Load(bad); !errors.Is(err, ErrCapacity) {
		t.Errorf("too many accounts: got %v, want %v", err, ErrCapacity)
	}
}

func TestReadyNeedsEverySource(t *testing.T) {
	g := newTestGate(t)
	set := func(name string, state SourceState, reason string) {
		t.Helper()
		if err := g.SetSource(name, state, 7, 100, 120, reason); err != nil {
			t.Fatal(err)
		}
	}
	steps := []struct {
		name  string
		state SourceState
		want  bool
	}{
		{AccountSource, Ready, false}, {SecuritySource, Installed, false}, {SecuritySource, Ready, true},
		{AccountSource, Quarantined, false}, {SecuritySource, Quarantined, false}, {AccountSource, Ready, false},
		{SecuritySource, Bootstrapping, false}, {SecuritySource, Ready, true},
	}
	for i, s := range steps {
		reason := ""
		if s.state == Quarantined {
			reason = "gap"
		}
		if set(s.name, s.state, reason); g.Ready() != s.want {
			t.Errorf("step %d, %s is %v: ready %v, want %v", i, s.name, s.state, g.Ready(), s.want)
		}
	}
	want := []Source{{AccountSource, Ready, 7, 100, 120, "gap"}, {SecuritySource, Ready, 7, 100, 120, "gap"}}
	if got := g.Snapshot().Sources; !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, bad := range []error{g.SetSource("accounts", Ready, 0, 0, 0, ""), g.SetSource(AccountSource, Quarantined+1, 0, 0, 0, "")} {
		if !errors.Is(bad, ErrSource) {
			t.Errorf("got %v, want %v", bad, ErrSource)
		}
	}
	seeds := newTestGate(t)
	if seeds.SetReady(); !seeds.Ready() {
		t.Error("seeds alone are not ready")
	}
	if got := fmt.Sprint(Bootstrapping, Installed, Ready, Quarantined, SourceState(9)); got != "bootstrapping installed ready quarantined unknown" {
		t.Errorf("states are named %s", got)
	}
}

func TestSnapshotShape(t *testing.T) {
	g := New(4, 4)
	err := errors.Join(g.SetAccount(22, true, 5), g.SetAccount(7, false, 6), g.SetSecurity(1, "MSFT", true, false, 3),
		g.SetSecurity(2, "AAPL", true, true, 4), g.SetRestricted(2, true, 9), g.SetSource(AccountSource, Ready, 1, 6, 6, ""))
	if err != nil {
		t.Fatal(err)
	}
	g.SetPolicy(11, true, 0, 0)
	got, err := json.Marshal(g.Snapshot())
	want := `{"ready":false,"killSwitch":true,"policyVersion":11,"sources":[` +
		`{"source":"account","state":"ready","epoch":1,"watermark":6,"highWatermark":6,"lastReason":""},` +
		`{"source":"security","state":"bootstrapping","epoch":0,"watermark":0,"highWatermark":0,"lastReason":""}],` +
		`"accounts":[{"id":7,"enabled":false,"version":6},{"id":22,"enabled":true,"version":5}],` +
		`"securities":[{"ticker":"AAPL","enabled":true,"halted":true,"restricted":true,"version":9},` +
		`{"ticker":"MSFT","enabled":true,"halted":false,"restricted":false,"version":3}]}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}

// event states a command as the engine does.
func event(kind matcher.EventKind, seq uint64, c matcher.Command) *matcher.Event {
	ev := &matcher.Event{Kind: kind, Flags: matcher.EventFirst | matcher.EventLast, InputSeq: seq,
		TimeMillis: c.EventTimeMillis, SecurityID: c.SecurityID, AccountID: c.AccountID, Side: c.Side, Qty: c.Qty}
	*ev.Cmd() = c
	return ev
}

func tick(security uint32, px, time int64) matcher.Command {
	c := matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, c.PriceTicks, c.EventTimeMillis = security, px, time
	return c
}

func TestObservedPriceNeverGoesBack(t *testing.T) {
	g := newTestGate(t)
	expect := func(name string, px, time int64) {
		t.Helper()
		if gotPx, gotTime, ok := g.Price(1); !ok || gotPx != px || gotTime != time {
			t.Errorf("%s: got %d at %d, %v, want %d at %d", name, gotPx, gotTime, ok, px, time)
		}
	}
	fill := func(seq uint64, px, time int64, flags uint16) {
		g.Observe(&matcher.Event{Kind: matcher.EventFilled, InputSeq: seq, Px: px, TimeMillis: time, SecurityID: 1, Flags: flags})
	}
	if _, _, ok := g.Price(1); ok {
		t.Error("a price before any")
	}
	if err := errors.Join(g.SetPrice(1, 5, 50), g.SetPrice(1, 6, 40), g.SetPrice(1, 0, 90)); err != nil {
		t.Fatal(err)
	}
	expect("restored", 6, 40)
	g.Observe(event(matcher.EventApplied, 10, tick(1, 100, 1000)))
	expect("tick", 100, 1000)
	if err := g.SetPrice(1, 7, 2000); err != nil {
		t.Fatal(err)
	}
	expect("a restored price after an event's", 100, 1000)
	fill(11, 101, 900, matcher.EventAggressor)
	expect("a later command with an earlier time", 101, 900)
	fill(11, 102, 900, matcher.EventAggressor)
	expect("the same command's next level", 102, 900)
	fill(11, 999, 900, 0)
	expect("the resting side", 102, 900)
	fill(10, 103, 5000, matcher.EventAggressor)
	g.Observe(event(matcher.EventApplied, 9, tick(1, 104, 6000)))
	expect("older commands", 102, 900)
	fill(12, 105, 1, matcher.EventMarket)
	expect("market trade", 105, 1)
	fill(13, 106, 2, matcher.EventForced)
	expect("force fill", 106, 2)
	g.Observe(event(matcher.EventRejected, 14, tick(1, 107, 3)))
	g.Observe(event(matcher.EventAccepted, 15, order()))
	g.Observe(&matcher.Event{Kind: matcher.EventApplied, InputSeq: 16, SecurityID: 1})
	expect("what is no price", 106, 2)
	if g.Missed() != 0 {
		t.Errorf("%d events missed", g.Missed())
	}
	g.Observe(&matcher.Event{Kind: matcher.EventFilled, InputSeq: 17, Px: 1, SecurityID: 99, Flags: matcher.EventMarket})
	if g.Missed() != 1 {
		t.Errorf("%d events missed, want 1", g.Missed())
	}
}

func TestObservedControls(t *testing.T) {
	g := newTestGate(t)
	control := func(k matcher.CommandType, id uint32, side matcher.Side, version int64) matcher.Command {
		c := matcher.NewCommand(k)
		c.AccountID, c.SecurityID, c.Side, c.PriceTicks = id, id, side, version
		return c
	}
	symbol := event(matcher.EventApplied, 1, matcher.NewSymbolRegister("TSLA"))
	symbol.SecurityID = 5
	policy := control(matcher.PolicyControl, 0, 1, 40)
	policy.Qty, policy.LimitPx = 12, 34
	for i, ev := range []*matcher.Event{
		symbol,
		event(matcher.EventApplied, 2, control(matcher.SecurityControl, 5, matcher.SecurityEnabled, 21)),
		event(matcher.EventApplied, 3, control(matcher.AccountControl, 3, 1, 22)),
		event(matcher.EventApplied, 4, control(matcher.AccountControl, 50, 1, 23)),
		event(matcher.EventApplied, 5, control(matcher.AccountControl, 1, 0, 24)),
		event(matcher.EventApplied, 6, control(matcher.RestrictionControl, 1, 1, 25)),
		event(matcher.EventApplied, 7, control(matcher.RestrictionControl, 4, 1, 26)),
		event(matcher.EventApplied, 8, control(matcher.RestrictionControl, 4, 0, 27)),
		event(matcher.EventApplied, 9, policy),
		event(matcher.EventApplied, 8, control(matcher.AccountControl, 50, 0, 99)), // older
		event(matcher.EventRejected, 10, control(matcher.AccountControl, 50, 0, 99)),
		event(matcher.EventApplied, 11, matcher.NewCommand(matcher.SnapshotMark)),
		event(matcher.EventApplied, 12, matcher.NewRiskExtract(20000, 1)),
	} {
		if g.Observe(ev); g.Missed() != 0 {
			t.Fatalf("event %d did not fit", i)
		}
	}
	got := g.Snapshot()
	wantAccounts := []AccountControl{{0, true, 0}, {1, false, 24}, {2, true, 0}, {3, true, 22}, {50, true, 23}}
	wantSecurities := []SecurityControl{{4, "A", true, false, false, 27}, {1, "AAPL", true, false, true, 25}, {2, "MSFT", true, true, false, 0},
		{3, "NVDA", false, false, false, 0}, {5, "TSLA", true, false, false, 21}}
	if !slices.Equal(got.Accounts, wantAccounts) || !slices.Equal(got.Securities, wantSecurities) || !got.KillSwitch || got.PolicyVersion != 40 {
		t.Errorf("got %+v", got)
	}
	if g.policy.maxPosition.Load() != 12 || g.policy.maxConcentration.Load() != 34 {
		t.Error("policy limits were not taken over")
	}
	bad := event(matcher.EventApplied, 13, matcher.NewSymbolRegister("bad"))
	bad.SecurityID = 1
	g.Observe(bad)
	broken := event(matcher.EventApplied, 14, matcher.NewSymbolRegister(""))
	broken.SecurityID = 6
	g.Observe(broken)
	g.Observe(event(matcher.EventApplied, 15, control(matcher.SecurityControl, 7, 0, 0)))
	if g.Missed() != 3 {
		t.Errorf("%d events missed, want 3", g.Missed())
	}
}

// TestGateAgreesWithTheEngine drives gate and engine with one random stream: what
// the gate refuses the engine refuses for the same reason, what the gate lets
// through the engine refuses only for what the gate cannot see, and prices,
// flags and tickers are the same after every command.
func TestGateAgreesWithTheEngine(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	genesis := testGenesis()
	engine, err := matcher.New(genesis)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	g := newTestGate(t)
	var first matcher.Event
	crossesPostOnly := false
	out := matcher.NewOutlet(256, func(events []matcher.Event) {
		for i := range events {
			if events[i].Flags&matcher.EventFirst != 0 {
				first = events[i]
			}
			g.Observe(&events[i])
		}
	})
	var seen, booked [matcher.ReasonCount]int
	now := int64(noon)
	oneIn := func(n int) matcher.Side { // 1 once in n times, else 0
		if random.IntN(n) == 0 {
			return 1
		}
		return 0
	}
	for step := range 60_000 {
		now += int64(random.IntN(8000))
		c := matcher.NewCommand(matcher.OrderNew)
		c.EventTimeMillis = now - int64(random.IntN(3000))
		c.AccountID = []uint32{0, 1, 2, 3, 60, 61, 62}[random.IntN(7)]
		c.SecurityID = uint32(random.IntN(10))
		c.Side = matcher.Side(random.IntN(2))
		c.Qty = int32(1 + random.IntN(40))
		c.LimitPx = int64(90+random.IntN(20)) * unit
		switch random.IntN(20) {
		case 0:
			c.Qty = []int32{0, -1, 1000, 1001, 500, math.MaxInt32}[random.IntN(6)]
		case 1:
			c.LimitPx = []int64{1, 1000, 40 * unit, 200 * unit, math.MaxInt64, math.MaxInt64 / 1000 * 1000}[random.IntN(6)]
		}
		switch random.IntN(12) {
		case 0, 1:
			c.LimitPx = 0
		case 2:
			c.Type = matcher.TradeNew
		case 3:
			c.Flags = uint16(random.IntN(16))
		}
		switch random.IntN(25) {
		case 0:
			c = tick(uint32(random.IntN(10)), int64(random.IntN(200))*unit, c.EventTimeMillis)
		case 1:
			c.Type, c.Side = matcher.AccountControl, 1-oneIn(6)
		case 2:
			c.Type, c.Side = matcher.SecurityControl, 1-oneIn(12)|oneIn(12)<<1
		case 3:
			c.Type, c.Side = matcher.RestrictionControl, oneIn(4)
		case 4:
			c.Type, c.Side, c.Qty, c.LimitPx = matcher.PolicyControl, oneIn(8), 1<<30, 0
		case 5:
			c = matcher.NewSymbolRegister([]string{"AAPL", "X1", "X2", "X3", "X4", "X5"}[random.IntN(6)])
		case 6, 7:
			terms := matcher.ContractTerms{
				AccountID: c.AccountID, Side: c.Side, Notional: int32(random.IntN(56_000)), FixedRate: int64(random.IntN(40)) - 2,
				Effective: uint16(random.IntN(40)), Maturity: uint16(20 + random.IntN(40)), Convention: uint32(random.IntN(6)),
				Swaption: random.IntN(2) == 0, Expiry: uint16(random.IntN(30)), Style: matcher.ExerciseStyle(random.IntN(4)),
			}
			flags := c.Flags
			c = terms.Command()
			c.Flags = flags
		}
		c.PriceTicks = map[bool]int64{true: c.PriceTicks, false: 0}[c.Type == matcher.PriceTick]
		verdict := g.Screen(&c)
		isOrder := c.TemplateID == matcher.TemplateCommand && (c.Type == matcher.OrderNew || c.Type == matcher.TradeNew)
		booking := c.TemplateID == matcher.TemplateCommand && c.Type >= matcher.SwapBook
		postOnly := c.Flags&matcher.FlagPostOnly != 0 && !booking
		engine.Apply(&c, out)
		out.Flush()
		if !isOrder && !booking {
			continue
		}
		reason := first.Reason
		seen[reason]++
		if booking {
			booked[reason]++
		}
		switch {
		case postOnly && reason == matcher.Invalid && verdict != matcher.Invalid:
			crossesPostOnly = true // only the book knows, and it is judged early
		case verdict != matcher.Accepted && reason != verdict:
			t.Fatalf("seed %d step %d: gate says %v, engine %v: %+v", seed, step, verdict, reason, c)
		case verdict == matcher.Accepted:
			switch reason {
			case matcher.Accepted, matcher.CreditLimit, matcher.PositionLimit, matcher.ConcentrationLimit, matcher.Capacity:
			case matcher.PriceMissing, matcher.OrderNotional:
				if c.LimitPx > 0 || c.Type != matcher.OrderNew { // a market order priced by the book
					t.Fatalf("seed %d step %d: gate lets through what the engine refuses for %v: %+v", seed, step, reason, c)
				}
			default:
				t.Fatalf("seed %d step %d: gate lets through what the engine refuses for %v: %+v", seed, step, reason, c)
			}
		}
	}
	if g.Missed() != 0 {
		t.Errorf("%d events did not fit the gate", g.Missed())
	}
	for id := uint32(1); id <= 8; id++ {
		name := engine.Ticker(id)
		if g.Ticker(id) != name {
			t.Errorf("security %d: gate says %q, engine %q", id, g.Ticker(id), name)
		}
	}
	for _, r := range []matcher.RiskReason{matcher.Accepted, matcher.Invalid, matcher.UnknownAccount, matcher.AccountDisabled, matcher.UnknownSecurity,
		matcher.SecurityDisabled, matcher.Restricted, matcher.KillSwitch, matcher.PriceStale, matcher.PriceCollar, matcher.OrderSize, matcher.OrderNotional} {
		if seen[r] == 0 {
			t.Errorf("seed %d: %v never happened; the stream is too tame: %v", seed, r, seen)
		}
	}
	for _, r := range []matcher.RiskReason{matcher.Accepted, matcher.Invalid, matcher.UnknownAccount, matcher.AccountDisabled,
		matcher.KillSwitch, matcher.OrderNotional, matcher.Capacity} {
		if booked[r] == 0 {
			t.Errorf("seed %d: no booking with %v; the stream is too tame: %v", seed, r, booked)
		}
	}
	if !crossesPostOnly {
		t.Errorf("seed %d: no post-only order crossed", seed)
	}
}

// TestPriceIsReadWhole: readers race with a writer whose price and time belong together.
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

// TestReadersAndWritersTogether is for the race detector: everything at once.
func TestReadersAndWritersTogether(t *testing.T) {
	g := New(512, 512)
	if err := g.SetLimits(testGenesis().Limits); err != nil {
		t.Fatal(err)
	}
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
					g.Refusals()
				}
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for id := uint32(1); id <= 512; id++ {
				err := errors.Join(g.SetAccount(id-1, id%3 > 0, int64(w)), g.SetSecurity(id, fmt.Sprintf("T%d", id), true, id%5 == 0, 1),
					g.SetRestricted(id, id%7 == 0, 2), g.SetPrice(id, 100*unit, noon), g.SetSource(AccountSource, SourceState(id%4), 1, 2, 3, ""))
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
	if err := g.SetPrice(1, 100*unit, noon); err != nil {
		t.Fatal(err)
	}
	good, bad, name := order(), order(), []byte("AAPL")
	terms := matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: -5, Maturity: 1, Swaption: true}
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
		if err := errors.Join(g.SetAccount(id, true, 1), g.SetSecurity(id, fmt.Sprintf("TICK%d", id), true, false, 1), g.SetPrice(id, 100*unit, noon)); err != nil {
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
	screen("spread", func(c *matcher.Command, i uint32) { c.AccountID, c.SecurityID = 1+i, 1+(i*31)%4096 })
	screen("market", func(c *matcher.Command, i uint32) { c.AccountID, c.SecurityID, c.LimitPx = 1+i, 1+i, 0 })
	screen("refused", func(c *matcher.Command, i uint32) { c.AccountID = 1<<20 + i })
	b.Run("op=ticker", func(b *testing.B) {
		name := []byte("TICK2048")
		for b.Loop() {
			g.Security(name)
		}
	})
	b.Run("op=observe/event=fill", func(b *testing.B) {
		ev := &matcher.Event{Kind: matcher.EventFilled, Flags: matcher.EventAggressor, SecurityID: 7, Px: 100 * unit, TimeMillis: noon, InputSeq: 1}
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

// Who brings a price does not wait for a Snapshot, or for another writer of the image.
func TestPricesDoNotWaitForTheImage(t *testing.T) {
	g := newTestGate(t)
	fill := matcher.Event{Kind: matcher.EventFilled, InputSeq: 1, Px: 5 * unit, TimeMillis: noon, SecurityID: 1, Flags: matcher.EventAggressor}
	g.writers.mu.Lock() // somebody copies the image
	done := make(chan struct{})
	go func() {
		g.Observe(&fill)
		close(done)
	}()
	waits := true
	for range 20_000_000 {
		select {
		case <-done:
			waits = false
		default:
			runtime.Gosched()
			continue
		}
		break
	}
	g.writers.mu.Unlock()
	<-done
	if px, at, ok := g.Price(1); waits || px != 5*unit || at != noon || !ok {
		t.Errorf("waited %v, price %d at %d, %v", waits, px, at, ok)
	}
}
