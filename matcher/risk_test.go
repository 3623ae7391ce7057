package matcher

import (
	"fmt"
	"math"
	"testing"
)

// strict is testGenesis with limits that small numbers reach.
func strict() *Genesis {
	g := testGenesis()
	g.Limits.MaxOrderQty = 100
	g.Limits.MaxOrderNotional = 10_000 * unit
	g.Limits.MaxPositionQty = 150
	g.Limits.MaxConcentrationNotional = 12_000 * unit
	g.Limits.CreditLimit = 15_000 * unit
	g.Limits.MaxOpenOrders = 3
	return g
}

// Each row is admitted up to its last command, which is refused for the reason.
func TestEngineRefusesWithEachReason(t *testing.T) {
	kill := control(PolicyControl, 0, 0, 1)
	inBBB := func(c Command) Command { c.SecurityID = bbb; return c }
	at := func(c Command, security uint32) Command { c.SecurityID = security; return c }
	late := func(c Command, ms int64) Command { c.EventTimeMillis = noon + ms; return c }
	tests := []struct {
		name   string
		before []Command
		last   Command
		want   RiskReason
	}{
		{"gate's verdict", nil, with(buy(1, 1, 100),
			func(c *Command) { c.OrderRef = uint32(NotEntitled) }), NotEntitled},
		{"gate's verdict on a trade", []Command{tick(aaa, 100)},
			with(trade(1, Buy, 1), func(c *Command) { c.OrderRef = uint32(ControlStateStale) }),
			ControlStateStale},
		{"gate's verdict that is none", nil, with(buy(1, 1, 100), func(c *Command) { c.OrderRef = 99 }),
			InternalPolicyError},
		{"gate cannot say duplicate", nil,
			with(buy(1, 1, 100), func(c *Command) { c.OrderRef = uint32(Duplicate) }), InternalPolicyError},
		{"kill switch", []Command{kill}, buy(1, 1, 100), KillSwitch},
		{"unknown account", nil, buy(99, 1, 100), UnknownAccount},
		{"account 0", nil, buy(0, 1, 100), UnknownAccount},
		{"disabled account", nil, buy(4, 1, 100), AccountDisabled},
		{"unknown security", nil, at(buy(1, 1, 100), 6), UnknownSecurity},
		{"security 0", nil, at(buy(1, 1, 100), 0), UnknownSecurity},
		{"security beyond any", nil, at(buy(1, 1, 100), math.MaxUint32), UnknownSecurity},
		{"disabled security", nil, at(buy(1, 1, 100), disabledSecurity), SecurityDisabled},
		{"halted security", nil, at(buy(1, 1, 100), haltedSecurity), SecurityDisabled},
		{"restricted security", []Command{control(RestrictionControl, 0, aaa, 1)}, buy(1, 1, 100),
			Restricted},
		{"disabled before restricted", []Command{
			control(RestrictionControl, 0, aaa, 1), control(SecurityControl, 0, aaa, 0),
		}, buy(1, 1, 100), SecurityDisabled},
		{"no quantity", nil, buy(1, 0, 100), Invalid},
		{"negative quantity", nil, buy(1, math.MinInt32, 100), Invalid},
		{"no side", nil, with(buy(1, 1, 100), func(c *Command) { c.Side = 2 }), Invalid},
		{"off the grid", nil, with(buy(1, 1, 100), func(c *Command) { c.LimitPx += 500 }), Invalid},
		{"two times in force", nil, flags(buy(1, 1, 100), FlagIOC|FlagFOK), Invalid},
		{"post only and immediate", nil, flags(buy(1, 1, 100), FlagIOC|FlagPostOnly), Invalid},
		{"market and post only", []Command{tick(aaa, 100)}, flags(market(1, Buy, 1), FlagPostOnly),
			Invalid},
		{"order size", nil, buy(1, 101, 1), OrderSize},
		{"trade size", []Command{tick(aaa, 1)}, trade(1, Buy, 101), OrderSize},
		{"market order without any price", nil, market(1, Buy, 1), PriceMissing},
		{"market order with a price on its own side only", []Command{buy(2, 1, 100)}, market(1, Buy, 1),
			PriceMissing},
		{"trade without a market price", []Command{sell(2, 1, 100)}, trade(1, Buy, 1), PriceMissing},
		{"market order on an old price", []Command{tick(aaa, 100), sell(2, 1, 100)},
			late(market(1, Buy, 1), 30_001), PriceStale},
		{"trade on an old price", []Command{tick(aaa, 100)}, late(trade(1, Buy, 1), 30_001), PriceStale},
		{"over the collar", []Command{tick(aaa, 50)},
			with(buy(1, 1, 75), func(c *Command) { c.LimitPx += 1000 }), PriceCollar},
		{"under the collar", []Command{tick(aaa, 50)},
			with(sell(1, 1, 25), func(c *Command) { c.LimitPx -= 1000 }), PriceCollar},
		{"collar of an old price", []Command{tick(aaa, 50)}, late(buy(1, 1, 80), 1e9), PriceCollar},
		{"order notional", nil, buy(1, 100, 101), OrderNotional},
		{"order notional that overflows", nil, with(buy(1, 100, 1), func(c *Command) {
			c.LimitPx = math.MaxInt64 / 1000 * 1000
		}), OrderNotional},
		{"market order's notional at the market price", []Command{tick(aaa, 101)}, market(1, Buy, 100),
			OrderNotional},
		{"trade's notional", []Command{tick(aaa, 101)}, trade(1, Buy, 100), OrderNotional},
		{"credit of open buys", []Command{buy(1, 100, 100)}, inBBB(buy(1, 51, 100)), CreditLimit},
		{"credit of open sells", []Command{sell(1, 100, 100)}, inBBB(sell(1, 51, 100)), CreditLimit},
		{"credit of executed buys", []Command{tick(aaa, 100), trade(1, Buy, 100)}, inBBB(buy(1, 51, 100)),
			CreditLimit},
		{"credit of executed sells", []Command{tick(aaa, 100), trade(1, Sell, 100)},
			inBBB(sell(1, 51, 100)), CreditLimit},
		{"credit of a trade", []Command{tick(aaa, 100), inBBB(buy(1, 100, 100))}, trade(1, Buy, 51),
			CreditLimit},
		{"position of open buys", []Command{buy(1, 100, 10)}, buy(1, 51, 10), PositionLimit},
		{"position of open sells", []Command{sell(1, 100, 10)}, sell(1, 51, 10), PositionLimit},
		{"position held", []Command{tick(aaa, 10), trade(1, Buy, 100)}, buy(1, 51, 10), PositionLimit},
		{"position short", []Command{tick(aaa, 10), trade(1, Sell, 100)}, trade(1, Sell, 51),
			PositionLimit},
		{"concentration", []Command{tick(aaa, 100), trade(1, Buy, 100)}, buy(1, 21, 100),
			ConcentrationLimit},
		{"concentration at the order's own price", []Command{tick(aaa, 100), trade(1, Buy, 100)},
			buy(1, 10, 120), ConcentrationLimit},
		{"concentration short", []Command{tick(aaa, 100), trade(1, Sell, 100)}, trade(1, Sell, 21),
			ConcentrationLimit},
		{"capacity", []Command{buy(1, 1, 1), buy(2, 1, 1), buy(3, 1, 1)}, buy(1, 1, 1), Capacity},
		{"a contract in no terms", nil, control(SwapBook, 1, 0, 0), Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, strict())
			for _, c := range tt.before {
				r.must(c)
			}
			r.refused(tt.last, tt.want)
		})
	}
}

