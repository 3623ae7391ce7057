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
	"posttrade/matcher/matchertest"
	"posttrade/ring/must"
)

// told is a history as the model decides it.
type told struct {
	t      *testing.T
	all    []matcher.Command
	events [][]matcher.Event // by command
	anew   []bool            // the gate's verdict that the command carries is the model's own
	orders []uint32          // the number of the next order, before each command
	worth  map[uint64]worth  // after some sequences
}

// worth is what each account has.
type worth map[uint32]*big.Int

// tell decides a history with the model, which shares nothing with the engines of Run. It notes
// what accounts have after some sequences.
func tell(t *testing.T, all []matcher.Command, worthAt ...uint64) *told {
	t.Helper()
	h := &told{t: t, all: all, worth: map[uint64]worth{}}
	m, next := matchertest.New(testGenesis()), uint32(1)
	for _, c := range all {
		carries := (c.Type == matcher.OrderNew || c.Type == matcher.TradeNew) && c.OrderRef != 0
		h.anew = append(h.anew, carries && m.Judge(c) == matcher.RiskReason(c.OrderRef))
		h.orders = append(h.orders, next)
		events := m.Apply(c)
		h.events = append(h.events, events)
		if makes(events) {
			next = events[0].OrderRef + 1
		}
		if slices.Contains(worthAt, c.InputSeq) {
			h.worth[c.InputSeq] = m.Worth()
		}
	}
	return h
}

// makes reports that a command took the number of a new order.
func makes(events []matcher.Event) bool {
	c := events[0].Cmd()
	return c.TemplateID == matcher.TemplateCommand && c.Type == matcher.OrderNew &&
		events[0].Reason != matcher.Duplicate
}

// sends reports a command that an account sends.
func sends(c *matcher.Command) bool {
	return slices.Contains([]matcher.CommandType{matcher.OrderNew, matcher.OrderCancel,
		matcher.OrderReplace, matcher.TradeNew, matcher.SwapBook, matcher.SwaptionBook}, c.Type)
}

// facts are what a history has decided, as text by what it is about.
type facts map[string]string

// add notes what events say; name gives the number that an order has in the history.
func (f facts) add(at uint64, events []matcher.Event, name func(uint64) uint64, removed bool) {
	own := name(events[0].Order())
	if makes(events) && events[0].Kind != matcher.EventRejected {
		f[admitted(own)] = "yes"
	}
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
				f[fmt.Sprintf("order %d ended %d of %d", at, number, ev.AccountID)] = text
			}
		}
		if ev.Kind == matcher.EventFilled && ev.Flags&(matcher.EventAggressor|matcher.EventMarket|
			matcher.EventForced) != 0 {
			f[fmt.Sprintf("trade %d %d %d", at, name(ev.Order()), name(ev.Detail().Counter()))] =
				fmt.Sprintf("%d at %d", ev.Qty, ev.Px)
		}
	}
}

// admitted is the fact that an order was admitted in the range.
func admitted(number uint64) string { return fmt.Sprint("admitted ", number) }

// differences are the facts that differ. The end of an order that the other history has not
// admitted follows from that, and is none.
func differences(was, is facts) (diff []string) {
	for what := range maps.Keys(was) {
		if _, ok := is[what]; !ok {
			is[what] = ""
		}
	}
	for what := range maps.Keys(is) {
		var at, number uint64
		if n, _ := fmt.Sscanf(what, "order %d ended %d", &at, &number); n == 2 &&
			was[admitted(number)] != is[admitted(number)] {
			continue
		}
		if was[what] != is[what] && !strings.HasPrefix(what, "admitted") {
			diff = append(diff, what+": "+was[what]+" -> "+is[what])
		}
	}
	slices.Sort(diff)
	return diff
}

// supposedModel is the model before a range, with the limits that are supposed.
func (h *told) supposedModel(from uint64, c *Changes) *matchertest.Model {
	g := testGenesis()
	l := &g.Limits
	for name, to := range map[matcher.LimitID]*int64{
		matcher.LimitOrderQty: &l.MaxOrderQty, matcher.LimitOrderNotional: &l.MaxOrderNotional,
		matcher.LimitPosition: &l.MaxPositionQty, matcher.LimitCredit: &l.CreditLimit,
		matcher.LimitConcentration: &l.MaxConcentrationNotional,
		matcher.LimitPriceAge:      &l.PriceMaxAgeMillis, matcher.LimitCollar: &l.PriceCollarBps,
	} {
		if v, ok := c.Limits[name]; ok && from == 1 {
			*to = v // the genesis record of a journal that was created with it
		}
	}
	m := matchertest.New(g)
	for _, cmd := range h.all[:from-1] {
		m.Apply(cmd)
	}
	for limit, v := range c.Limits {
		m.Suppose(limit, v)
	}
	return m
}

