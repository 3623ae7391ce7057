package matcher

import (
	"fmt"
	"math"
	"testing"
)

// thin is strict with limits that an order at an extreme price passes and an order at the market
// price does not.
func thin() *Genesis {
	g := testGenesis()
	g.Limits.MaxOrderNotional = 10_000 * unit
	g.Limits.CreditLimit = 20_000 * unit
	g.Limits.MaxPositionQty = 500
	g.Limits.MaxConcentrationNotional = 30_000 * unit
	g.Limits.PriceCollarBps = 5_000
	return g
}

// uncollared is thin without a collar.
func uncollared() *Genesis {
	g := thin()
	g.Limits.PriceCollarBps = 0
	return g
}

// A market order executes up to the collar from the price it was judged at, and no further.
func TestMarketOrderStopsAtTheCollar(t *testing.T) {
	tests := []struct {
		name   string
		before []Command
		last   Command
		want   []string
	}{
		{"a purchase", []Command{sell(2, 5, 15), sell(2, 5, 16), tick(aaa, 10)}, market(1, Buy, 10),
			[]string{
				"accepted ref=3 acct=1 buy 10",
				"filled ref=3 acct=1 buy 5 @15 trade=1 leaves=5 counter=1 pos=5 avg=15 PARTIALLY_FILLED " +
					"aggressor",
				"filled ref=1 acct=2 sell 5 @15 trade=2 counter=3 pos=-5 avg=15 FILLED",
				"canceled ref=3 acct=1 buy 5 leaves=5 CANCELED PRICE_COLLAR",
			}},
		{"a sale", []Command{buy(2, 5, 5), buy(2, 5, 4), tick(aaa, 10)}, market(1, Sell, 10), []string{
			"accepted ref=3 acct=1 sell 10",
			"filled ref=3 acct=1 sell 5 @5 trade=1 leaves=5 counter=1 pos=-5 avg=5 PARTIALLY_FILLED " +
				"aggressor",
			"filled ref=1 acct=2 buy 5 @5 trade=2 counter=3 pos=5 avg=5 FILLED",
			"canceled ref=3 acct=1 sell 5 leaves=5 CANCELED PRICE_COLLAR",
		}},
		{"all of the book is further", []Command{sell(2, 5, 16), tick(aaa, 10)}, market(1, Buy, 1),
			[]string{
				"accepted ref=2 acct=1 buy 1", "canceled ref=2 acct=1 buy 1 leaves=1 CANCELED PRICE_COLLAR",
			}},
		{"a book that ends before it is no reason", []Command{sell(2, 5, 15), tick(aaa, 10)},
			market(1, Buy, 6), []string{
				"accepted ref=2 acct=1 buy 6",
				"filled ref=2 acct=1 buy 5 @15 trade=1 leaves=1 counter=1 pos=5 avg=15 PARTIALLY_FILLED " +
					"aggressor",
				"filled ref=1 acct=2 sell 5 @15 trade=2 counter=2 pos=-5 avg=15 FILLED",
				"canceled ref=2 acct=1 buy 1 leaves=1 CANCELED",
			}},
		{"an empty book is no reason", []Command{tick(aaa, 10)}, market(1, Buy, 6), []string{
			"accepted ref=1 acct=1 buy 6", "canceled ref=1 acct=1 buy 6 leaves=6 CANCELED",
		}},
		{"fill or kill that would fill further", []Command{sell(2, 5, 15), sell(2, 5, 16), tick(aaa, 10)},
			flags(market(1, Buy, 10), FlagFOK), []string{
				"accepted ref=3 acct=1 buy 10", "canceled ref=3 acct=1 buy 10 leaves=10 CANCELED PRICE_COLLAR",
			}},
		{"fill or kill that would fill nowhere", []Command{sell(2, 5, 15), sell(2, 4, 16), tick(aaa, 10)},
			flags(market(1, Buy, 10), FlagFOK), []string{
				"accepted ref=3 acct=1 buy 10", "canceled ref=3 acct=1 buy 10 leaves=10 CANCELED",
			}},
		{"fill or kill, all of the book further", []Command{sell(2, 10, 16), tick(aaa, 10)},
			flags(market(1, Buy, 10), FlagFOK), []string{
				"accepted ref=2 acct=1 buy 10", "canceled ref=2 acct=1 buy 10 leaves=10 CANCELED PRICE_COLLAR",
			}},
		{"fill or kill within it", []Command{sell(2, 5, 15), tick(aaa, 10)},
			flags(market(1, Buy, 5), FlagFOK), []string{
				"accepted ref=2 acct=1 buy 5",
				"filled ref=2 acct=1 buy 5 @15 trade=1 counter=1 pos=5 avg=15 FILLED aggressor",
				"filled ref=1 acct=2 sell 5 @15 trade=2 counter=2 pos=-5 avg=15 FILLED",
			}},
		{"without a market price from the opposite best", []Command{sell(2, 5, 10), sell(2, 5, 16)},
			market(1, Buy, 10), []string{
				"accepted ref=3 acct=1 buy 10",
				"filled ref=3 acct=1 buy 5 @10 trade=1 leaves=5 counter=1 pos=5 avg=10 PARTIALLY_FILLED " +
					"aggressor",
				"filled ref=1 acct=2 sell 5 @10 trade=2 counter=3 pos=-5 avg=10 FILLED",
				"canceled ref=3 acct=1 buy 5 leaves=5 CANCELED PRICE_COLLAR",
			}},
		{"its own orders within it go, those further stay",
			[]Command{sell(1, 5, 15), sell(1, 5, 16), tick(aaa, 10)},
			market(1, Buy, 10), []string{
				"accepted ref=3 acct=1 buy 10",
				"canceled ref=1 acct=1 sell 5 @15 leaves=5 CANCELED SELF_TRADE_PREVENTED",
				"canceled ref=3 acct=1 buy 10 leaves=10 CANCELED PRICE_COLLAR",
			}},
		{"in version 1 at any price", []Command{sell(2, 5, 900), tick(aaa, 10)},
			with(market(1, Buy, 5), func(c *Command) { c.Version = 1 }), []string{
				"accepted ref=2 acct=1 buy 5",
				"filled ref=2 acct=1 buy 5 @900 trade=1 counter=1 pos=5 avg=900 FILLED aggressor",
				"filled ref=1 acct=2 sell 5 @900 trade=2 counter=2 pos=-5 avg=900 FILLED",
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, thin())
			for _, c := range tt.before {
				r.must(c)
			}
			r.want(tt.last, tt.want...)
			o, _ := r.e.Order(r.said[0].OrderRef)
			if last := r.said[len(r.said)-1]; o.Reason != last.Reason ||
				o.Status != last.Status && o.Leaves != 0 {
				t.Errorf("the order is kept as %+v", o)
			}
			r.e = r.restored()
		})
	}
}