// Commands that are just within every limit are admitted.
func TestEngineLetsInWhatIsWithinTheLimits(t *testing.T) {
	at := func(c Command, security uint32) Command { c.SecurityID = security; return c }
	tests := []struct {
		name   string
		before []Command
		last   Command
	}{
		{"order notional", nil, buy(1, 100, 100)},
		{"collar", []Command{tick(aaa, 50)}, buy(1, 1, 75)},
		{"collar below", []Command{tick(aaa, 50)}, sell(1, 1, 25)},
		{"age", []Command{tick(aaa, 100)}, with(trade(1, Buy, 1),
			func(c *Command) { c.EventTimeMillis = noon + 30_000 })},
		{"credit", []Command{buy(1, 100, 100)}, at(buy(1, 50, 100), bbb)},
		{"credit of the other side is its own", []Command{buy(1, 100, 100)}, at(sell(1, 100, 100), bbb)},
		{"sales give back credit", []Command{
			tick(aaa, 100), trade(1, Buy, 100), tick(bbb, 100), at(trade(1, Buy, 50), bbb),
			trade(1, Sell, 50),
		}, at(buy(1, 50, 100), ccc)},
		{"position", []Command{buy(1, 100, 10)}, buy(1, 50, 10)},
		{"position the other way", []Command{tick(aaa, 10), trade(1, Buy, 100), trade(1, Buy, 50)},
			sell(1, 100, 10)},
		{"concentration", []Command{tick(aaa, 100), trade(1, Buy, 100)}, buy(1, 20, 100)},
		{"capacity is for orders that may rest", []Command{buy(1, 1, 1), buy(2, 1, 1), buy(3, 1, 1)},
			flags(buy(1, 1, 1), FlagIOC)},
		{"market order judged at the collar around the opposite best", []Command{sell(2, 66, 100)},
			market(1, Buy, 66)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, strict())
			for _, c := range append(tt.before, tt.last) {
				r.must(c)
			}
		})
	}
}

