package whatif

import (
	"encoding/json"
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
)

// Decision is what was decided on an order: ACCEPTED, REJECTED, or CANCELED for one that its own
// command or another order's ended; OPEN for one that was left alone.
type Decision struct {
	Decision string  `json:"decision"`
	Reason   *string `json:"reason"`
}

// Execution is a trade's price and quantity.
type Execution struct {
	Price    json.RawMessage `json:"price"`
	Quantity int32           `json:"quantity"`
}

// Difference is one thing that comes out differently: an order (Before and After), or a trade
// (Change is appeared, vanished or changed).
type Difference struct {
	Kind           string     `json:"kind"`
	Sequence       uint64     `json:"sequence"`
	Command        string     `json:"command"` // what was sent: order, replace, cancel, ...
	OrderID        *string    `json:"orderId"`
	AccountID      uint32     `json:"accountId"`
	Security       string     `json:"security,omitempty"`
	Before         *Decision  `json:"before,omitempty"`
	After          *Decision  `json:"after,omitempty"`
	Change         string     `json:"change,omitempty"`
	CounterOrderID *string    `json:"counterOrderId,omitempty"`
	Was            *Execution `json:"was,omitempty"`
	Is             *Execution `json:"is,omitempty"`
}

// comparer pairs what both engines decided on a command. One goroutine uses it.
type comparer struct {
	report  func(Difference) error
	reorder bool
	result  Result
	tickers map[uint32]string
	sent    string // the kind of the command that is being compared

	// Of commands that one engine has decided and the other has not yet.
	before map[uint64][]matcher.Event
	after  map[uint64]settled
}

type settled struct {
	events []matcher.Event
	item   item
}

func newComparer(report func(Difference) error, reorder bool, e *matcher.Engine) comparer {
	c := comparer{report: report, reorder: reorder, tickers: map[uint32]string{},
		before: map[uint64][]matcher.Event{}, after: map[uint64]settled{}}
	e.EachSecurity(func(s matcher.SecurityInfo) bool {
		c.tickers[s.ID] = s.Ticker
		return true
	})
	return c
}

// cut takes the events of one command off the front.
func cut(events []matcher.Event) (one, rest []matcher.Event) {
	for i := range events {
		if events[i].Flags&matcher.EventLast != 0 {
			return events[:i+1], events[i+1:]
		}
	}
	return events, nil
}

// chunk compares a chunk.
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

// pair compares the commands that both engines have decided, in the order of the history.
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

// command compares the events of one command.
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
	if !item.removed {
		if err := c.decisions(was, is); err != nil {
			return err
		}
	}
	return c.trades(was, is)
}

// sentAs names the kind of a command.
func sentAs(c *matcher.Command) string {
	if c.TemplateID != matcher.TemplateCommand {
		return "other"
	}
	switch c.Type {
	case matcher.OrderNew:
		return "order"
	case matcher.OrderReplace:
		return "replace"
	case matcher.OrderCancel:
		return "cancel"
	case matcher.TradeNew:
		return "market-trade"
	case matcher.ForceFill:
		return "force-fill"
	case matcher.SwapBook:
		return "swap"
	case matcher.SwaptionBook:
		return "swaption"
	}
	return "control"
}

// alike reports that two commands were decided alike. Trade sequences may differ, because other
// trades have come or gone before.
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

// decided is what a command's events say about an order: its own, or another that it ended.
func decided(events []matcher.Event, number uint64, own bool) (d Decision) {
	d.Decision = "OPEN"
	if own {
		d.Decision = "ACCEPTED"
		if events[0].Kind == matcher.EventRejected {
			d.Decision, d.Reason = "REJECTED", reasonOf(events[0].Reason)
		}
	}
	for i := range events {
		// A cancel's own event is its acceptance.
		if ev := &events[i]; ev.Kind == matcher.EventCanceled && ev.Order() == number &&
			ev.Flags&matcher.EventFirst == 0 {
			d = Decision{"CANCELED", reasonOf(ev.Reason)}
		}
	}
	return d
}

func reasonOf(r matcher.RiskReason) *string {
	if r == matcher.Accepted {
		return nil
	}
	name := r.String()
	return &name
}

func same(a, b Decision) bool {
	return a.Decision == b.Decision && (a.Reason == nil) == (b.Reason == nil) &&
		(a.Reason == nil || *a.Reason == *b.Reason)
}

// decisions compares what was decided on the command and on the orders that it ended.
func (c *comparer) decisions(was, is []matcher.Event) error {
	first := &was[0]
	own := uint64(0)
	if first.Cmd().AboutOrder() {
		if own = first.Order(); own == 0 {
			own = is[0].Order()
		}
	}
	if err := c.decision(first, own, decided(was, own, true), decided(is, own, true)); err != nil {
		return err
	}
	var ended []uint64
	for _, events := range [][]matcher.Event{was, is} {
		for i := range events {
			if ev := &events[i]; ev.Kind == matcher.EventCanceled && ev.Order() != own &&
				!slices.Contains(ended, ev.Order()) {
				ended = append(ended, ev.Order())
			}
		}
	}
	for _, number := range ended {
		err := c.decision(first, number, decided(was, number, false), decided(is, number, false))
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *comparer) decision(first *matcher.Event, number uint64, before, after Decision) error {
	if same(before, after) {
		return nil
	}
	c.result.Orders++
	return c.report(Difference{Kind: "order", Sequence: first.InputSeq, Command: c.sent,
		OrderID: orderID(number), AccountID: first.AccountID, Security: c.tickers[first.SecurityID],
		Before: &before, After: &after})
}

func orderID(number uint64) *string {
	if number == 0 {
		return nil
	}
	id := "ord-" + strconv.FormatUint(number, 10)
	return &id
}

// trades compares the trades of a command: by the two orders, which meet once at most.
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

// trade reports the one event of a trade that stands for it.
func trade(ev *matcher.Event) bool {
	return ev.Kind == matcher.EventFilled &&
		ev.Flags&(matcher.EventAggressor|matcher.EventMarket|matcher.EventForced) != 0
}

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

func execution(ev *matcher.Event) *Execution {
	if ev == nil {
		return nil
	}
	return &Execution{json.RawMessage(strictjson.FormatDecimal(nil, ev.Px)), ev.Qty}
}