// Without a collar a purchase executes as far as its limits reach, and states which limit ended it.
func TestMarketOrderWithoutACollarStopsAtItsLimits(t *testing.T) {
	tests := []struct {
		name   string
		before []Command
		last   Command
		most   int64 // the last price within the limit
		want   RiskReason
	}{
		{"order notional", nil, market(1, Buy, 100), 100, OrderNotional},
		{"credit", []Command{with(buy(1, 100, 100), inBBB), with(buy(1, 90, 100), inCCC)},
			market(1, Buy, 50), 20, CreditLimit},
		{"concentration", []Command{trade(1, Buy, 289)}, market(1, Buy, 11), 100, ConcentrationLimit},
		{"order notional alone for what reduces", []Command{trade(1, Sell, 100),
			with(buy(1, 100, 100), inBBB), with(buy(1, 100, 99), inCCC)}, market(1, Buy, 100), 100,
			OrderNotional},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, uncollared())
			r.must(tick(aaa, 1))
			for _, c := range tt.before {
				r.must(c)
			}
			r.must(sell(2, tt.last.Qty-1, tt.most))
			r.must(sell(3, 5, tt.most+1))
			said := r.do(tt.last)
			if last := said[len(said)-1]; last.Kind != EventCanceled || last.Reason != tt.want ||
				last.Qty != 1 {
				t.Errorf("got %q, want 1 cancelled with %v", describe(said), tt.want)
			}
			r.refused(with(tt.last, func(c *Command) { c.Flags = FlagPostOnly }), Invalid)
		})
	}
}

func inCCC(c *Command) { c.SecurityID = ccc }