// Every condition is broken at once and then repaired in the order of the checks: each repair makes
// the next reason the first one.
func TestEngineChecksInTheOrderOfTheContract(t *testing.T) {
	r := newRig(t, strict())
	r.must(tick(aaa, 50))
	r.must(trade(1, Buy, 100)) // 5000 of credit used, 100 held
	r.must(control(PolicyControl, 0, 0, 1))
	r.must(control(SecurityControl, 0, aaa, 0))
	r.must(control(RestrictionControl, 0, aaa, 1))
	r.must(control(AccountControl, 1, 0, 0))
	c := with(buy(99, 101, 100), func(c *Command) {
		c.SecurityID, c.LimitPx, c.OrderRef = 6, c.LimitPx+1, uint32(PriceStale)
	})
	steps := []struct {
		want   RiskReason
		repair func()
	}{
		{PriceStale, func() { c.OrderRef = 0 }}, // the gate's
		{KillSwitch, func() { r.must(policyOf(2, 0)) }},
		{UnknownAccount, func() { c.AccountID = 1 }},
		{AccountDisabled, func() { r.must(control(AccountControl, 1, 0, 1)) }},
		{UnknownSecurity, func() { c.SecurityID = aaa }},
		{SecurityDisabled, func() { r.must(control(SecurityControl, 0, aaa, SecurityEnabled)) }},
		{Restricted, func() { r.must(control(RestrictionControl, 0, aaa, 0)) }},
		{Invalid, func() { c.LimitPx = 200 * unit }},
		{OrderSize, func() { c.Qty = 100 }},
		{PriceCollar, func() { r.must(tick(aaa, 200)) }},
		{OrderNotional, func() {
			c.LimitPx = 101 * unit
			c.Qty = 99
			r.must(tick(aaa, 101))
			c.SecurityID = aaa
		}},
		{PositionLimit, func() { c.Qty = 50 }},
		{ConcentrationLimit, func() { c.LimitPx = 80 * unit }},
		{Accepted, func() {}},
	}
	for _, s := range steps {
		got := r.do(c)[0].Reason
		if got != s.want {
			t.Fatalf("got %v, want %v", got, s.want)
		}
		s.repair()
	}
	// Credit comes before position, and capacity last.
	for _, px := range []int64{1, 2} {
		r.must(sell(2, 1, 120+px))
	}
	over := with(buy(1, 100, 100), func(c *Command) { c.SecurityID = bbb })
	r.refused(over, CreditLimit)
	r.refused(with(buy(3, 1, 80), func(c *Command) { c.SecurityID = bbb }), Capacity)
}

