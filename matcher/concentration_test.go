package matcher

import (
	"fmt"
	"math/big"
	"testing"
)

// narrow is a genesis record in which concentration is the limit that orders meet.
func narrow() *Genesis {
	g := testGenesis()
	g.Limits.MaxConcentrationNotional = 2_000 * unit
	g.Limits.PriceCollarBps = 200_000
	return g
}

// An order is judged with the account's open orders that can execute behind it, at their prices.
func TestOpenOrdersBehindACommandAreJudged(t *testing.T) {
	for _, tt := range []struct {
		name     string
		before   []Command
		last     Command
		old, now RiskReason
	}{
		{"a sale in front of a dearer one", []Command{sell(1, 10, 100)}, sell(1, 11, 10), Accepted,
			ConcentrationLimit},
		{"a sale that just fits", []Command{sell(1, 10, 100)}, sell(1, 10, 10), Accepted, Accepted},
		{"a dearer sale of another account", []Command{sell(2, 10, 100)}, sell(1, 11, 10), Accepted,
			Accepted},
		{"a dearer sale of another security",
			[]Command{with(sell(1, 10, 100), func(c *Command) { c.SecurityID = bbb })}, sell(1, 11, 10),
			Accepted, Accepted},
		{"the dearest of many",
			[]Command{sell(1, 1, 20), sell(2, 9, 210), sell(1, 1, 200), sell(1, 1, 50)}, sell(1, 8, 10),
			Accepted, ConcentrationLimit},
		{"a sale at the market", []Command{sell(1, 10, 100), buy(2, 11, 10)}, market(1, Sell, 11),
			Accepted, ConcentrationLimit},
		{"a market trade in front of a sale", []Command{sell(1, 10, 100)}, trade(1, Sell, 11), Accepted,
			ConcentrationLimit},
		{"a market trade in front of a purchase", []Command{buy(1, 10, 100)}, trade(1, Buy, 11), Accepted,
			ConcentrationLimit},
		{"purchases in turn", []Command{buy(1, 10, 100), buy(1, 90, 1)}, trade(1, Buy, 10), Accepted,
			Accepted},
		{"a purchase behind a dearer one", []Command{buy(1, 10, 100)}, buy(1, 100, 10), Accepted,
			Accepted},
		{"a purchase at the market", []Command{buy(1, 5, 9)}, market(1, Buy, 4), Accepted, Accepted},
		{"a sale that reduces", []Command{trade(1, Buy, 50), sell(1, 20, 200)}, sell(1, 30, 10), Accepted,
			Accepted},
		{"a sale that turns the position over", []Command{trade(1, Buy, 50), sell(1, 20, 200)},
			sell(1, 41, 10), Accepted, ConcentrationLimit},
		{"more by a replace", []Command{sell(1, 10, 10), sell(1, 10, 100)}, replace(1, Sell, 1, 11, 10),
			Accepted, ConcentrationLimit},
		{"the dearest replaced itself", []Command{sell(1, 10, 10), sell(1, 10, 100)},
			replace(1, Sell, 2, 11, 95), Accepted, Accepted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for version, want := range map[uint16]RiskReason{1: tt.old, 2: tt.old, 3: tt.now} {
				r := newRig(t, narrow())
				r.must(tick(aaa, 10))
				for _, c := range tt.before {
					r.must(c)
				}
				c, before := tt.last, r.e.AppliedSeq()
				c.Version = version
				if got := r.e.Judge(&c); got.Reason != want {
					t.Errorf("version %d is explained by %v, want %v", version, got.Reason, want)
				}
				first := r.do(c)[0]
				if first.Reason != want || first.InputSeq != before+1 {
					t.Errorf("version %d: got %v, want %v", version, first.Reason, want)
				}
				// The record has the lowest version from 2 on by whose rules the decision is the same.
				recorded := min(version, RecordVersion)
				if want != tt.old {
					recorded = version3
				}
				if got := first.Cmd().Version; got != recorded {
					t.Errorf("version %d is recorded as %d, want %d", version, got, recorded)
				}
			}
		})
	}
}

