package matcher

import (
	"fmt"
	"testing"
)

func TestEngineControls(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(control(AccountControl, 9, 0, 1), "applied acct=9 sec=0")
	r.want(buy(9, 1, 100), "accepted ref=1 acct=9 buy 1 @100 rests")
	r.want(control(AccountControl, 9, 0, 0), "applied acct=9 sec=0")
	r.refused(buy(9, 1, 100), AccountDisabled)
	r.want(control(AccountControl, 9, 0, 2), "rejected acct=9 sec=0 buy INVALID")
	for id := uint32(10); id < 13; id++ {
		r.must(control(AccountControl, id, 0, 1))
	}
	r.want(control(AccountControl, 13, 0, 1), "rejected acct=13 sec=0 sell CAPACITY")

	r.want(control(SecurityControl, 0, aaa, SecurityEnabled|SecurityHalted), "applied")
	r.refused(buy(1, 1, 100), SecurityDisabled)
	r.want(control(SecurityControl, 0, aaa, 0), "applied")
	r.refused(buy(1, 1, 100), SecurityDisabled)
	r.want(control(SecurityControl, 0, aaa, SecurityEnabled), "applied")
	r.must(buy(1, 1, 100))
	r.want(control(SecurityControl, 0, aaa, 16), "rejected buy INVALID")
	r.want(control(SecurityControl, 0, 6, 1), "rejected sec=6 sell UNKNOWN_SECURITY")
	r.want(control(SecurityControl, 0, 0, 1), "rejected sec=0 sell UNKNOWN_SECURITY")

	r.want(control(PolicyControl, 0, 0, 2), "rejected sec=0 buy INVALID")
	r.want(with(control(PolicyControl, 0, 0, 0), func(c *Command) { c.Qty = -1 }),
		"rejected sec=0 buy -1 INVALID")
	r.want(with(control(PolicyControl, 0, 0, 0), func(c *Command) { c.LimitPx = -unit }),
		"rejected sec=0 buy @-1 INVALID")
	set := with(control(PolicyControl, 0, 0, 1),
		func(c *Command) { c.PriceTicks, c.Qty, c.LimitPx = 7, 20, 30*unit })
	r.want(set, "applied sec=0 20 @30")
	if got, want := r.e.Policy(), (PolicyInfo{7, true, 20, 30 * unit}); got != want {
		t.Errorf("policy %+v, want %+v", got, want)
	}
	// A control that comes late or twice changes nothing, whatever it carries.
	for _, version := range []int64{7, 6, 1, 0, -1} {
		r.want(policyOf(version, 0), "rejected sec=0 buy INVALID")
	}
	if got, want := r.e.Policy(), (PolicyInfo{7, true, 20, 30 * unit}); got != want {
		t.Errorf("policy %+v, want %+v", got, want)
	}
	r.must(policyOf(8, 0)) // zeros leave the limits as they are
	if got, want := r.e.Policy(), (PolicyInfo{8, false, 20, 30 * unit}); got != want {
		t.Errorf("policy %+v, want %+v", got, want)
	}
	r.must(with(policyOf(1, 0), func(c *Command) { c.Version = 1 })) // as an older build decided it
	if got, want := r.e.Policy(), (PolicyInfo{1, false, 20, 30 * unit}); got != want {
		t.Errorf("policy %+v, want %+v", got, want)
	}
}

// A control that keeps a flag sets it only for an account or a security that is not known yet. An
// older record has no such bit.
func TestEngineKeepsWhatAControlDoesNotSay(t *testing.T) {
	r := newRig(t, testGenesis())
	keep := func(c Command, bits Side) Command { c.Side |= bits; return c }
	r.must(keep(control(AccountControl, 9, 0, 0), KeepEnabled)) // opened as it says
	r.refused(buy(9, 1, 100), AccountDisabled)
	r.must(keep(control(AccountControl, 9, 0, 1), KeepEnabled))
	r.refused(buy(9, 1, 100), AccountDisabled)
	r.must(control(AccountControl, 9, 0, 1))
	r.must(keep(control(AccountControl, 9, 0, 0), KeepEnabled))
	r.must(buy(9, 1, 100))

	states := []Side{0, SecurityEnabled, SecurityHalted, SecurityEnabled | SecurityHalted}
	for _, is := range states {
		for _, says := range states {
			for _, kept := range []Side{0, KeepEnabled, KeepHalted, KeepEnabled | KeepHalted} {
				r.must(control(SecurityControl, 0, aaa, is))
				r.must(keep(control(SecurityControl, 0, aaa, says), kept))
				flags := kept >> 2
				want := is&flags | says&^flags
				if got := Side(r.e.securities.rows[aaa-1].enabledColumn()); got != want {
					t.Errorf("%d, then %d keeping %d: %d, want %d", is, says, flags, got, want)
				}
			}
		}
	}
	r.must(NewSymbolRegister("NEW"))
	const id = 6
	r.must(keep(control(SecurityControl, 0, id, SecurityEnabled), KeepEnabled|KeepHalted))
	if got := r.e.securities.rows[id-1].enabledColumn(); got != 1 {
		t.Errorf("a security that was not known has flags %d", got)
	}
	about := map[CommandType]string{AccountControl: "acct=9 sec=0 "}
	for _, c := range []Command{control(AccountControl, 9, 0, 0),
		control(SecurityControl, 0, aaa, 0)} {
		c.Version = 1
		r.want(keep(c, KeepEnabled), "rejected "+about[c.Type]+"buy INVALID")
	}
}