// Limits at the ends of the range are judged without overflow.
func TestEngineRefusesWhereArithmeticWouldOverflow(t *testing.T) {
	g := testGenesis()
	l := &g.Limits
	l.MaxOrderQty, l.MaxOrderNotional = math.MaxInt32, math.MaxInt64
	l.MaxPositionQty, l.MaxConcentrationNotional, l.CreditLimit = math.MaxInt64, math.MaxInt64,
		math.MaxInt64
	l.PriceCollarBps = 0
	r := newRig(t, g)
	const most = math.MaxInt64 / 1000 * 1000
	at := func(c Command, px int64) Command { c.LimitPx = px; return c }
	r.refused(at(buy(1, 2, 0), most), OrderNotional)
	r.must(at(buy(1, 1, 0), most))
	r.refused(at(buy(1, 1, 0), most), CreditLimit) // open + notional overflows
	r.must(at(sell(2, 1, 0), most))                // they trade: 1 has paid, 2 has received
	r.refused(at(buy(1, 1, 0), 1000), CreditLimit) // used + open overflows
	r.refused(at(sell(2, 1, 0), 1000), CreditLimit)
	r.must(at(sell(1, 1, 0), 1000))
	r.must(at(buy(2, 1, 0), 1000))

	// The product of the concentration does not overflow either.
	r.must(tick(bbb, 1))
	r.must(with(trade(3, Buy, math.MaxInt32), func(c *Command) { c.SecurityID = bbb }))
	row := r.e.positions.at(2, bbb)
	r.e.positions.rows[row].quantity = math.MaxInt64 - 5
	r.refused(with(at(buy(3, 6, 0), 1000), func(c *Command) { c.SecurityID = bbb }), PositionLimit)
	r.refused(with(at(buy(3, 5, 0), 1000), func(c *Command) { c.SecurityID = bbb }),
		ConcentrationLimit)
}

// The collar compares products of 128 bits.
func TestCollarDoesNotOverflow(t *testing.T) {
	p := bounds{RiskLimits: RiskLimits{LimitCollar: 5_000}}
	tests := []struct {
		last, limit int64
		want        RiskReason
	}{
		{math.MaxInt64, math.MaxInt64 / 2, PriceCollar},
		{math.MaxInt64, math.MaxInt64/2 + 1, Accepted},
		{math.MaxInt64, math.MaxInt64, Accepted},
		{1 << 61, 1<<61 + 1<<60, Accepted},
		{1 << 61, 1<<61 + 1<<60 + 1, PriceCollar},
		{1, math.MaxInt64, PriceCollar},
		{0, math.MaxInt64, Accepted}, // no market price, no collar
	}
	for _, tt := range tests {
		if got := p.collar(&security{lastPx: tt.last}, tt.limit); got != tt.want {
			t.Errorf("limit %d against %d: %v, want %v", tt.limit, tt.last, got, tt.want)
		}
	}
	p.RiskLimits[LimitCollar] = 0
	if got := p.collar(&security{lastPx: 1}, math.MaxInt64); got != Accepted {
		t.Errorf("without a collar: %v", got)
	}
}

