package matcher

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// auditor computes the most that every account may reach. It reads the engine's books before and
// after a command, and what the command did, and uses none of the engine's formulas.
type auditor struct {
	limits  Limits
	policy  PolicyInfo
	orders  map[uint32]OrderInfo // open before the command
	before  map[uint32]AccountInfo
	held    map[[2]uint32]int64 // by account and security, before
	markets map[uint32]int64    // market prices before
	bests   map[uint32][2]int64 // best prices before, by side
	passed  int                 // reductions that a limit would have refused
}

// look reads the engine's state.
func (a *auditor) look(e *Engine) {
	a.policy = e.Policy()
	a.orders, a.before = map[uint32]OrderInfo{}, map[uint32]AccountInfo{}
	a.held, a.markets, a.bests = map[[2]uint32]int64{}, map[uint32]int64{}, map[uint32][2]int64{}
	e.EachOrder(func(o OrderInfo) bool {
		if o.Open() {
			a.orders[o.Ref] = o
		}
		return o.Open()
	})
	e.EachAccount(func(x AccountInfo) bool { a.before[x.ID] = x; return true })
	e.EachPosition(func(p PositionInfo) bool {
		a.held[[2]uint32{p.AccountID, p.SecurityID}] = p.Qty
		return true
	})
	e.EachSecurity(func(s SecurityInfo) bool {
		a.markets[s.ID] = s.LastPx
		var best [2]int64
		for _, side := range []Side{Buy, Sell} {
			e.EachLevel(s.ID, side, func(px, _ int64, _ int) bool { best[side] = px; return false })
		}
		a.bests[s.ID] = best
		return true
	})
}

// reducing reports whether an accepted command only reduced a position, together with all open
// orders of its account on that side.
func (a *auditor) reducing(c *Command, leaves int32) bool {
	after := a.held[[2]uint32{c.AccountID, c.SecurityID}]
	long := after > 0
	if after == 0 || long != (c.Side == Sell) {
		return false
	}
	after += signed(c.Side, leaves)
	for _, o := range a.orders {
		if o.AccountID == c.AccountID && o.SecurityID == c.SecurityID && o.Side == c.Side &&
			o.Ref != c.OrderRef {
			after += signed(o.Side, o.Leaves)
		}
	}
	return after == 0 || long == (after > 0)
}

// judge compares the effects of an accepted command with every limit.
func (a *auditor) judge(e *Engine, c *Command, said []Event) error {
	leaves := c.Qty
	if o, ok := a.orders[c.OrderRef]; ok && c.Type == OrderReplace {
		leaves -= o.Qty - o.Leaves
	}
	reducing := a.reducing(c, leaves)
	if err := a.executions(c, said, reducing); err != nil {
		return err
	}
	var failed error
	e.EachAccount(func(x AccountInfo) bool {
		was := a.before[x.ID]
		for side, now := range [2]int64{x.Executed + x.ReservedBuys, x.ReservedSells - x.Executed} {
			then := [2]int64{was.Executed + was.ReservedBuys, was.ReservedSells - was.Executed}[side]
			if now <= max(a.limits.CreditLimit, then) {
				continue
			}
			if a.passed++; !reducing || x.ID != c.AccountID || Side(side) != c.Side {
				failed = fmt.Errorf("account %d uses credit of %d on side %d, after %d", x.ID, now, side, then)
			}
		}
		return failed == nil
	})
	if failed != nil {
		return failed
	}
	return a.positions(e)
}

// executions checks three limits of one command: what it executed is worth no more than an order
// may be, a market order went no further than its collar, and no purchase or sale of its own
// carried a position beyond the maximum concentration.
func (a *auditor) executions(c *Command, said []Event, reducing bool) error {
	worth := new(big.Int)
	for i := range said {
		ev := &said[i]
		if ev.Kind != EventFilled || ev.Flags&(EventAggressor|EventMarket) == 0 {
			continue
		}
		worth.Add(worth, new(big.Int).Mul(big.NewInt(ev.Px), big.NewInt(int64(ev.Qty))))
		held := new(big.Int).SetInt64(ev.Detail().PositionQty)
		grows := held.Sign() == 1 == (c.Side == Buy)
		held.Abs(held).Mul(held, big.NewInt(ev.Px))
		if grows && held.Sign() != 0 && held.Cmp(big.NewInt(a.policy.MaxConcentrationNotional)) > 0 {
			return fmt.Errorf("a position of %d at %d", ev.Detail().PositionQty, ev.Px)
		}
		if c.Type != OrderNew || c.LimitPx > 0 || a.limits.PriceCollarBps == 0 {
			continue
		}
		price := a.markets[c.SecurityID]
		if price == 0 {
			price = a.bests[c.SecurityID][c.Side.Opposite()]
		}
		off := (ev.Px - price) * (1 - 2*int64(c.Side))
		if off*10_000 > price*a.limits.PriceCollarBps {
			return fmt.Errorf("a market order judged at %d executed at %d", price, ev.Px)
		}
	}
	if worth.Cmp(big.NewInt(a.limits.MaxOrderNotional)) > 0 {
		return fmt.Errorf("one command executed %d", worth)
	}
	return nil
}

