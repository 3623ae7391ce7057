package matcher

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// testGenesis is a small universe: accounts 1 to 4 (4 disabled), AAA, BBB and CCC tradable, DIS
// disabled, HLT halted. Limits are out of reach unless a test changes them.
func testGenesis() *Genesis {
	return &Genesis{
		Format: GenesisFormat,
		Accounts: []GenesisAccount{
			{ID: 1, Enabled: true}, {ID: 2, Enabled: true}, {ID: 3, Enabled: true}, {ID: 4},
		},
		Securities: []GenesisSecurity{
			{Ticker: "AAA", Enabled: true}, {Ticker: "BBB", Enabled: true}, {Ticker: "CCC", Enabled: true},
			{Ticker: "DIS"}, {Ticker: "HLT", Enabled: true, Halted: true},
		},
		Limits: Limits{
			MaxOrderQty: 1_000_000, MaxOrderNotional: 1e15, MaxPositionQty: 1_000_000,
			MaxConcentrationNotional: 5e15, CreditLimit: 5e15,
			PriceMaxAgeMillis: 30_000, PriceCollarBps: 5_000,
			IdempotencyCapacity: 64, MaxAccounts: 8, MaxSecurities: 8, MaxContracts: 8,
			MaxOpenOrders: 64, RetainedOrders: 32,
		},
		TickPx: 1000,
	}
}

const (
	aaa, bbb, ccc, disabledSecurity, haltedSecurity = 1, 2, 3, 4, 5

	unit  = PriceScale // one currency unit
	noon  = int64(1_700_000_000_000)
	noKey = 0
)

// rig is an engine and all its events.
type rig struct {
	t      testing.TB
	e      *Engine
	out    *Outlet
	said   []Event // of the last command
	now    int64
	reread bool // restore the engine from its own snapshot before every command
}

func newRig(t testing.TB, g *Genesis) *rig {
	t.Helper()
	e := must.Get(New(g))(t)
	r := &rig{t: t, e: e, now: noon}
	r.out = NewOutlet(8, func(events []Event) { r.said = append(r.said, events...) })
	t.Cleanup(func() { r.e.Close() })
	return r
}

// do applies a command at the rig's time and returns its events.
func (r *rig) do(c Command) []Event {
	r.t.Helper()
	if c.TemplateID == TemplateCommand && c.EventTimeMillis == 0 {
		c.EventTimeMillis = r.now
	}
	if r.reread {
		r.e = r.restored()
	}
	r.said = r.said[:0]
	r.e.Apply(&c, r.out)
	r.out.Flush()
	if err := r.e.check(); err != nil {
		r.t.Fatalf("after %+v: %v", c, err)
	}
	return r.said
}

// restored returns a new engine made from the rig's own snapshot; the old one is closed.
func (r *rig) restored() *Engine {
	r.t.Helper()
	var b bytes.Buffer
	must.OK(r.t, r.e.WriteSnapshot(&b))
	e := must.Get(ReadSnapshot(r.e.Genesis(), &b))(r.t)
	r.e.Close()
	return e
}

// want applies a command and compares all its events.
func (r *rig) want(c Command, lines ...string) {
	r.t.Helper()
	got := describe(r.do(c))
	if !slices.Equal(got, lines) {
		r.t.Errorf("%+v\n got %s\nwant %s", c, strings.Join(got, "\n     "),
			strings.Join(lines, "\n     "))
	}
}

// must applies a command that may not be refused, and returns its order.
func (r *rig) must(c Command) uint32 {
	r.t.Helper()
	said := r.do(c)
	if said[0].Kind == EventRejected {
		r.t.Fatalf("%+v was refused: %v", c, said[0].Reason)
	}
	return said[0].OrderRef
}

// refused applies a command and compares the reason of its refusal.
func (r *rig) refused(c Command, want RiskReason) {
	r.t.Helper()
	said := r.do(c)
	if len(said) != 1 || said[0].Kind != EventRejected || said[0].Reason != want {
		r.t.Errorf("%+v\n got %q, want a refusal with %v", c, describe(said), want)
	}
}

