package matcher

import (
	"fmt"
	"math"
	"testing"
)

func TestEngineMatchesByPriceThenTime(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(sell(1, 5, 101), "accepted ref=1 acct=1 sell 5 @101 rests")
	r.want(sell(2, 5, 101), "accepted ref=2 acct=2 sell 5 @101 rests")
	r.want(sell(2, 5, 100), "accepted ref=3 acct=2 sell 5 @100 rests")
	r.want(buy(3, 12, 102),
		"accepted ref=4 acct=3 buy 12 @102",
		"filled ref=4 acct=3 buy 5 @100 trade=1 leaves=7 counter=3 pos=5 avg=100 PARTIALLY_FILLED "+
			"aggressor",
		"filled ref=3 acct=2 sell 5 @100 trade=2 counter=4 pos=-5 avg=100 FILLED",
		"filled ref=4 acct=3 buy 5 @101 trade=3 leaves=2 counter=1 pos=10 avg=100.5 PARTIALLY_FILLED "+
			"aggressor",
		"filled ref=1 acct=1 sell 5 @101 trade=4 counter=4 pos=-5 avg=101 FILLED",
		"filled ref=4 acct=3 buy 2 @101 trade=5 counter=2 pos=12 avg=100.583333 FILLED aggressor",
		"filled ref=2 acct=2 sell 2 @101 trade=6 leaves=3 counter=4 pos=-7 avg=100.285714 "+
			"PARTIALLY_FILLED",
	)
	r.want(sell(1, 10, 101), "accepted ref=5 acct=1 sell 10 @101 rests")
	r.want(buy(3, 4, 101),
		"accepted ref=6 acct=3 buy 4 @101",
		"filled ref=6 acct=3 buy 3 @101 trade=7 leaves=1 counter=2 pos=15 avg=100.666666 "+
			"PARTIALLY_FILLED aggressor",
		"filled ref=2 acct=2 sell 3 @101 trade=8 counter=6 pos=-10 avg=100.5 FILLED",
		"filled ref=6 acct=3 buy 1 @101 trade=9 counter=5 pos=16 avg=100.687499 FILLED aggressor",
		"filled ref=5 acct=1 sell 1 @101 trade=10 leaves=9 counter=6 pos=-6 avg=101 PARTIALLY_FILLED",
	)
}

func TestEngineRestsWhatAPartlyFilledOrderHasLeft(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(sell(1, 5, 100))
	r.want(buy(2, 8, 100),
		"accepted ref=2 acct=2 buy 8 @100",
		"filled ref=2 acct=2 buy 5 @100 trade=1 leaves=3 counter=1 pos=5 avg=100 PARTIALLY_FILLED "+
			"aggressor",
		"filled ref=1 acct=1 sell 5 @100 trade=2 counter=2 pos=-5 avg=100 FILLED",
		"rested ref=2 acct=2 buy 3 @100 leaves=3 PARTIALLY_FILLED",
	)
	r.want(cancel(2, 2), "canceled ref=2 acct=2 buy 3 @100 CANCELED")
}