func TestEngineRestrictionCancelsRestingOrdersByReference(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 1, 100))
	r.must(sell(2, 2, 105))
	r.must(buy(3, 3, 101))
	r.must(sell(1, 4, 106))
	other := with(buy(1, 9, 100), func(c *Command) { c.SecurityID = bbb })
	kept := r.must(other)
	r.must(cancel(1, 4))
	r.want(control(RestrictionControl, 0, aaa, 1),
		"applied",
		"canceled ref=1 acct=1 buy 1 @100 leaves=1 CANCELED RESTRICTED",
		"canceled ref=2 acct=2 sell 2 @105 leaves=2 CANCELED RESTRICTED",
		"canceled ref=3 acct=3 buy 3 @101 leaves=3 CANCELED RESTRICTED")
	r.refused(buy(1, 1, 100), Restricted)
	r.want(control(RestrictionControl, 0, aaa, 1), "applied")
	r.want(control(RestrictionControl, 0, aaa, 0), "applied")
	r.must(buy(1, 1, 100))
	r.want(control(RestrictionControl, 0, aaa, 0), "applied") // lifting cancels nothing
	if o, ok := r.e.Order(kept); !ok || !o.Open() {
		t.Error("the restriction reached another security's order")
	}
	r.want(control(RestrictionControl, 0, aaa, 2), "rejected buy INVALID")
	r.want(control(RestrictionControl, 0, 6, 1), "rejected sec=6 sell UNKNOWN_SECURITY")
}

func TestEngineSymbols(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(NewSymbolRegister("NEW"), "applied sec=6")
	r.want(NewSymbolRegister("NEW"), "applied sec=6") // known: keeps its id
	r.want(NewSymbolRegister("AAA"), "applied")
	order := with(buy(1, 1, 100), func(c *Command) { c.SecurityID = 6 })
	r.refused(order, UnknownSecurity) // no control has made it tradable yet
	r.refused(tick(6, 100), UnknownSecurity)
	r.refused(control(RestrictionControl, 0, 6, 1), UnknownSecurity)
	r.must(control(SecurityControl, 0, 6, SecurityEnabled))
	r.must(order)
	r.want(NewSymbolRegister("X1"), "applied sec=7")
	r.want(NewSymbolRegister("X2"), "applied sec=8")
	r.want(NewSymbolRegister("X3"), "rejected sec=0 buy CAPACITY")
	r.want(NewSymbolRegister("X2"), "applied sec=8")
	if id, ok := r.e.Security("X1"); id != 7 || !ok {
		t.Errorf("X1 is %d, %v", id, ok)
	}
	for _, unknown := range []string{"X3", "", "no spaces", "123456789012345678901234567890123"} {
		if id, ok := r.e.Security(unknown); ok {
			t.Errorf("%q is %d, want none", unknown, id)
		}
	}
	if got := r.e.Ticker(7) + r.e.Ticker(9) + r.e.Ticker(0); got != "X1" {
		t.Errorf("tickers %q, want X1 and two empty ones", got)
	}
}

// Apply takes what Decode would refuse. It also answers a symbol that is not valid.
func TestEngineRefusesAnUnreadableSymbol(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(NewSymbolRegister(""), "rejected sec=0 buy INVALID")
	r.want(NewSymbolRegister("A B"), "rejected sec=0 buy INVALID")
}

func TestEngineMarkersChangeNothing(t *testing.T) {
	r := newRig(t, testGenesis())
	r.want(NewCommand(SnapshotMark), "applied sec=0")
	r.want(NewRiskExtract(20_000, 3), "applied sec=0")
	r.want(with(NewCommand(SwapBook), func(c *Command) { c.AccountID = 1 }),
		"rejected acct=1 sec=0 buy INVALID")
	r.want(with(NewCommand(SwaptionBook), func(c *Command) { c.AccountID = 1 }),
		"rejected acct=1 sec=0 buy INVALID")
	if got := r.e.AppliedSeq(); got != 4 {
		t.Errorf("applied %d, want 4", got)
	}
}