// expected compares a history with the same one, changed, in the plainest way. made is what every
// account has made in both.
func (h *told) expected(from, to uint64, c *Changes) (diff []string, made string) {
	h.t.Helper()
	other := h.supposedModel(from, c)
	started := worth(other.Worth())
	was, is := facts{}, facts{}
	type late struct {
		item
		at      int64
		delayed bool
	}
	var list []late
	numbers := map[uint64]uint64{} // of the history, by sequence
	clock := int64(0)
	for _, cmd := range h.all[from-1 : to] {
		next, events := cmd, h.events[cmd.InputSeq-1]
		if h.anew[cmd.InputSeq-1] {
			next.OrderRef = 0
		}
		removed := slices.Contains(c.Without, cmd.AccountID) &&
			(sends(&cmd) || cmd.Type == matcher.ForceFill)
		was.add(cmd.InputSeq, events, func(n uint64) uint64 { return n }, removed)
		numbers[cmd.InputSeq] = events[0].Order()
		clock = max(clock, cmd.EventTimeMillis)
		for _, act := range c.Acts {
			if act.Before == cmd.InputSeq {
				act.Command.EventTimeMillis = cmd.EventTimeMillis
				list = append(list, late{item{cmd: act.Command}, clock, false})
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
		one := late{item{cmd: next, was: cmd.InputSeq, removed: removed}, clock, false}
		for _, l := range c.Latency {
			if l.AccountID == cmd.AccountID && sends(&cmd) {
				one.cmd.EventTimeMillis = cmd.EventTimeMillis + l.Millis
				// behind everything of the same time that was not delayed
				one.at, one.delayed = clock+l.Millis, true
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
		var cancels []matcher.Command
		other.EachOpen(func(o matcher.OrderInfo) {
			if slices.Contains(c.Without, o.AccountID) {
				cancel := matcher.NewCommand(matcher.OrderCancel)
				cancel.OrderRef, cancel.AccountID = o.Ref, o.AccountID
				cancels = append(cancels, cancel)
			}
		})
		for _, cancel := range cancels {
			other.Apply(cancel)
		}
	}
	there, here := map[uint32]uint32{}, map[uint64]uint64{}
	for _, one := range list {
		cmd := one.cmd
		named := cmd.Type == matcher.OrderCancel || cmd.Type == matcher.OrderReplace ||
			cmd.Type == matcher.ForceFill
		if len(c.Latency) > 0 && named && cmd.OrderRef >= h.orders[from-1] {
			cmd.OrderRef = there[cmd.OrderRef]
		}
		events := other.Apply(cmd)
		if one.was == 0 {
			continue
		}
		if makes(events) {
			n := events[0].OrderRef
			there[uint32(numbers[one.was])] = n
			here[uint64(n)] = numbers[one.was]
		}
		is.add(one.was, events, func(n uint64) uint64 {
			if number, ok := here[n]; ok {
				return number
			}
			return n
		}, one.removed)
	}
	return differences(was, is), started.made(h.worth[to], other.Worth())
}

// made is what accounts have made since, in two ways.
func (w worth) made(before, after worth) (text string) {
	for _, id := range slices.Sorted(maps.Keys(before)) {
		was, is := new(big.Int).Sub(before[id], w[id]), new(big.Int).Sub(after[id], w[id])
		if was.Sign() != 0 || is.Sign() != 0 {
			text += fmt.Sprintf("account %d: %s -> %s\n", id, was, is)
		}
	}
	return text
}

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
	r = must.Get(Run(t.Context(), h, Options{From: from, To: to, Changes: c,
		Report: func(d Difference) error {
			if d.Kind == "trade" {
				diff = append(diff, fmt.Sprintf("trade %d %s %s: %s -> %s", d.Sequence, number(d.OrderID),
					number(d.CounterOrderID), how(d.Was), how(d.Is)))
				return nil
			}
			what := fmt.Sprintf("order %d", d.Sequence)
			if d.Before.Decision == "OPEN" || d.After.Decision == "OPEN" || own[d.Sequence] != "" ||
				d.Command == "control" && d.OrderID != nil {
				what += fmt.Sprintf(" ended %s of %d", number(d.OrderID), d.AccountID)
			} else {
				own[d.Sequence] = what
			}
			diff = append(diff, what+": "+text(d.Before)+" -> "+text(d.After))
			return nil
		}}))(t)
	slices.Sort(diff)
	return diff, r
}

func first(list []string) string { return strings.Join(list[:min(3, len(list))], "\n") }