// positions checks that no account could hold more than it may if all its orders of either side
// were executed, unless it could before.
func (a *auditor) positions(e *Engine) error {
	reach := func(orders map[uint32]OrderInfo, held map[[2]uint32]int64) map[[3]uint32]int64 {
		most := map[[3]uint32]int64{}
		for at, qty := range held {
			most[[3]uint32{at[0], at[1], 0}], most[[3]uint32{at[0], at[1], 1}] = qty, -qty
		}
		for _, o := range orders {
			most[[3]uint32{o.AccountID, o.SecurityID, uint32(o.Side)}] += int64(o.Leaves)
		}
		return most
	}
	then := reach(a.orders, a.held)
	policy := a.policy
	a.look(e)
	for at, now := range reach(a.orders, a.held) {
		if now > max(policy.MaxPositionQty, then[at]) {
			return fmt.Errorf("account %d could hold %d of security %d on side %d, after %d", at[0], now,
				at[1], at[2], then[at])
		}
	}
	return nil
}

// wild returns a command of a flow with widely varying prices, so that books are thin, far from the
// market price and often crossed by it.
func wild(rnd *rand.Rand, n int64, orders []OrderInfo) Command {
	c := NewCommand(OrderNew)
	c.AccountID, c.SecurityID = 1+rnd.Uint32N(3), 1+rnd.Uint32N(2)
	c.Side, c.Qty = Side(rnd.Uint32N(2)), 1+rnd.Int32N(1<<rnd.IntN(8))
	c.LimitPx = (1 + rnd.Int64N(1<<rnd.IntN(10))) * unit
	c.EventTimeMillis = noon + n - rnd.Int64N(3)
	switch r := rnd.IntN(100); {
	case r < 35:
		c.Flags = []uint16{0, 0, 0, FlagIOC, FlagFOK, FlagPostOnly}[rnd.IntN(6)]
	case r < 55:
		c.LimitPx = 0
		c.Flags = []uint16{0, 0, FlagIOC, FlagFOK}[rnd.IntN(4)]
	case r < 63:
		c.Type = TradeNew
	case r < 83 && len(orders) > 0:
		o := orders[rnd.IntN(len(orders))]
		c.Type = []CommandType{OrderCancel, OrderReplace, OrderReplace}[rnd.IntN(3)]
		c.OrderRef, c.AccountID, c.SecurityID, c.Side = o.Ref, o.AccountID, o.SecurityID, o.Side
		c.Qty = o.Qty - o.Leaves + 1 + rnd.Int32N(o.Leaves+3)
	case r < 98:
		c.Type, c.PriceTicks = PriceTick, c.LimitPx
	default:
		c.Type, c.Side, c.PriceTicks = PolicyControl, 0, n
		c.Qty, c.LimitPx = []int32{40, 150, 400}[rnd.IntN(3)],
			[]int64{2_000, 12_000, 60_000}[rnd.IntN(3)]*unit
	}
	return c
}

// No sequence of accepted commands leaves an account beyond a limit that was judged.
func TestNoFlowLeavesAnAccountBeyondAJudgedLimit(t *testing.T) {
	for _, bps := range []int64{0, 500, 5_000, 200_000} {
		t.Run(fmt.Sprintf("collar of %d", bps), func(t *testing.T) {
			g := testGenesis()
			g.Limits.MaxOrderNotional = 4_000 * unit
			g.Limits.CreditLimit = 5_000 * unit
			g.Limits.PriceCollarBps = bps
			r, rnd := newRig(t, g), seeded(t)
			a := &auditor{limits: g.Limits}
			kinds, reasons := [16]int{}, [ReasonCount]int{}
			for n := range min(int64(runLength()), 20_000) {
				var open []OrderInfo
				r.e.EachOrder(func(o OrderInfo) bool {
					if o.Open() {
						open = append(open, o)
					}
					return o.Open()
				})
				c := wild(rnd, n, open)
				a.look(r.e)
				said := r.do(c)
				for i := range said {
					kinds[said[i].Kind]++
					reasons[said[i].Reason]++
				}
				if said[0].Kind == EventRejected {
					continue
				}
				if err := a.judge(r.e, &c, said); err != nil {
					t.Fatalf("command %d %+v: %v\n%q", n, c, err, describe(said))
				}
			}
			t.Logf("kinds %v, reasons %v, %d reductions passed", kinds[1:10], reasons, a.passed)
			if a.passed == 0 {
				t.Error("no reduction passes a credit limit: the flow proves too little")
			}
			for _, reason := range []RiskReason{OrderNotional, CreditLimit, PositionLimit,
				ConcentrationLimit, SelfTradePrevented} {
				if reasons[reason] == 0 {
					t.Errorf("the flow never meets %v: it proves too little", reason)
				}
			}
		})
	}
}

func signed(side Side, qty int32) int64 {
	if side == Sell {
		return -int64(qty)
	}
	return int64(qty)
}