func TestEngineTimeInForce(t *testing.T) {
	const resting = "accepted ref=1 acct=1 sell 5 @100 rests"
	filled := []string{
		"filled ref=2 acct=2 buy 5 @100 trade=1 leaves=3 counter=1 pos=5 avg=100 PARTIALLY_FILLED " +
			"aggressor",
		"filled ref=1 acct=1 sell 5 @100 trade=2 counter=2 pos=-5 avg=100 FILLED",
	}
	tests := []struct {
		name string
		give Command
		want []string
	}{
		{"immediate or cancel cancels its remainder", flags(buy(2, 8, 100), FlagIOC), []string{
			"accepted ref=2 acct=2 buy 8 @100", filled[0], filled[1],
			"canceled ref=2 acct=2 buy 3 @100 leaves=3 CANCELED",
		}},
		{"immediate or cancel that meets no order", flags(buy(2, 8, 99), FlagIOC), []string{
			"accepted ref=2 acct=2 buy 8 @99",
			"canceled ref=2 acct=2 buy 8 @99 leaves=8 CANCELED",
		}},
		{"fill or kill that cannot be filled whole", flags(buy(2, 8, 100), FlagFOK), []string{
			"accepted ref=2 acct=2 buy 8 @100",
			"canceled ref=2 acct=2 buy 8 @100 leaves=8 CANCELED",
		}},
		{"fill or kill that meets no order", flags(buy(2, 5, 99), FlagFOK), []string{
			"accepted ref=2 acct=2 buy 5 @99",
			"canceled ref=2 acct=2 buy 5 @99 leaves=5 CANCELED",
		}},
		{"fill or kill that can", flags(buy(2, 5, 100), FlagFOK), []string{
			"accepted ref=2 acct=2 buy 5 @100",
			"filled ref=2 acct=2 buy 5 @100 trade=1 counter=1 pos=5 avg=100 FILLED aggressor",
			"filled ref=1 acct=1 sell 5 @100 trade=2 counter=2 pos=-5 avg=100 FILLED",
		}},
		{"fill or kill does not count the account's own", flags(buy(1, 5, 100), FlagFOK), []string{
			"accepted ref=2 acct=1 buy 5 @100",
			"canceled ref=2 acct=1 buy 5 @100 leaves=5 CANCELED",
		}},
		{"a market order never rests", market(2, Buy, 8), []string{
			"accepted ref=2 acct=2 buy 8", filled[0], filled[1],
			"canceled ref=2 acct=2 buy 3 leaves=3 CANCELED",
		}},
		{"market and fill or kill", flags(market(2, Buy, 8), FlagFOK), []string{
			"accepted ref=2 acct=2 buy 8", "canceled ref=2 acct=2 buy 8 leaves=8 CANCELED",
		}},
		{"market and immediate or cancel", flags(market(2, Buy, 3), FlagIOC), []string{
			"accepted ref=2 acct=2 buy 3",
			"filled ref=2 acct=2 buy 3 @100 trade=1 counter=1 pos=3 avg=100 FILLED aggressor",
			"filled ref=1 acct=1 sell 3 @100 trade=2 leaves=2 counter=2 pos=-3 avg=100 PARTIALLY_FILLED",
		}},
		{"post only that would cross", flags(buy(2, 5, 100), FlagPostOnly), []string{
			"rejected ref=2 acct=2 buy 5 @100 REJECTED INVALID",
		}},
		{"post only that would cross the account's own", flags(buy(1, 5, 100), FlagPostOnly), []string{
			"rejected ref=2 acct=1 buy 5 @100 REJECTED INVALID",
		}},
		{"post only that rests", flags(buy(2, 5, 99), FlagPostOnly), []string{
			"accepted ref=2 acct=2 buy 5 @99 rests",
		}},
		{"the shadow flag changes nothing", flags(buy(2, 5, 99), FlagShadow), []string{
			"accepted ref=2 acct=2 buy 5 @99 rests",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, testGenesis())
			r.want(sell(1, 5, 100), resting)
			r.want(tt.give, tt.want...)
		})
	}
}

func TestEngineMarketOrderSellsAtAnyPrice(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 5, 100))
	r.must(buy(2, 5, 60))
	r.want(market(3, Sell, 7),
		"accepted ref=3 acct=3 sell 7",
		"filled ref=3 acct=3 sell 5 @100 trade=1 leaves=2 counter=1 pos=-5 avg=100 PARTIALLY_FILLED "+
			"aggressor",
		"filled ref=1 acct=1 buy 5 @100 trade=2 counter=3 pos=5 avg=100 FILLED",
		"filled ref=3 acct=3 sell 2 @60 trade=3 counter=2 pos=-7 avg=88.571429 FILLED aggressor",
		"filled ref=2 acct=2 buy 2 @60 trade=4 leaves=3 counter=3 pos=2 avg=60 PARTIALLY_FILLED",
	)
}

func TestEngineSelfTradePreventionCancelsTheRestingOrder(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(sell(1, 5, 100))
	r.must(sell(2, 5, 101))
	r.want(buy(1, 4, 101),
		"accepted ref=3 acct=1 buy 4 @101",
		"canceled ref=1 acct=1 sell 5 @100 leaves=5 CANCELED SELF_TRADE_PREVENTED",
		"filled ref=3 acct=1 buy 4 @101 trade=1 counter=2 pos=4 avg=101 FILLED aggressor",
		"filled ref=2 acct=2 sell 4 @101 trade=2 leaves=1 counter=3 pos=-4 avg=101 PARTIALLY_FILLED",
	)
	// Without any other order there the incoming order rests where its own stood.
	r.must(cancel(2, 2))
	r.must(sell(3, 5, 105))
	r.want(buy(3, 2, 105),
		"accepted ref=5 acct=3 buy 2 @105",
		"canceled ref=4 acct=3 sell 5 @105 leaves=5 CANCELED SELF_TRADE_PREVENTED",
		"rested ref=5 acct=3 buy 2 @105 leaves=2",
	)
	// An order that may not rest is cancelled after it.
	r.want(flags(sell(3, 1, 105), FlagIOC),
		"accepted ref=6 acct=3 sell 1 @105",
		"canceled ref=5 acct=3 buy 2 @105 leaves=2 CANCELED SELF_TRADE_PREVENTED",
		"canceled ref=6 acct=3 sell 1 @105 leaves=1 CANCELED",
	)
	if got := r.e.Counts().OpenOrders; got != 0 {
		t.Errorf("%d orders are open, want none", got)
	}
}