func TestEngineEventCarriesTheSequencedCommand(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(buy(1, 5, 100))
	c := with(sell(2, 7, 100), func(c *Command) {
		c.InputSeq, c.EventTimeMillis, c.LeaderEpoch = 0xc0ffee, noon+7, 3
	})
	said := r.do(c)
	first := &said[0]
	want := c
	want.InputSeq, want.Version = 2, RecordVersion
	if *first.Cmd() != want {
		t.Errorf("command %+v, want %+v", *first.Cmd(), want)
	}
	if first.Ref != 0xc0ffee || first.InputSeq != 2 || first.TimeMillis != noon+7 {
		t.Errorf("first event %+v", first)
	}
	for i := range said {
		ev := &said[i]
		if got, want := ev.Flags&EventFirst != 0, i == 0; got != want {
			t.Errorf("event %d is first: %v, want %v", i, got, want)
		}
		if got, want := ev.Flags&EventLast != 0, i == len(said)-1; got != want {
			t.Errorf("event %d is last: %v, want %v", i, got, want)
		}
		if ev.InputSeq != 2 || ev.TimeMillis != noon+7 || i > 0 && ev.Ref != 0 {
			t.Errorf("event %d: %+v", i, ev)
		}
	}
	fill := said[2].Fill()
	if fill != (Fill{
		TradeSeq: 2, InputSeq: 2, TimeMillis: noon + 7, Px: 100 * unit, OrderRef: 1, AccountID: 1,
		SecurityID: aaa, Qty: 5, CounterRef: 2, Side: Buy,
	}) {
		t.Errorf("fill %+v", fill)
	}
}

// The newest event time wins; of two prices with one event time the later sequence wins. The engine
// accepts an older price and marks it as one that changes nothing. In version 1 the later sequence
// wins.
func TestEngineMarketPriceIsTheNewestOfTradesAndTicks(t *testing.T) {
	r := newRig(t, testGenesis())
	old := func(c Command) Command { c.Version = 1; return c }
	price := func() (last, trade, time int64) {
		r.e.EachSecurity(func(s SecurityInfo) bool {
			last, trade, time = s.LastPx/unit, s.LastTradePx/unit, s.LastPxTimeMillis
			return false
		})
		return
	}
	expect := func(last, trade, time int64) {
		t.Helper()
		if l, x, w := price(); l != last || x != trade || w != time {
			t.Errorf("market price %d, last trade %d at %d, want %d, %d, %d", l, x, w, last, trade, time)
		}
	}
	r.must(tick(aaa, 100))
	expect(100, 0, noon)
	r.must(sell(1, 5, 101))
	r.must(sell(1, 5, 102))
	r.now -= 1000
	r.must(buy(2, 8, 102))
	expect(100, 102, noon)
	r.want(tick(aaa, 99), "applied @99 late")
	expect(100, 102, noon)
	r.want(trade(3, Buy, 1), "booked acct=3 buy 1 @100",
		"filled acct=3 buy 1 @100 trade=5 pos=1 avg=100 FILLED market late")
	expect(100, 100, noon)
	r.want(force(1, 2, 1, 103), "applied ref=2 acct=1 1 @103",
		"filled ref=2 acct=1 sell 1 @103 trade=6 leaves=1 pos=-9 avg=101.555556 PARTIALLY_FILLED "+
			"forced late")
	expect(100, 103, noon)
	r.must(old(tick(aaa, 99)))
	expect(99, 103, noon-1000)
	r.must(old(buy(2, 1, 102)))
	expect(102, 102, noon-1000)
	r.now++
	r.want(tick(aaa, 98), "applied @98")
	r.want(tick(aaa, 97), "applied @97")
	expect(97, 102, noon-999)
	r.now = -5 // before 1970 is a time too
	r.want(with(tick(bbb, 7), func(c *Command) { c.EventTimeMillis = -9 }), "applied sec=2 @7")
	r.want(with(tick(bbb, 8), func(c *Command) { c.EventTimeMillis = -10 }), "applied sec=2 @8 late")
	r.want(tick(aaa, 0), "rejected buy INVALID")
	r.want(tick(aaa, -1), "rejected buy INVALID")
	r.want(tick(99, 5), "rejected sec=99 buy UNKNOWN_SECURITY")
	r.now = noon
	// Prices of feeds have no grid.
	r.want(with(tick(aaa, 1), func(c *Command) { c.PriceTicks = 1_234_567 }), "applied @1.234567")
}

