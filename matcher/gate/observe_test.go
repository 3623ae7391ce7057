package gate

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// event states a command as the engine does.
func event(kind matcher.EventKind, seq uint64, c matcher.Command) *matcher.Event {
	ev := &matcher.Event{Kind: kind, Flags: matcher.EventFirst | matcher.EventLast, InputSeq: seq,
		TimeMillis: c.EventTimeMillis, SecurityID: c.SecurityID, AccountID: c.AccountID, Side: c.Side,
		Qty: c.Qty}
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
		g.Observe(&matcher.Event{Kind: matcher.EventFilled, InputSeq: seq, Px: px, TimeMillis: time,
			SecurityID: 1, Flags: flags})
	}
	if _, _, ok := g.Price(1); ok {
		t.Error("a price before any")
	}
	must.OK(t, errors.Join(g.SetPrice(1, 5, 50), g.SetPrice(1, 6, 40),
		g.SetPrice(1, 0, 90)))
	expect("restored", 6, 40)
	g.Observe(event(matcher.EventApplied, 10, tick(1, 100, 1000)))
	expect("tick", 100, 1000)
	must.OK(t, g.SetPrice(1, 7, 2000))
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
	late := event(matcher.EventApplied, 16, tick(1, 108, 1))
	late.Flags |= matcher.EventLate
	g.Observe(late)
	fill(16, 109, 1, matcher.EventAggressor|matcher.EventLate)
	if expect("what came late", 106, 2); g.Late() != 1 {
		t.Errorf("%d late prices counted, want 1: fills are none", g.Late())
	}
	if g.Missed() != 0 {
		t.Errorf("%d events missed", g.Missed())
	}
	g.Observe(&matcher.Event{Kind: matcher.EventFilled, InputSeq: 17, Px: 1, SecurityID: 99,
		Flags: matcher.EventMarket})
	if g.Missed() != 1 {
		t.Errorf("%d events missed, want 1", g.Missed())
	}
}