func TestEngineCancel(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 5, 100))
	r.want(cancel(2, 1), "rejected ref=1 acct=2 sec=0 buy INVALID") // the order of another account
	r.want(cancel(1, 9), "rejected ref=9 acct=1 sec=0 buy INVALID") // there is no such order
	r.want(cancel(1, 0), "rejected acct=1 sec=0 buy INVALID")
	// Neither the kill switch nor a disabled account or security keeps an owner from cancelling.
	r.must(control(PolicyControl, 0, 0, 1))
	r.must(control(AccountControl, 1, 0, 0))
	r.must(control(SecurityControl, 0, aaa, 0))
	r.want(cancel(1, 1), "canceled ref=1 acct=1 buy 5 @100 CANCELED")
	r.want(cancel(1, 1), "rejected ref=1 acct=1 sec=0 buy INVALID") // terminal
}

func TestEngineReplace(t *testing.T) {
	tests := []struct {
		name string
		give Command
		want []string
		then []string // the orders that a sell of 12 at 100 meets, best first
	}{
		{"less at the same price keeps its place", replace(1, Buy, 1, 3, 100),
			[]string{"replaced ref=1 acct=1 buy 3 @100 rests kept"}, []string{"1:3", "2:5"}},
		{"the same again goes to the back", replace(1, Buy, 1, 5, 100),
			[]string{"replaced ref=1 acct=1 buy 5 @100 rests"}, []string{"2:5", "1:5"}},
		{"more at the same price goes to the back", replace(1, Buy, 1, 6, 100),
			[]string{"replaced ref=1 acct=1 buy 6 @100 rests"}, []string{"2:5", "1:6"}},
		{"a better price goes to the front", replace(2, Buy, 2, 5, 101),
			[]string{"replaced ref=2 acct=2 buy 5 @101 rests"}, []string{"2:5", "1:5"}},
		{"less at a worse price loses its place", replace(1, Buy, 1, 4, 99),
			[]string{"replaced ref=1 acct=1 buy 4 @99 rests"}, []string{"2:5"}},
		{"a price that crosses trades at once", replace(1, Buy, 1, 5, 110), []string{
			"replaced ref=1 acct=1 buy 5 @110",
			"filled ref=1 acct=1 buy 2 @110 trade=1 leaves=3 counter=3 pos=2 avg=110 PARTIALLY_FILLED " +
				"aggressor",
			"filled ref=3 acct=3 sell 2 @110 trade=2 counter=1 pos=-2 avg=110 FILLED",
			"rested ref=1 acct=1 buy 3 @110 leaves=3 PARTIALLY_FILLED",
		}, []string{"1:3", "2:5"}},
		{"a small one that crosses trades whole", replace(1, Buy, 1, 1, 110), []string{
			"replaced ref=1 acct=1 buy 1 @110",
			"filled ref=1 acct=1 buy 1 @110 trade=1 counter=3 pos=1 avg=110 FILLED aggressor",
			"filled ref=3 acct=3 sell 1 @110 trade=2 leaves=1 counter=1 pos=-1 avg=110 PARTIALLY_FILLED",
		}, []string{"2:5"}},
		{"post only that crosses", flags(replace(1, Buy, 1, 5, 110), FlagPostOnly),
			[]string{"rejected ref=1 acct=1 buy 5 @110 INVALID"}, []string{"1:5", "2:5"}},
		{"immediate or cancel", flags(replace(1, Buy, 1, 5, 110), FlagIOC),
			[]string{"rejected ref=1 acct=1 buy 5 @110 INVALID"}, []string{"1:5", "2:5"}},
		{"without a price", replace(1, Buy, 1, 5, 0),
			[]string{"rejected ref=1 acct=1 buy 5 INVALID"}, []string{"1:5", "2:5"}},
		{"off the grid", with(replace(1, Buy, 1, 5, 100), func(c *Command) { c.LimitPx++ }),
			[]string{"rejected ref=1 acct=1 buy 5 @100.000001 INVALID"}, []string{"1:5", "2:5"}},
		{"no quantity", replace(1, Buy, 1, 0, 100),
			[]string{"rejected ref=1 acct=1 buy @100 INVALID"}, []string{"1:5", "2:5"}},
		{"the other side", replace(1, Sell, 1, 5, 100),
			[]string{"rejected ref=1 acct=1 sell 5 @100 INVALID"}, []string{"1:5", "2:5"}},
		{"another security", with(replace(1, Buy, 1, 5, 100), func(c *Command) { c.SecurityID = bbb }),
			[]string{"rejected ref=1 acct=1 sec=2 buy 5 @100 INVALID"}, []string{"1:5", "2:5"}},
		{"of another account", replace(2, Buy, 1, 5, 100),
			[]string{"rejected ref=1 acct=2 buy 5 @100 INVALID"}, []string{"1:5", "2:5"}},
		{"of no account", replace(1, Buy, 9, 5, 100),
			[]string{"rejected ref=9 acct=1 buy 5 @100 INVALID"}, []string{"1:5", "2:5"}},
		{"larger than an order may be", replace(1, Buy, 1, 1_000_001, 100),
			[]string{"rejected ref=1 acct=1 buy 1000001 @100 ORDER_SIZE"}, []string{"1:5", "2:5"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, testGenesis())
			r.must(buy(1, 5, 100))
			r.must(buy(2, 5, 100))
			r.must(sell(3, 2, 110))
			before := r.e.StateHash()
			r.want(tt.give, tt.want...)
			if r.said[0].Kind == EventRejected {
				r.e.applied-- // all that a refusal changes
				if r.e.StateHash() != before {
					t.Error("a refused replace changed something")
				}
				r.e.applied++
			}
			var met []string
			for _, ev := range r.do(flags(sell(3, 12, 100), FlagIOC)) {
				if ev.Kind == EventFilled && ev.Flags&EventAggressor == 0 {
					met = append(met, fmt.Sprintf("%d:%d", ev.OrderRef, ev.Qty))
				}
			}
			if fmt.Sprint(met) != fmt.Sprint(tt.then) {
				t.Errorf("a sell met %v, want %v", met, tt.then)
			}
		})
	}
}

