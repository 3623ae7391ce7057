package whatif

import (
	"slices"

	"posttrade/matcher"
)

// comparer pairs what both engines decided on a command, and reports where they differ. Run's
// goroutine uses it.
//
// Without a latency both engines decide the commands in one order, and the events of a command meet
// at once. With one, events wait here until the other engine has decided the same command.
type comparer struct {
	// report is Options.Report. Its error ends the comparison.
	report  func(Difference) error
	reorder bool
	// result counts what was compared so far.
	result Result
	// tickers has the names of securities by id: those at the beginning, and those registered since.
	tickers map[uint32]string
	// sent is the kind of the command that is being compared.
	sent string
	// lone has the orders that only one of the engines has admitted. What ends one later is no
	// difference of its own: the other engine has no such order to keep.
	lone map[uint64]bool

	// before and after hold, by the history's sequence, the events of commands that one engine has
	// decided and the other has not yet. Only a latency fills them. The events are copies, because
	// chunks go round.
	before map[uint64][]matcher.Event
	after  map[uint64]settled
}

// settled is what the supposed engine decided on a command, until the history comes to it.
type settled struct {
	events []matcher.Event
	item   item
}

func newComparer(report func(Difference) error, reorder bool, e *matcher.Engine) comparer {
	c := comparer{report: report, reorder: reorder, tickers: map[uint32]string{},
		lone:   map[uint64]bool{},
		before: map[uint64][]matcher.Event{}, after: map[uint64]settled{}}
	e.EachSecurity(func(s matcher.SecurityInfo) bool {
		c.tickers[s.ID] = s.Ticker
		return true
	})
	return c
}

// cut takes the events of one command off the front. Every command has at least one event, and the
// last of them is marked.
func cut(events []matcher.Event) (one, rest []matcher.Event) {
	for i := range events {
		if events[i].Flags&matcher.EventLast != 0 {
			return events[:i+1], events[i+1:]
		}
	}
	return events, nil
}

