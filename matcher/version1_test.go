package matcher

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"posttrade/ring/must"
)

// version1Flow is a run of records of one version in which the rules that later versions have
// changed decide often: market orders in thin books, sales far below the best bid, ticks and trades
// with times that go back, positions at their limits, and policies with falling versions. It has
// its own random generator, so that no other test changes it.
func version1Flow(version uint16) []Command {
	rnd := rand.New(rand.NewPCG(16, 7))
	type placed struct {
		account, security uint32
		side              Side
	}
	var orders []placed
	flow, now := make([]Command, 0, 20_000), noon
	for len(flow) < cap(flow) {
		now += rnd.Int64N(40)
		c := NewCommand(OrderNew)
		c.AccountID, c.SecurityID = 1+rnd.Uint32N(3), 1+rnd.Uint32N(2)
		c.Side, c.Qty = Side(rnd.Uint32N(2)), 1+rnd.Int32N(60)
		c.LimitPx = (80 + rnd.Int64N(41)) * unit
		switch r := rnd.IntN(100); {
		case r < 50:
			if rnd.IntN(3) == 0 {
				c.LimitPx = 0
			} else if rnd.IntN(8) == 0 {
				c.LimitPx = (100 - 60*int64(c.Side) + 30*(1-int64(c.Side))) * unit
			}
			c.Flags = []uint16{0, 0, 0, FlagIOC, FlagFOK}[rnd.IntN(5)]
			orders = append(orders, placed{c.AccountID, c.SecurityID, c.Side})
		case r < 60:
			c.Type, c.LimitPx = TradeNew, 0
		case r < 85 && len(orders) > 0:
			ref := len(orders) - rnd.IntN(min(len(orders), 60))
			o := orders[ref-1]
			c.Type = []CommandType{OrderCancel, OrderReplace, OrderReplace, ForceFill}[rnd.IntN(4)]
			c.OrderRef = uint32(ref)
			c.AccountID, c.SecurityID, c.Side = o.account, o.security, o.side
		case r < 97:
			c.Type, c.PriceTicks = PriceTick, (85+rnd.Int64N(31))*unit
			c.EventTimeMillis = now - rnd.Int64N(400)
		case r < 98:
			c.Type, c.Side, c.PriceTicks = PolicyControl, Side(oneIf(rnd.IntN(9) == 0)), 1+rnd.Int64N(9)
			c.Qty, c.LimitPx = rnd.Int32N(3)*100, rnd.Int64N(3)*9_000*unit
		default:
			c.Type = SnapshotMark
			now += rnd.Int64N(20_000)
		}
		if c.EventTimeMillis == 0 {
			c.EventTimeMillis = now
		}
		c.Version = version
		flow = append(flow, c)
	}
	return flow
}

// decidedHash returns what an engine makes of a flow: the hash of its events, the hash of its
// state, and the number of events of each reason.
func decidedHash(t *testing.T, flow []Command) (events, state string, reasons [ReasonCount]int) {
	t.Helper()
	e := must.Get(New(crowded()))(t)
	defer e.Close()
	sum := sha256.New()
	add := hasher(sum)
	out := NewOutlet(16, func(said []Event) {
		add(said)
		for i := range said {
			reasons[said[i].Reason]++
		}
	})
	for i := range flow {
		e.Apply(&flow[i], out)
	}
	out.Flush()
	return fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", e.StateHash()), reasons
}

// The results of the flow in the last build that knew only version 1. They never change.
const (
	version1Events = "f3441afff12fb8d0c78a20efaee0d7886b3a64006d96dd0c1ca2b0b2dc012a01"
	version1State  = "754141fec4949d827d495a5855d0f40c5ac354cf97cb901e694453a3d5ec030d"
)

// A journal of an older build replays to what that build decided, to the byte.
func TestRecordsOfVersion1AreDecidedAsTheyWere(t *testing.T) {
	events, state, reasons := decidedHash(t, version1Flow(1))
	if events != version1Events || state != version1State {
		t.Errorf("events %s, want %s\nstate %s, want %s", events, version1Events, state, version1State)
	}
	for _, r := range []RiskReason{PriceStale, PriceCollar, OrderNotional, CreditLimit,
		PositionLimit, ConcentrationLimit, SelfTradePrevented, KillSwitch} {
		if reasons[r] < 10 {
			t.Errorf("the flow meets %v %d times: it proves too little", r, reasons[r])
		}
	}
}