func TestEngineReplaceAboveWhatIsFilled(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 10, 100))
	r.must(sell(2, 4, 100))
	r.want(replace(1, Buy, 1, 4, 100), "rejected ref=1 acct=1 buy 4 @100 INVALID")
	r.want(replace(1, Buy, 1, 3, 100), "rejected ref=1 acct=1 buy 3 @100 INVALID")
	r.want(replace(1, Buy, 1, 5, 100), "replaced ref=1 acct=1 buy 5 @100 PARTIALLY_FILLED rests kept")
	r.want(cancel(1, 1), "canceled ref=1 acct=1 buy 1 @100 CANCELED")
	r.want(replace(1, Buy, 1, 9, 100), "rejected ref=1 acct=1 buy 9 @100 INVALID")
}

// An order that uses up the account's limits may be replaced by one of the same size.
func TestEngineReplaceGivesBackItsOwnReservationFirst(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxPositionQty = 10
	r := newRig(t, g)
	r.must(buy(1, 10, 100))
	r.refused(buy(1, 1, 100), PositionLimit)
	r.want(replace(1, Buy, 1, 10, 101), "replaced ref=1 acct=1 buy 10 @101 rests")
	r.refused(replace(1, Buy, 1, 11, 101), PositionLimit)
	r.want(replace(1, Buy, 1, 9, 101), "replaced ref=1 acct=1 buy 9 @101 rests kept")
}