func TestEngineRetainsTheYoungestTerminalOrders(t *testing.T) {
	g := testGenesis()
	g.Limits.RetainedOrders = 3
	r := newRig(t, g)
	for i := range 5 {
		r.refused(buy(99, int32(i+1), 1), UnknownAccount)
	}
	var refs []uint32
	r.e.EachOrder(func(o OrderInfo) bool { refs = append(refs, o.Ref); return true })
	if fmt.Sprint(refs) != "[3 4 5]" {
		t.Errorf("retained %v, want 3 4 5", refs)
	}
	if _, ok := r.e.Order(2); ok {
		t.Error("order 2 is still there")
	}
	if o, ok := r.e.Order(4); !ok || o.Status != StatusRejected || o.Reason != UnknownAccount ||
		o.AccountID != 99 {
		t.Errorf("order 4 is %+v, %v", o, ok)
	}
}

func TestEngineWithoutRetainedOrders(t *testing.T) {
	g := testGenesis()
	g.Limits.RetainedOrders = 0
	r := newRig(t, g)
	r.must(sell(1, 5, 100))
	r.must(sell(2, 5, 100))
	r.must(buy(1, 7, 100)) // meets its own order, then fills
	r.must(cancel(1, 3))
	r.refused(buy(99, 1, 1), UnknownAccount)
	if got := r.e.Counts(); got.RetainedOrders != 0 || got.OpenOrders != 0 || r.e.orders.live() != 0 {
		t.Errorf("%+v, %d in the pool; want none", got, r.e.orders.live())
	}
}

func TestEngineReadOutStopsWhenAsked(t *testing.T) {
	r := newRig(t, testGenesis())
	r.must(keyed(buy(1, 5, 100), 11))
	r.must(keyed(buy(1, 5, 99), 12))
	r.must(sell(2, 7, 100))
	r.must(keyed(sell(2, 1, 105), 13))
	r.refused(buy(4, 1, 1), AccountDisabled)
	calls := 0
	stop := func() bool { calls++; return false }
	r.e.EachOrder(func(OrderInfo) bool { return stop() })
	r.e.EachPosition(func(PositionInfo) bool { return stop() })
	r.e.EachAccount(func(AccountInfo) bool { return stop() })
	r.e.EachSecurity(func(SecurityInfo) bool { return stop() })
	r.e.EachKey(func(KeyInfo) bool { return stop() })
	r.e.EachLevel(aaa, Buy, func(int64, int64, int) bool { return stop() })
	if calls != 6 {
		t.Errorf("%d calls, want one each", calls)
	}
	calls = 0
	r.e.EachOrder(func(o OrderInfo) bool { calls++; return o.Open() })
	if calls != 4 { // three open, and the first that is not
		t.Errorf("%d orders until the first that is not open, want 4", calls)
	}
	r.e.EachLevel(0, Buy, func(int64, int64, int) bool {
		t.Error("security 0 has a level")
		return true
	})
	r.e.EachLevel(aaa, 2, func(int64, int64, int) bool { t.Error("side 2 has a level"); return true })
	var depth []string
	for _, side := range []Side{Buy, Sell} {
		r.e.EachLevel(aaa, side, func(px, qty int64, orders int) bool {
			depth = append(depth, fmt.Sprintf("%d:%sx%d/%d", side, trim(px), qty, orders))
			return true
		})
	}
	if got, want := fmt.Sprint(depth), "[0:99x5/1 1:100x2/1 1:105x1/1]"; got != want {
		t.Errorf("depth %s, want %s", got, want)
	}
	var positions []string
	r.e.EachPosition(func(p PositionInfo) bool {
		positions = append(positions, fmt.Sprintf("%d/%d:%d@%s", p.AccountID, p.SecurityID, p.Qty,
			trim(p.AverageCost)))
		return true
	})
	if got, want := fmt.Sprint(positions), "[2/1:-5@100 1/1:5@100]"; got != want {
		t.Errorf("positions %s, want %s", got, want)
	}
	var accounts []AccountInfo
	r.e.EachAccount(func(a AccountInfo) bool { accounts = append(accounts, a); return true })
	limit := r.e.RiskLimits()[LimitCredit]
	if got, want := accounts[0], (AccountInfo{ID: 1, Enabled: true, Executed: 500 * unit,
		ReservedBuys: 495 * unit, CreditUsed: 995 * unit, CreditLimit: limit}); got != want {
		t.Errorf("account %+v, want %+v", got, want)
	}
	if got, want := accounts[1], (AccountInfo{ID: 2, Enabled: true, Executed: -500 * unit,
		ReservedSells: 305 * unit, CreditUsed: 805 * unit, CreditLimit: limit}); got != want {
		t.Errorf("account %+v, want %+v", got, want)
	}
	var keys []KeyInfo
	r.e.EachKey(func(k KeyInfo) bool { keys = append(keys, k); return true })
	if got, want := fmt.Sprint(keys),
		"[{11 0 1 ACCEPTED true 1} {12 0 2 ACCEPTED true 1} {13 0 4 ACCEPTED true 2}]"; got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
}