func TestObservedControls(t *testing.T) {
	g := newTestGate(t)
	control := func(k matcher.CommandType, id uint32, side matcher.Side,
		version int64) matcher.Command {
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
	wantAccounts := []AccountControl{{0, true, 0, false, nil}, {1, false, 24, true, nil},
		{2, true, 0, false, nil}, {3, true, 22, true, nil}, {50, true, 23, true, nil}}
	wantSecurities := []SecurityControl{{4, "A", true, false, false, 27, false},
		{1, "AAPL", true, false, true, 25, false},
		{2, "MSFT", true, true, false, 0, false}, {3, "NVDA", false, false, false, 0, false},
		{5, "TSLA", true, false, false, 21, true}}
	if !slices.Equal(got.Accounts, wantAccounts) || !slices.Equal(got.Securities, wantSecurities) ||
		!got.KillSwitch || got.PolicyVersion != 40 {
		t.Errorf("got %+v", got)
	}
	if all := g.RiskLimits(); all[matcher.LimitPosition] != 12 ||
		all[matcher.LimitConcentration] != 34 {
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
	shown := map[string]float64{}
	g.Collect(func(name, _ string, _ bool, value float64, _ ...string) { shown[name] = value })
	if n, ok := shown["svc_gate_missed_total"]; !ok || n != 3 {
		t.Errorf("metrics %v, want 3 missed", shown)
	}
}

// TestGateAgreesWithTheEngine drives gate and engine with one random stream. What the gate refuses
// the engine refuses for the same reason. What the gate admits the engine refuses only for what the
// gate cannot see. Prices, flags and tickers are the same after every command.
func TestGateAgreesWithTheEngine(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	genesis := testGenesis()
	engine := must.Get(matcher.New(genesis))(t)
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
		if step > 20_000 && random.IntN(100) == 0 {
			for _, part := range randomLimits(random, int64(step)) {
				part.EventTimeMillis = now
				engine.Apply(&part, out)
				out.Flush()
			}
			sameLimits(t, g, engine)
		}
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
			c.LimitPx = []int64{1, 1000, 40 * unit, 200 * unit, math.MaxInt64,
				math.MaxInt64 / 1000 * 1000}[random.IntN(6)]
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
			c.AccountID = min(c.AccountID, 61) // 62 stays unknown
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
				AccountID: c.AccountID, Side: c.Side, Notional: int32(random.IntN(56_000)),
				FixedRate: int64(random.IntN(40)) - 2,
				Effective: uint16(random.IntN(40)), Maturity: uint16(20 + random.IntN(40)),
				Convention: uint32(random.IntN(6)),
				Swaption:   random.IntN(2) == 0, Expiry: uint16(random.IntN(30)),
				Style: matcher.ExerciseStyle(random.IntN(4)),
			}
			flags := c.Flags
			c = terms.Command()
			c.Flags = flags
		}
		switch c.Type {
		case matcher.PriceTick:
		case matcher.PolicyControl:
			c.PriceTicks = int64(step) // it rises
		default:
			c.PriceTicks = 0
		}
		verdict := g.Screen(&c)
		isOrder := c.TemplateID == matcher.TemplateCommand &&
			(c.Type == matcher.OrderNew || c.Type == matcher.TradeNew)
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
			crossesPostOnly = true // only the book shows it, and the engine judges it early
		case verdict != matcher.Accepted && reason != verdict:
			t.Fatalf("seed %d step %d: gate says %v, engine %v: %+v", seed, step, verdict, reason, c)
		case verdict == matcher.Accepted:
			switch reason {
			case matcher.Accepted, matcher.CreditLimit, matcher.PositionLimit, matcher.ConcentrationLimit,
				matcher.Capacity:
			case matcher.PriceMissing, matcher.OrderNotional:
				// The book may price a market order, and the engine judges a sale at the best bid.
				if c.LimitPx > 0 && c.Side == matcher.Buy || c.Type != matcher.OrderNew {
					t.Fatalf("seed %d step %d: gate lets through what the engine refuses for %v: %+v", seed, step,
						reason, c)
				}
			default:
				t.Fatalf("seed %d step %d: gate lets through what the engine refuses for %v: %+v", seed, step,
					reason, c)
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
	for _, r := range []matcher.RiskReason{matcher.Accepted, matcher.Invalid, matcher.UnknownAccount,
		matcher.AccountDisabled, matcher.UnknownSecurity,
		matcher.SecurityDisabled, matcher.Restricted, matcher.KillSwitch, matcher.PriceStale,
		matcher.PriceCollar, matcher.OrderSize, matcher.OrderNotional} {
		if seen[r] == 0 {
			t.Errorf("seed %d: %v never happened; the stream is too tame: %v", seed, r, seen)
		}
	}
	for _, r := range []matcher.RiskReason{matcher.Accepted, matcher.Invalid, matcher.UnknownAccount,
		matcher.AccountDisabled,
		matcher.KillSwitch, matcher.OrderNotional, matcher.Capacity} {
		if booked[r] == 0 {
			t.Errorf("seed %d: no booking with %v; the stream is too tame: %v", seed, r, booked)
		}
	}
	if !crossesPostOnly {
		t.Errorf("seed %d: no post-only order crossed", seed)
	}
}

// A writer of a price does not wait for a Snapshot, or for another writer of the image.
func TestPricesDoNotWaitForTheImage(t *testing.T) {
	g := newTestGate(t)
	fill := matcher.Event{Kind: matcher.EventFilled, InputSeq: 1, Px: 5 * unit, TimeMillis: noon,
		SecurityID: 1, Flags: matcher.EventAggressor}
	g.writers.mu.Lock() // as while Snapshot copies the image
	done := make(chan struct{})
	go func() {
		g.Observe(&fill)
		close(done)
	}()
	waits := false
	select {
	case <-done:
	case <-time.After(waittest.Patience):
		waits = true
	}
	g.writers.mu.Unlock()
	<-done
	if px, at, ok := g.Price(1); waits || px != 5*unit || at != noon || !ok {
		t.Errorf("waited %v, price %d at %d, %v", waits, px, at, ok)
	}
}