// TestEveryExecutionKeepsTheConcentration lets random orders rest, trade, be replaced and be
// cancelled: no execution that makes a position larger carries it beyond the limit at its price.
// What is recorded decides a second engine in the same way.
func TestEveryExecutionKeepsTheConcentration(t *testing.T) {
	resting, late := 0, 0
	for _, bps := range []int64{0, 5_000, 200_000} {
		t.Run(fmt.Sprintf("collar of %d", bps), func(t *testing.T) {
			g := narrow()
			g.Limits.PriceCollarBps = bps
			r, again, rnd := newRig(t, g), newRig(t, g), seeded(t)
			most := big.NewInt(g.Limits.MaxConcentrationNotional)
			for n := range min(int64(runLength()), 20_000) {
				var open []OrderInfo
				r.e.EachOrder(func(o OrderInfo) bool {
					if o.Open() {
						open = append(open, o)
					}
					return o.Open()
				})
				c := wild(rnd, n, open)
				if c.Type == PolicyControl {
					continue
				}
				said := r.do(c)
				record := *said[0].Cmd()
				if record.Version == version3 {
					late++
				}
				record.InputSeq = said[0].Ref
				if got := again.do(record); got[0].Reason != said[0].Reason || len(got) != len(said) ||
					*got[0].Cmd() != *said[0].Cmd() {
					t.Fatalf("command %d %+v: %q, its record decides %q", n, c, describe(said), describe(got))
				}
				for i := range said {
					ev := &said[i]
					if ev.Kind != EventFilled {
						continue
					}
					held := big.NewInt(ev.Detail().PositionQty)
					grows := held.Sign() == 1-2*int(ev.Side)
					if held.Abs(held).Mul(held, big.NewInt(ev.Px)); grows && held.Cmp(most) > 0 {
						t.Fatalf("command %d %+v: a position of %d at %d\n%q", n, c, ev.Detail().PositionQty,
							ev.Px, describe(said))
					}
					if ev.Flags&(EventAggressor|EventMarket) == 0 {
						resting++
					}
				}
			}
		})
	}
	if resting < 100 || late < 10 {
		t.Errorf("%d resting executions and %d late refusals prove too little", resting, late)
	}
}

// TestLookBehindIsBounded: dear orders of others do not make a command slow. Behind so many of them
// the account's open orders count as being as dear.
func TestLookBehindIsBounded(t *testing.T) {
	for _, tt := range []struct {
		others int
		want   RiskReason
	}{{0, Accepted}, {maxBehind, Accepted}, {maxBehind + 1, ConcentrationLimit},
		{4 * maxBehind, ConcentrationLimit}} {
		g := narrow()
		g.Limits.MaxOpenOrders = 4*maxBehind + 8
		g.Accounts = g.Accounts[:1]
		for id := range uint32(tt.others/10 + 1) {
			g.Accounts = append(g.Accounts, GenesisAccount{ID: 100 + id, Enabled: true})
		}
		g.Limits.MaxAccounts = len(g.Accounts)
		r := newRig(t, g)
		r.must(tick(aaa, 10))
		r.must(sell(1, 10, 20))
		for i := range tt.others {
			r.must(sell(100+uint32(i/10), 1, 150+int64(i%8)))
		}
		before := r.e.ladders[0].pages.visits
		said := r.do(sell(1, 11, 10))
		if said[0].Reason != tt.want {
			t.Errorf("behind %d orders: %v, want %v", tt.others, said[0].Reason, tt.want)
		}
		if n := r.e.ladders[0].pages.visits - before; n > maxBehind+32 {
			t.Errorf("behind %d orders it looks at %d", tt.others, n)
		}
		r.refused(sell(1, 90, 10), ConcentrationLimit) // 101 at 20 would be too much
	}
}