// chunk compares a chunk, and counts its commands. The events of acts are passed over.
func (c *comparer) chunk(k *chunk) error {
	c.result.Commands += uint64(len(k.cmds))
	before, after := k.before, k.after
	var was, is []matcher.Event
	if k.plain {
		for len(before) > 0 {
			was, before = cut(before)
			is, after = cut(after)
			if err := c.command(was, is, &item{}); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range k.items {
		item := &k.items[i]
		is, after = cut(after)
		switch {
		case item.was == 0:
			continue
		case c.reorder:
			c.after[item.was] = settled{slices.Clone(is), *item}
			continue
		}
		was, before = cut(before)
		if err := c.command(was, is, item); err != nil {
			return err
		}
	}
	if !c.reorder {
		return nil
	}
	for len(before) > 0 {
		was, before = cut(before)
		c.before[was[0].InputSeq] = slices.Clone(was)
	}
	return c.pair()
}

// pair compares the commands that both engines have decided, in the order of the history. A delayed
// command is paired when it comes: its differences may follow those of later sequences.
func (c *comparer) pair() error {
	var ready []uint64
	for at := range c.after {
		if c.before[at] != nil {
			ready = append(ready, at)
		}
	}
	slices.Sort(ready)
	for _, at := range ready {
		is := c.after[at]
		if err := c.command(c.before[at], is.events, &is.item); err != nil {
			return err
		}
		delete(c.before, at)
		delete(c.after, at)
	}
	return nil
}

// command compares the events of one command: was of the history, is of the supposed engine. Most
// commands are alike, so it looks at nothing else then. Of a command that is left out only the
// trades are compared: its refusal was asked for.
func (c *comparer) command(was, is []matcher.Event, item *item) error {
	if was[0].SecurityID != 0 && was[0].Cmd().TemplateID == matcher.TemplateSymbolRegister {
		c.tickers[was[0].SecurityID], _ = was[0].Cmd().Symbol()
	}
	if item.removed {
		c.result.LeftOut++
	} else if alike(was, is) {
		return nil
	}
	c.sent = sentAs(was[0].Cmd())
	if c.sent == "order" && was[0].Kind != is[0].Kind {
		c.lone[ownOrder(was, is)] = true
	}
	if !item.removed {
		if err := c.decisions(was, is); err != nil {
			return err
		}
	}
	return c.trades(was, is)
}

// alike reports that two commands were decided alike. Trade sequences may differ, because other
// trades have come or gone before, and times may, because a delay moves them.
func alike(was, is []matcher.Event) bool {
	if len(was) != len(is) {
		return false
	}
	for i := range was {
		a, b := &was[i], &is[i]
		if a.Kind != b.Kind || a.Reason != b.Reason || a.Status != b.Status || a.Flags != b.Flags ||
			a.Px != b.Px || a.OrderRef != b.OrderRef || a.Era != b.Era || a.AccountID != b.AccountID ||
			a.SecurityID != b.SecurityID || a.Qty != b.Qty {
			return false
		}
		if a.Kind == matcher.EventFilled && a.Detail().Counter() != b.Detail().Counter() {
			return false
		}
	}
	return true
}

// decisions compares what was decided on the command and on the orders that it ended, in the
// history or here. A command that is about no order is compared by its own decision alone, with no
// order id.
func (c *comparer) decisions(was, is []matcher.Event) error {
	first, own := &was[0], ownOrder(was, is)
	err := c.decision(first.InputSeq, own, first, decided(was, own, true), decided(is, own, true))
	if err != nil {
		return err
	}
	var ended []*matcher.Event
	for _, events := range [][]matcher.Event{was, is} {
		for i := range events {
			ev := &events[i]
			if ev.Kind == matcher.EventCanceled && ev.Order() != own && !c.lone[ev.Order()] &&
				!slices.ContainsFunc(ended, func(e *matcher.Event) bool { return e.Order() == ev.Order() }) {
				ended = append(ended, ev)
			}
		}
	}
	for _, ev := range ended {
		number := ev.Order()
		err := c.decision(first.InputSeq, number, ev, decided(was, number, false),
			decided(is, number, false))
		if err != nil {
			return err
		}
	}
	return nil
}

// ownOrder is the order that a command is about, 0 for none. Where only the supposed engine has
// made an order, its number is taken from there.
func ownOrder(was, is []matcher.Event) uint64 {
	if !was[0].Cmd().AboutOrder() {
		return 0
	}
	if own := was[0].Order(); own != 0 {
		return own
	}
	return is[0].Order()
}

// decision reports two decisions that differ, at a sequence of the history. about is an event that
// has the account and the security: of either engine, so its sequence may be another.
func (c *comparer) decision(sequence, number uint64, about *matcher.Event,
	before, after Decision) error {
	if same(before, after) {
		return nil
	}
	c.result.Orders++
	return c.report(Difference{Kind: "order", Sequence: sequence, Command: c.sent,
		OrderID: orderID(number), AccountID: about.AccountID, Security: c.tickers[about.SecurityID],
		Before: &before, After: &after})
}

// trades compares the trades of a command: by the two orders, which meet once at most. A trade that
// moved to another command has vanished there and appeared here. Cost: the product of the numbers
// of fills, which are few in a command.
func (c *comparer) trades(was, is []matcher.Event) error {
	for i := range was {
		a := &was[i]
		if !trade(a) {
			continue
		}
		var b *matcher.Event
		for k := range is {
			if trade(&is[k]) && is[k].Order() == a.Order() &&
				is[k].Detail().Counter() == a.Detail().Counter() {
				b = &is[k]
			}
		}
		if b != nil && a.Px == b.Px && a.Qty == b.Qty {
			continue
		}
		if err := c.tradeDiffers(a, b); err != nil {
			return err
		}
	}
	for k := range is {
		b := &is[k]
		if !trade(b) || slices.ContainsFunc(was, func(a matcher.Event) bool {
			return trade(&a) && a.Order() == b.Order() && a.Detail().Counter() == b.Detail().Counter()
		}) {
			continue
		}
		b.InputSeq = was[0].InputSeq // the history's sequence of the command
		if err := c.tradeDiffers(nil, b); err != nil {
			return err
		}
	}
	return nil
}

// tradeDiffers reports a trade that is not the same in both. One of the two events may be nil; the
// other one then says what it is about.
func (c *comparer) tradeDiffers(was, is *matcher.Event) error {
	d := Difference{Kind: "trade", Command: c.sent, Change: "changed"}
	about := was
	switch {
	case was == nil:
		d.Change, about = "appeared", is
		c.result.Appeared++
	case is == nil:
		d.Change = "vanished"
		c.result.Vanished++
	default:
		c.result.Changed++
	}
	d.Sequence, d.AccountID, d.Security = about.InputSeq, about.AccountID, c.tickers[about.SecurityID]
	d.OrderID, d.CounterOrderID = orderID(about.Order()), orderID(about.Detail().Counter())
	d.Was, d.Is = execution(was), execution(is)
	return c.report(d)
}
