package whatif

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"posttrade/journal/asof"
	"posttrade/matcher"
)

// naive is the oracle: one command at a time, maps for everything, and a list that is sorted whole.
type naive struct {
	t    *testing.T
	e    *matcher.Engine
	said []matcher.Event
	out  *matcher.Outlet
}

func newNaive(t *testing.T, g *matcher.Genesis) *naive {
	e, err := matcher.New(g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	n := &naive{t: t, e: e}
	n.out = matcher.NewOutlet(16, func(events []matcher.Event) { n.said = append(n.said, events...) })
	return n
}

func (n *naive) do(c matcher.Command) []matcher.Event {
	n.said = nil
	n.e.Apply(&c, n.out)
	n.out.Flush()
	return n.said
}

// facts are what a history has decided, as text by what it is about.
type facts map[string]string

// add notes what events say; name gives the number that an order has in the history.
func (f facts) add(at uint64, events []matcher.Event, name func(uint64) uint64, removed bool) {
	own := name(events[0].Order())
	if !removed {
		f[fmt.Sprintf("order %d", at)] = "ACCEPTED"
		if events[0].Kind == matcher.EventRejected {
			f[fmt.Sprintf("order %d", at)] = "REJECTED " + events[0].Reason.String()
		}
	}
	for i := range events {
		ev := &events[i]
		if ev.Kind == matcher.EventCanceled && ev.Flags&matcher.EventFirst == 0 {
			text := "CANCELED"
			if ev.Reason != matcher.Accepted {
				text += " " + ev.Reason.String()
			}
			if number := name(ev.Order()); removed {
				continue
			} else if number == own {
				f[fmt.Sprintf("order %d", at)] = text
			} else {
				f[fmt.Sprintf("order %d ended %d", at, number)] = text
			}
		}
		if ev.Kind == matcher.EventFilled && ev.Flags&(matcher.EventAggressor|matcher.EventMarket|
			matcher.EventForced) != 0 {
			f[fmt.Sprintf("trade %d %d %d", at, name(ev.Order()), name(ev.Detail().Counter()))] =
				fmt.Sprintf("%d at %d", ev.Qty, ev.Px)
		}
	}
}

// expected compares a history with the same one, changed, in the plainest way.
func expected(t *testing.T, all []matcher.Command, from, to uint64, c *Changes) []string {
	t.Helper()
	g := testGenesis()
	base, other := newNaive(t, g), newNaive(t, g)
	if from == 1 { // the limits of the genesis record are those that are supposed
		changed := *g
		l := &changed.Limits
		for name, to := range map[matcher.LimitID]*int64{
			matcher.LimitOrderQty: &l.MaxOrderQty, matcher.LimitOrderNotional: &l.MaxOrderNotional,
			matcher.LimitPosition: &l.MaxPositionQty, matcher.LimitCredit: &l.CreditLimit,
			matcher.LimitConcentration: &l.MaxConcentrationNotional,
			matcher.LimitPriceAge:      &l.PriceMaxAgeMillis, matcher.LimitCollar: &l.PriceCollarBps,
		} {
			if v, ok := c.Limits[name]; ok {
				*to = v
			}
		}
		other = newNaive(t, &changed)
	}
	for _, cmd := range all[:from-1] {
		base.do(cmd)
		other.do(cmd)
	}
	if from > 1 {
		for limit, v := range c.Limits {
			other.e.Suppose(limit, v)
		}
	}
	was, is := facts{}, facts{}
	type late struct {
		item
		at int64
	}
	var list []late
	numbers := map[uint64]uint64{} // of the history, by sequence
	clock := int64(0)
	for _, cmd := range all[from-1 : to] {
		next := cmd
		if (cmd.Type == matcher.OrderNew || cmd.Type == matcher.TradeNew) && cmd.OrderRef != 0 &&
			base.e.Judge(&cmd).Reason == matcher.RiskReason(cmd.OrderRef) {
			next.OrderRef = 0
		}
		events := base.do(cmd)
		removed := slices.Contains(c.Without, cmd.AccountID) &&
			(acts(&cmd) || cmd.Type == matcher.ForceFill)
		was.add(cmd.InputSeq, events, func(n uint64) uint64 { return n }, removed)
		numbers[cmd.InputSeq] = events[0].Order()
		for _, act := range c.Acts {
			if act.Before == cmd.InputSeq {
				act.Command.EventTimeMillis = cmd.EventTimeMillis
				list = append(list, late{item{cmd: act.Command}, cmd.EventTimeMillis})
			}
		}
		if _, ok := c.Limits[matcher.LimitPosition]; ok && cmd.Type == matcher.PolicyControl {
			next.Qty = 0
		}
		if _, ok := c.Limits[matcher.LimitConcentration]; ok && cmd.Type == matcher.PolicyControl {
			next.LimitPx = 0
		}
		if v, ok := c.Limits[matcher.LimitID(cmd.SecurityID)]; ok && cmd.Type == matcher.LimitsControl &&
			cmd.AccountID == 0 {
			next.LimitPx = v
		}
		if removed {
			next.OrderRef = uint32(matcher.NotEntitled) // of a new order; other commands find no order
			if cmd.Type == matcher.SwapBook {
				next = matcher.NewCommand(matcher.SnapshotMark)
			}
		}
		clock = max(clock, cmd.EventTimeMillis)
		one := late{item{cmd: next, was: cmd.InputSeq, removed: removed}, clock}
		for _, l := range c.Latency {
			if l.AccountID == cmd.AccountID && acts(&cmd) {
				one.cmd.EventTimeMillis = cmd.EventTimeMillis + l.Millis
				// behind everything of the same time that was not delayed
				one.at, one.delayed = one.cmd.EventTimeMillis, true
			}
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b late) int {
		switch {
		case a.at != b.at:
			return int(a.at - b.at)
		case a.delayed != b.delayed && b.delayed:
			return -1
		case a.delayed != b.delayed:
			return 1
		}
		return 0
	})
	if len(c.Without) > 0 {
		other.e.EachOrder(func(o matcher.OrderInfo) bool {
			if o.Open() && slices.Contains(c.Without, o.AccountID) {
				cancel := matcher.NewCommand(matcher.OrderCancel)
				cancel.OrderRef, cancel.AccountID = o.Ref, o.AccountID
				defer other.do(cancel)
			}
			return true
		})
	}
	there, here := map[uint32]uint32{}, map[uint64]uint64{}
	for _, one := range list {
		cmd := one.cmd
		named := cmd.Type == matcher.OrderCancel || cmd.Type == matcher.OrderReplace ||
			cmd.Type == matcher.ForceFill
		if len(c.Latency) > 0 && named && cmd.OrderRef >= firstRef(all, from, t) {
			cmd.OrderRef = there[cmd.OrderRef]
		}
		events := other.do(cmd)
		if one.was == 0 {
			continue
		}
		if n, ok := made(&events[0]); ok {
			there[uint32(numbers[one.was])] = uint32(n)
			here[n] = numbers[one.was]
		}
		is.add(one.was, events, func(n uint64) uint64 {
			if number, ok := here[n]; ok {
				return number
			}
			return n
		}, one.removed)
	}
	var diff []string
	for what := range maps.Keys(was) {
		if was[what] != is[what] {
			diff = append(diff, what+": "+was[what]+" -> "+is[what])
		}
	}
	for what := range maps.Keys(is) {
		if _, ok := was[what]; !ok {
			diff = append(diff, what+":  -> "+is[what])
		}
	}
	slices.Sort(diff)
	return diff
}

// firstRef is the number of the first order of a range.
func firstRef(all []matcher.Command, from uint64, t *testing.T) uint32 {
	if known, ok := firstRefs[from]; ok {
		return known
	}
	n := newNaive(t, testGenesis())
	last := uint64(0)
	for _, c := range all[:from-1] {
		if number, ok := made(&n.do(c)[0]); ok {
			last = max(last, number)
		}
	}
	firstRefs[from] = uint32(last + 1)
	return firstRefs[from]
}

var firstRefs = map[uint64]uint32{}

// found is what Run reports, as the oracle writes it.
func found(t *testing.T, h *asof.History, from, to uint64, c Changes) (diff []string, r Result) {
	t.Helper()
	text := func(d *Decision) string {
		switch {
		case d.Decision == "OPEN":
			return ""
		case d.Reason != nil:
			return d.Decision + " " + *d.Reason
		}
		return d.Decision
	}
	number := func(id *string) string {
		if id == nil {
			return "0"
		}
		return (*id)[len("ord-"):]
	}
	how := func(x *Execution) string {
		if x == nil {
			return ""
		}
		px, ok := new(big.Rat).SetString(string(x.Price))
		if !ok {
			t.Fatal(x.Price)
		}
		return fmt.Sprintf("%d at %s", x.Quantity, px.Mul(px, big.NewRat(unit, 1)).Num())
	}
	own := map[uint64]string{}
	r, err := Run(t.Context(), h, Options{From: from, To: to, Changes: c,
		Report: func(d Difference) error {
			if d.Kind == "trade" {
				diff = append(diff, fmt.Sprintf("trade %d %s %s: %s -> %s", d.Sequence, number(d.OrderID),
					number(d.CounterOrderID), how(d.Was), how(d.Is)))
				return nil
			}
			what := fmt.Sprintf("order %d", d.Sequence)
			if d.Before.Decision == "OPEN" || d.After.Decision == "OPEN" || own[d.Sequence] != "" ||
				strings.HasPrefix(text(d.Before), "CANCELED") && text(d.Before) != "CANCELED" &&
					d.AccountID == 0 {
				what += " ended " + number(d.OrderID)
			} else {
				own[d.Sequence] = what
			}
			diff = append(diff, what+": "+text(d.Before)+" -> "+text(d.After))
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(diff)
	return diff, r
}

func first(list []string) string { return strings.Join(list[:min(3, len(list))], "\n") }