// describe turns events into text: every field that is not zero.
func describe(events []Event) []string {
	var lines []string
	for i := range events {
		ev := &events[i]
		line := map[EventKind]string{
			EventAccepted: "accepted", EventRejected: "rejected", EventFilled: "filled",
			EventCanceled: "canceled", EventReplaced: "replaced", EventRested: "rested",
			EventApplied: "applied", EventBooked: "booked", EventContract: "contract",
		}[ev.Kind]
		add := func(format string, value any, show bool) {
			if show {
				line += fmt.Sprintf(" "+format, value)
			}
		}
		add("ref=%d", ev.OrderRef, ev.OrderRef != 0)
		add("acct=%d", ev.AccountID, ev.AccountID != 0)
		add("sec=%d", ev.SecurityID, ev.SecurityID != aaa)
		add("%s", [...]string{"buy", "sell"}[ev.Side&1], ev.Kind != EventApplied)
		add("%d", ev.Qty, ev.Qty != 0)
		add("@%s", trim(ev.Px), ev.Px != 0)
		add("trade=%d", ev.TradeSeq, ev.TradeSeq != 0)
		if ev.Flags&EventFirst == 0 {
			d := ev.Detail()
			add("leaves=%d", d.Leaves, d.Leaves != 0)
			add("counter=%d", d.CounterRef, d.CounterRef != 0)
			if ev.Kind == EventFilled {
				line += fmt.Sprintf(" pos=%d avg=%s", d.PositionQty, trim(d.AverageCost))
			}
		}
		add("%v", ev.Status, ev.Status != StatusNew)
		add("%v", ev.Reason, ev.Reason != Accepted)
		for _, f := range []struct {
			bit  uint16
			name string
		}{
			{EventAggressor, "aggressor"}, {EventRests, "rests"}, {EventKeptPlace, "kept"},
			{EventMarket, "market"}, {EventForced, "forced"}, {EventLate, "late"},
		} {
			add("%s", f.name, ev.Flags&f.bit != 0)
		}
		lines = append(lines, line)
	}
	return lines
}

// trim writes a price in currency units.
func trim(px int64) string {
	s := fmt.Sprintf("%d.%06d", px/unit, px%unit)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// buy and sell are limit orders for AAA at a price in whole currency units.
func buy(account uint32, qty int32, px int64) Command  { return limit(account, Buy, qty, px) }
func sell(account uint32, qty int32, px int64) Command { return limit(account, Sell, qty, px) }

func limit(account uint32, side Side, qty int32, px int64) Command {
	c := NewCommand(OrderNew)
	c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, aaa, side, qty, px*unit
	return c
}

// with returns a command after a change.
func with(c Command, change func(*Command)) Command {
	change(&c)
	return c
}

func flags(c Command, f uint16) Command { c.Flags = f; return c }
func keyed(c Command, key int64) Command {
	c.PriceTicks = key
	return c
}

func market(account uint32, side Side, qty int32) Command { return limit(account, side, qty, 0) }

func cancel(account, ref uint32) Command {
	c := NewCommand(OrderCancel)
	c.AccountID, c.OrderRef = account, ref
	return c
}

func replace(account uint32, side Side, ref uint32, qty int32, px int64) Command {
	c := limit(account, side, qty, px)
	c.Type, c.OrderRef = OrderReplace, ref
	return c
}

func force(account, ref uint32, qty int32, px int64) Command {
	c := NewCommand(ForceFill)
	c.AccountID, c.OrderRef, c.Qty, c.LimitPx = account, ref, qty, px*unit
	return c
}

func tick(security uint32, px int64) Command {
	c := NewCommand(PriceTick)
	c.SecurityID, c.PriceTicks = security, px*unit
	return c
}

func trade(account uint32, side Side, qty int32) Command {
	c := NewCommand(TradeNew)
	c.AccountID, c.SecurityID, c.Side, c.Qty = account, aaa, side, qty
	return c
}

func control(t CommandType, account, security uint32, side Side) Command {
	c := NewCommand(t)
	c.AccountID, c.SecurityID, c.Side, c.PriceTicks = account, security, side, 1
	return c
}

// policyOf sets the kill switch.
func policyOf(version int64, kill Side) Command {
	return with(control(PolicyControl, 0, 0, kill), func(c *Command) { c.PriceTicks = version })
}