// The engine judges the highest price that an order can execute at.
func TestLimitsAreJudgedAtWhatAnOrderCanExecuteAt(t *testing.T) {
	bid := buy(2, 11, 900) // 9,900 of the 10,000 that an order may be worth
	tests := []struct {
		name    string
		genesis *Genesis
		before  []Command
		last    Command
		want    RiskReason
	}{
		{"a purchase at the market, at the bound", thin(), []Command{tick(aaa, 100)}, market(1, Buy, 67),
			OrderNotional},
		{"just within", thin(), []Command{tick(aaa, 100)}, market(1, Buy, 66), Accepted},
		{"without a collar at the market price", uncollared(), []Command{tick(aaa, 100)},
			market(1, Buy, 100), Accepted},
		{"a sale at the market, at a better bid", thin(), []Command{bid, tick(aaa, 100)},
			market(1, Sell, 12), OrderNotional},
		{"within at that bid", thin(), []Command{bid, tick(aaa, 100)}, market(1, Sell, 11), Accepted},
		{"a sale with a limit, at a better bid", thin(), []Command{bid}, sell(1, 12, 1), OrderNotional},
		{"within at that bid", thin(), []Command{bid}, sell(1, 11, 1), Accepted},
		{"no bid within the limit", thin(), []Command{bid}, sell(1, 11, 901), Accepted},
		{"credit of a sale", thin(), []Command{bid, with(sell(1, 100, 100), inBBB),
			with(sell(1, 1, 1_000), inCCC)},
			sell(1, 11, 1), CreditLimit},
		{"credit of a purchase at the market", thin(), []Command{
			with(buy(1, 100, 100), inBBB), with(buy(1, 1, 1_000), inCCC), tick(aaa, 100)},
			market(1, Buy, 61), CreditLimit},
		{"concentration of a sale", thin(), []Command{buy(2, 1, 901), tick(aaa, 10), trade(1, Sell, 33)},
			sell(1, 1, 10),
			ConcentrationLimit},
		{"concentration of a purchase at the market", thin(),
			[]Command{tick(aaa, 40), trade(1, Buy, 150), tick(aaa, 100)},
			market(1, Buy, 60), ConcentrationLimit},
		{"a replace that crosses", thin(), []Command{buy(2, 11, 900), sell(1, 10, 999)},
			replace(1, Sell, 2, 12, 1), OrderNotional},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.genesis)
			for _, c := range tt.before {
				r.must(c)
			}
			if got := r.do(tt.last)[0].Reason; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if tt.want != Accepted {
				r.must(with(tt.last, func(c *Command) { c.Version = 1 }))
			}
		})
	}
}

// The bound is computed without overflow, also at the ends of the range.
func TestCollarBoundDoesNotOverflow(t *testing.T) {
	for _, tt := range []struct{ px, bps, want int64 }{
		{100, 5_000, 50}, {3, 5_000, 1}, {1, 1, 0}, {math.MaxInt64, 10_000, math.MaxInt64},
		{math.MaxInt64, 10_001, math.MaxInt64}, {math.MaxInt64, math.MaxInt64, math.MaxInt64},
		{7, math.MaxInt64, 6456360425798343},
	} {
		if got := (&RiskLimits{LimitCollar: tt.bps}).CollarOff(tt.px); got !=
			tt.want {
			t.Errorf("%d bps of %d: %d, want %d", tt.bps, tt.px, got, tt.want)
		}
	}
	for _, tt := range []struct{ px, want int64 }{
		{math.MinInt64 + 1, 0}, {0, 0}, {1, 1}, {1000, 1}, {1001, 2},
		{math.MaxInt64, math.MaxInt64/1000 + 1},
	} {
		if got := ceilTicks(tt.px, 1000); got != tt.want {
			t.Errorf("%d in ticks: %d, want %d", tt.px, got, tt.want)
		}
	}
	g := testGenesis()
	g.Limits.PriceCollarBps = math.MaxInt64
	r := newRig(t, g)
	r.must(tick(aaa, 100))
	r.must(sell(2, 1, 101))
	r.refused(market(1, Buy, 1), OrderNotional) // a bound at the end of the range is beyond any limit
	r.must(buy(2, 1, 1))
	r.must(market(1, Sell, 1))
}