// Cash saturates at the end of the range, on both sides, and can move away from it again.
func TestAccountCashStandsAtTheEndOfTheRange(t *testing.T) {
	tests := []struct {
		executed int64
		side     Side
		notional int64
		want     int64
	}{
		{0, Buy, 5, 5},
		{0, Sell, 5, -5},
		{math.MaxInt64 - 5, Buy, 5, math.MaxInt64},
		{math.MaxInt64 - 5, Buy, 6, math.MaxInt64},
		{math.MaxInt64, Buy, math.MaxInt64, math.MaxInt64},
		{-math.MaxInt64 + 5, Sell, 5, -math.MaxInt64},
		{-math.MaxInt64 + 5, Sell, 6, -math.MaxInt64}, // math.MinInt64 has no negative
		{-math.MaxInt64 + 5, Sell, 7, -math.MaxInt64},
		{math.MaxInt64, Sell, 1, math.MaxInt64 - 1},
		{-math.MaxInt64, Buy, 1, -math.MaxInt64 + 1},
	}
	for _, tt := range tests {
		a := account{executed: tt.executed}
		if a.settle(tt.side, tt.notional); a.executed != tt.want {
			t.Errorf("%d, side %d, %d: got %d, want %d", tt.executed, tt.side, tt.notional, a.executed,
				tt.want)
		}
	}
}

func TestEngineCollarJudgesAReplaceToo(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 1, 100))
	r.must(tick(aaa, 100))
	r.want(replace(1, Buy, 1, 1, 151), "rejected ref=1 acct=1 buy 1 @151 PRICE_COLLAR")
	r.want(replace(1, Buy, 1, 1, 150), "replaced ref=1 acct=1 buy 1 @150 rests")
}

// Every reason against a replace, in the order of the checks.
func TestEngineReplaceChecksInTheOrderOfTheContract(t *testing.T) {
	r := newRig(t, strict())
	r.must(buy(1, 50, 100))
	r.must(tick(aaa, 100))
	r.must(control(PolicyControl, 0, 0, 1))
	r.must(control(AccountControl, 1, 0, 0))
	r.must(control(SecurityControl, 0, aaa, 0))
	c := replace(1, Buy, 1, 101, 200)
	c.Flags = FlagFOK
	for _, s := range []struct {
		want   RiskReason
		repair func()
	}{
		{KillSwitch, func() { r.must(policyOf(2, 0)) }},
		{AccountDisabled, func() { r.must(control(AccountControl, 1, 0, 1)) }},
		{SecurityDisabled, func() { r.must(control(SecurityControl, 0, aaa, SecurityEnabled)) }},
		{Invalid, func() { c.Flags = 0 }},
		{OrderSize, func() { c.Qty = 100 }},
		{PriceCollar, func() { c.LimitPx = 101 * unit }},
		{OrderNotional, func() { c.Qty, c.LimitPx = 99, 100*unit; r.must(with(buy(1, 60, 100), inBBB)) }},
		{CreditLimit, func() { r.must(cancel(1, 2)); r.must(trade(1, Buy, 60)) }},
		{CreditLimit, func() { c.LimitPx = 90 * unit }},
		{PositionLimit, func() { c.Qty = 80 }},
		{ConcentrationLimit, func() { c.Qty = 50 }},
		{Accepted, func() {}},
	} {
		if got := r.do(c)[0].Reason; got != s.want {
			t.Fatalf("got %v, want %v", got, s.want)
		}
		s.repair()
	}
}

func inBBB(c *Command) { c.SecurityID = bbb }

func TestEngineRefusesWhenNumbersAreUsedUp(t *testing.T) {
	r := newRig(t, testGenesis())
	r.e.nextRef = maxOrderNumber
	r.want(buy(1, 1, 100), fmt.Sprintf("accepted ref=%d acct=1 buy 1 @100 rests", uint32(maxOrderRef)))
	r.want(keyed(buy(1, 1, 100), 5), "rejected acct=1 buy 1 @100 REJECTED CAPACITY")
	r.want(keyed(buy(1, 1, 100), 5), "rejected acct=1 buy 1 @100 REJECTED CAPACITY")
	e := r.restored()
	r.e = e
	r.want(buy(1, 1, 100), "rejected acct=1 buy 1 @100 REJECTED CAPACITY")
}