func TestEngineForceFill(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 5, 100))
	r.want(force(1, 1, 2, 90),
		"applied ref=1 acct=1 2 @90",
		"filled ref=1 acct=1 buy 2 @90 trade=1 leaves=3 pos=2 avg=90 PARTIALLY_FILLED forced")
	r.want(force(1, 1, 4, 90), "rejected ref=1 acct=1 sec=0 buy 4 @90 INVALID")
	r.want(force(1, 1, 0, 90), "rejected ref=1 acct=1 sec=0 buy @90 INVALID")
	r.want(force(1, 1, -1, 90), "rejected ref=1 acct=1 sec=0 buy -1 @90 INVALID")
	r.want(force(1, 1, 1, 0), "rejected ref=1 acct=1 sec=0 buy 1 INVALID")
	r.want(force(2, 1, 1, 90), "rejected ref=1 acct=2 sec=0 buy 1 @90 INVALID")
	r.want(force(1, 7, 1, 90), "rejected ref=7 acct=1 sec=0 buy 1 @90 INVALID")
	off := with(force(1, 1, 1, 90), func(c *Command) { c.LimitPx += 999 })
	r.want(off, "rejected ref=1 acct=1 sec=0 buy 1 @90.000999 INVALID")
	huge := with(force(1, 1, 3, 90), func(c *Command) { c.LimitPx = math.MaxInt64 / 1000 * 1000 })
	r.want(huge, "rejected ref=1 acct=1 sec=0 buy 3 @9223372036854.775 INVALID")
	r.want(force(1, 1, 3, 95),
		"applied ref=1 acct=1 3 @95",
		"filled ref=1 acct=1 buy 3 @95 trade=2 pos=5 avg=93 FILLED forced")
	r.want(force(1, 1, 1, 95), "rejected ref=1 acct=1 sec=0 buy 1 @95 INVALID")
	// A forced execution is a trade: its price becomes the market price.
	r.want(trade(2, Sell, 1),
		"booked acct=2 sell 1 @95",
		"filled acct=2 sell 1 @95 trade=3 pos=-1 avg=95 FILLED market")
}

func TestEngineMarketTrade(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(trade(1, Buy, 5), "rejected acct=1 buy 5 PRICE_MISSING")
	r.must(tick(aaa, 100))
	r.want(trade(1, Buy, 5),
		"booked acct=1 buy 5 @100", "filled acct=1 buy 5 @100 trade=1 pos=5 avg=100 FILLED market")
	r.now += 30_000
	r.want(trade(1, Sell, 7),
		"booked acct=1 sell 7 @100", "filled acct=1 sell 7 @100 trade=2 pos=-2 avg=100 FILLED market")
	r.now += 30_001
	r.want(trade(1, Buy, 5), "rejected acct=1 buy 5 PRICE_STALE")
	r.now = noon - 50_000 // a time before the price's counts as age 0
	r.want(trade(1, Buy, 2),
		"booked acct=1 buy 2 @100", "filled acct=1 buy 2 @100 trade=3 pos=0 avg=0 FILLED market late")
	r.want(trade(1, Buy, 0), "rejected acct=1 buy INVALID")
	r.want(with(trade(1, Buy, 1), func(c *Command) { c.Side = 2 }), "rejected acct=1 buy 1 INVALID")
	if got := r.e.Counts().RetainedOrders; got != 0 {
		t.Errorf("market trades left %d orders, want none", got)
	}
}

func TestEnginePositionAverage(t *testing.T) {
	r := newRig(t, testGenesis())
	steps := []struct {
		side     Side
		qty      int32
		px       int64
		position string
	}{
		{Buy, 1, 100, "pos=1 avg=100"},
		{Buy, 2, 101, "pos=3 avg=100.666667"}, // running, half away from zero
		{Sell, 2, 300, "pos=1 avg=100.666667"},
		{Sell, 1, 7, "pos=0 avg=0"},
		{Sell, 1, 10, "pos=-1 avg=10"},
		{Sell, 1, 11, "pos=-2 avg=10.5"},
		{Buy, 1, 50, "pos=-1 avg=10.5"},
		{Buy, 4, 20, "pos=3 avg=20"}, // flipped: the trade's price
		{Sell, 5, 30, "pos=-2 avg=30"},
	}
	for i, s := range steps {
		r.must(tick(aaa, s.px))
		got := describe(r.do(trade(1, s.side, s.qty)))[1]
		want := fmt.Sprintf("filled acct=1 %s %d @%d trade=%d %s FILLED market",
			[...]string{"buy", "sell"}[s.side], s.qty, s.px, i+1, s.position)
		if got != want {
			t.Errorf("step %d: got %q, want %q", i, got, want)
		}
	}
}

func TestAverageRoundsHalfAwayFromZeroInFullWidth(t *testing.T) {
	tests := []struct{ q1, px1, q2, px2, want int64 }{
		{1, 1, 1, 2, 2}, // 1.5
		{2, 1, 1, 2, 1}, // 1.33
		{1, 1, 2, 2, 2}, // 1.67
		{3, 1, 1, 3, 2}, // 1.5
		{1, math.MaxInt64, 1, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64},
		{1 << 40, 1 << 60, 1 << 40, 1<<60 + 2, 1<<60 + 1},
	}
	for _, tt := range tests {
		if got := average(tt.q1, tt.px1, tt.q2, tt.px2); got != tt.want {
			t.Errorf("average(%d@%d, %d@%d) = %d, want %d", tt.q1, tt.px1, tt.q2, tt.px2, got, tt.want)
		}
	}
}