// An order that only reduces a position passes the limits of credit, position and concentration,
// however far the account is over them.
func TestWhatReducesAPositionPassesTheLimitsOfExposure(t *testing.T) {
	g := thin()
	g.Limits.CreditLimit = 10_000 * unit
	g.Limits.MaxOrderNotional = 20_000 * unit
	g.Limits.MaxOrderQty = 120
	for _, side := range []Side{Buy, Sell} {
		back := side.Opposite()
		rests := func(qty int32) Command { return limit(1, back, qty, 101-2*int64(side)) }
		tests := []struct {
			name   string
			before []Command
			last   Command
			want   RiskReason
			old    RiskReason // in version 1
		}{
			{"a part, at the market", nil, market(1, back, 40), Accepted, ConcentrationLimit},
			{"all, at the market", nil, market(1, back, 100), Accepted, Accepted},
			{"a part, with a limit", nil, limit(1, back, 40, 90), Accepted, ConcentrationLimit},
			{"a part, as a market trade", nil, trade(1, back, 40), Accepted, ConcentrationLimit},
			{"turned over beyond the limits", nil, trade(1, back, 111), PositionLimit, PositionLimit},
			{"turned over within the limits", nil, trade(1, back, 105), Accepted, Accepted},
			{"turned over and valued too high", nil, limit(1, back, 109, 120), ConcentrationLimit,
				ConcentrationLimit},
			{"more of it", nil, limit(1, side, 1, 100), CreditLimit, CreditLimit},
			{"turned over by two together", []Command{rests(60)}, rests(55), PositionLimit, PositionLimit},
			{"all of it by two together", []Command{rests(60)}, rests(40), Accepted, Accepted},
			{"more of it by a replace", []Command{rests(20)}, replace(1, back, 1, 60, 100), Accepted,
				ConcentrationLimit},
			{"the size is judged", nil, limit(1, back, 121, 90), OrderSize, OrderSize},
			{"the notional is judged", nil, limit(1, back, 99, 203), PriceCollar, PriceCollar},
			{"the collar is judged", nil, limit(1, back, 1, 151), PriceCollar, PriceCollar},
		}
		for _, tt := range tests {
			t.Run(fmt.Sprintf("side %d/%s", side, tt.name), func(t *testing.T) {
				for version, want := range map[uint16]RiskReason{1: tt.old, 2: tt.want} {
					r := newRig(t, g)
					r.must(tick(aaa, 100))
					r.must(trade(1, side, 100))
					r.must(with(policyOf(1, 0), func(c *Command) { c.Qty, c.LimitPx = 10, 1_000*unit }))
					for _, c := range tt.before {
						r.must(c)
					}
					c := tt.last
					c.Version = version
					if got := r.do(c)[0].Reason; got != want {
						t.Errorf("version %d: got %v, want %v", version, got, want)
					}
				}
			})
		}
	}
}

// A purchase that covers a short position may cost more than the account has credit for. A purchase
// of one share of anything else may not.
func TestCoveringAShortPositionPassesTheCreditLimit(t *testing.T) {
	g := thin()
	g.Limits.CreditLimit = 1_000 * unit
	r := newRig(t, g)
	r.must(tick(aaa, 10))
	r.must(trade(1, Sell, 100)) // has received 1,000
	r.must(tick(aaa, 30))
	r.refused(with(limit(1, Buy, 1, 2_001), inBBB), CreditLimit)
	r.refused(limit(1, Buy, 101, 30), CreditLimit)
	r.must(limit(1, Buy, 60, 30))
	r.must(limit(1, Buy, 40, 30))
	r.must(sell(2, 33, 30))
	r.must(sell(3, 33, 30))
	r.refused(with(limit(1, Buy, 1, 1), inBBB), CreditLimit) // it has paid 1,980 and will pay 1,020
	r.must(with(limit(1, Sell, 1, 1), inBBB))
}

// An order that exceeds a limit lowered later can be made smaller or cheaper, not larger or dearer.
func TestAReplaceThatAsksForLessPassesTheLimitsOfExposure(t *testing.T) {
	for _, side := range []Side{Buy, Sell} {
		r := newRig(t, thin())
		r.must(limit(1, side, 50, 100))
		r.must(with(policyOf(1, 0), func(c *Command) { c.Qty = 10 }))
		r.refused(replace(1, side, 1, 50, 101), PositionLimit)
		r.refused(replace(1, side, 1, 51, 100), PositionLimit)
		r.refused(with(replace(1, side, 1, 40, 100), func(c *Command) { c.Version = 1 }), PositionLimit)
		r.must(replace(1, side, 1, 40, 100))
		r.must(replace(1, side, 1, 40, 99))
		r.must(limit(2, side.Opposite(), 5, 99))
		r.refused(replace(1, side, 1, 41, 99), PositionLimit)
		r.must(replace(1, side, 1, 39, 99))
	}
}

// The reservation of an order that reduces a position stays within the int64 range.
func TestWhatReducesIsRefusedWhereReservationsWouldOverflow(t *testing.T) {
	g := testGenesis()
	l := &g.Limits
	l.MaxOrderQty, l.MaxOrderNotional = math.MaxInt32, math.MaxInt64
	l.MaxPositionQty, l.MaxConcentrationNotional, l.CreditLimit = math.MaxInt64, math.MaxInt64,
		math.MaxInt64
	l.PriceCollarBps = 0
	r := newRig(t, g)
	const most = math.MaxInt64 / 1000 * 1000
	r.must(tick(aaa, 1))
	r.must(trade(1, Buy, 10))
	sale := with(sell(1, 1, 0), func(c *Command) { c.LimitPx = most })
	r.must(sale)
	r.refused(sale, CreditLimit)
}
