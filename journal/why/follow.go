package why

import (
	"encoding/json"
	"errors"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/journal/asof"
	"posttrade/matcher"
)

// follow says what became of an accepted order: its place in the queue, its fills, and what ended
// it. Only an order that is cancelled and still known is searched for what cancelled it.
func (q *inquiry) follow() error {
	if err := q.arrival(); err != nil {
		return err
	}
	row, kept, err := q.now()
	if err != nil {
		return err
	}
	if err := q.fills(row, kept); err != nil {
		return err
	}
	if !kept || row.Status != matcher.StatusCanceled {
		return nil
	}
	return q.ended(&row)
}

// arrival notes the queue ahead of an order that rests after its own command. An order that
// executed or ended at once has none.
func (q *inquiry) arrival() error {
	m, err := q.h.At(q.ctx, q.x.InputSeq)
	if err != nil {
		return err
	}
	defer m.Release()
	if orders, qty, ok := m.Engine().QueueAhead(uint32(q.number)); ok {
		q.x.QueueAhead = &Queue{orders, qty}
	}
	return nil
}

// now reads the order and its queue at the head.
//
// kept is false when no moment shows how the order ended. The head is that of the call, so an order
// that is still open may have another place at the next call.
func (q *inquiry) now() (row blotter.OrderRow, kept bool, err error) {
	head := q.h.Head()
	if row, kept, err = q.atHead(head); err != nil || kept {
		return row, kept, err
	}
	return q.lastSeen(head)
}

// atHead reads the order, and its queue while it is open, at the head. It gives the moment back
// before it returns: an explanation holds one warm shadow at a time, or two explanations could wait
// for each other's.
func (q *inquiry) atHead(head uint64) (row blotter.OrderRow, kept bool, err error) {
	m, err := q.h.At(q.ctx, head)
	if err != nil {
		return row, false, err
	}
	defer m.Release()
	if row, kept = m.Views().Numbered(q.number); !kept || !row.Open() {
		return row, kept, nil
	}
	if orders, qty, ok := m.Engine().QueueAhead(uint32(q.number)); ok {
		q.x.QueueAheadNow = &Queue{orders, qty}
	}
	return row, kept, nil
}

// lastSeen searches for a moment at which an order had ended and was still kept: the views drop an
// ended order some time after its end. It halves the range between a moment at which the order was
// open and one at which it was gone, and finds nothing when the two meet.
func (q *inquiry) lastSeen(gone uint64) (row blotter.OrderRow, kept bool, err error) {
	for open := q.x.InputSeq; open <= gone; {
		at := open + (gone-open)/2
		m, err := q.h.At(q.ctx, at)
		if err != nil {
			return row, false, err
		}
		row, kept = m.Views().Numbered(q.number)
		m.Release()
		switch {
		case kept && !row.Open():
			return row, true, nil
		case kept:
			open = at + 1
		case at == 0:
			return row, false, nil
		default:
			gone = at - 1
		}
	}
	return row, false, nil
}

// fills counts the order's fills, until all of its executed quantity is found, and lists the first
// MaxAgainst.
//
// The two fills of a match lie side by side, the aggressor's first. So the other side of a fill is
// the one behind it for an aggressor, and the one before it for a maker. An order of which no
// moment is left is searched for to the head, unless it cannot have rested.
func (q *inquiry) fills(row blotter.OrderRow, kept bool) error {
	left := int64(1) << 62
	if kept {
		if left = int64(row.Qty - row.Leaves); left == 0 {
			return nil
		}
	} else if q.cmd.Flags&(matcher.FlagIOC|matcher.FlagFOK) != 0 || q.cmd.LimitPx <= 0 {
		left = q.executedAtOnce()
	}
	_, head := q.j.Head()
	var before matcher.Fill
	waits := false // the last one listed was the aggressor's: its other side comes next
	return fillsOf(q.ctx, q.j, q.before.tradeSeq+1, head, func(f *matcher.Fill) bool {
		if waits {
			q.x.Against[len(q.x.Against)-1].of(f)
			waits = false
		}
		if f.Order() == q.number && left > 0 {
			left -= int64(f.Qty)
			q.x.Executed += int64(f.Qty)
			q.x.Fills++
			if len(q.x.Against) < MaxAgainst {
				q.x.Against = append(q.x.Against, CounterFill{TradeID: matcher.TradeID(f.TradeSeq),
					Price: json.RawMessage(decimal(f.Px)), Quantity: f.Qty})
				if waits = f.Flags&matcher.EventAggressor != 0; !waits && f.CounterRef != 0 {
					q.x.Against[len(q.x.Against)-1].of(&before)
				}
			}
		}
		before = *f
		return left > 0 || waits
	})
}

// of sets the other side of a fill. The account decides later which callers may see the order
// (Hide).
func (a *CounterFill) of(f *matcher.Fill) {
	if n := f.Order(); n != 0 {
		id := matcher.OrderID(n)
		a.OrderID = &id
	}
	a.account = f.AccountID
}

// executedAtOnce is what the order's own command executed. For an order that cannot rest that is
// all that it ever executed, so the search for fills has an end.
func (q *inquiry) executedAtOnce() (qty int64) {
	for i := range q.events {
		if ev := &q.events[i]; ev.Kind == matcher.EventFilled && ev.Order() == q.number {
			qty += int64(ev.Qty)
		}
	}
	return qty
}

// errFound ends the search for the command that cancelled an order; it does not leave the package.
var errFound = errors.New("found")

// ended finds the command that cancelled the order: its own, or the first later one whose events
// say so. Candidates are picked by what the row keeps, then replayed one at a time to be sure.
func (q *inquiry) ended(row *blotter.OrderRow) error {
	x := q.x
	x.Decision = "CANCELED"
	if row.Reason != matcher.Accepted {
		reason := row.Reason.String()
		x.Reason = &reason
	}
	for i := range q.events {
		if ev := &q.events[i]; ev.Kind == matcher.EventCanceled && ev.Order() == q.number {
			q.endedItself(row.Reason)
			return nil
		}
	}
	from := x.InputSeq
	for {
		c, err := q.suspect(from, row)
		if err != nil || c.InputSeq == 0 {
			return err
		}
		events, err := q.h.Command(q.ctx, c.InputSeq, func(asof.StateBefore) error { return nil })
		if err != nil {
			return err
		}
		for i := range events {
			if ev := &events[i]; ev.Kind == matcher.EventCanceled && ev.Order() == q.number {
				q.endedBy(&c, &events[0])
				return nil
			}
		}
		from = c.InputSeq
	}
}

// suspect is the next command that may have cancelled the order: of the time of its last change,
// and of a kind that can.
//
// A sequence of 0 means that there is none.
func (q *inquiry) suspect(from uint64, row *blotter.OrderRow) (found matcher.Command, err error) {
	err = q.j.Replay(q.ctx, from+1, func(cmds []matcher.Command, _ journal.ClientIDs) error {
		for i := range cmds {
			if c := &cmds[i]; c.TemplateID == matcher.TemplateCommand &&
				c.EventTimeMillis == row.UpdatedMillis && mayCancel(c, row) {
				found = *c
				return errFound
			}
		}
		return nil
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}

// mayCancel reports whether a command can be what canceled an order of that reason: its owner, a
// restriction of its security, or an order of the same account on the other side. It may say yes to
// a command that did not; its events then decide.
func mayCancel(c *matcher.Command, row *blotter.OrderRow) bool {
	switch row.Reason {
	case matcher.Restricted:
		return c.Type == matcher.RestrictionControl && c.SecurityID == row.SecurityID
	case matcher.SelfTradePrevented:
		return (c.Type == matcher.OrderNew || c.Type == matcher.OrderReplace) &&
			c.AccountID == row.AccountID && c.SecurityID == row.SecurityID && c.Side != row.Side
	}
	return (c.Type == matcher.OrderCancel || c.Type == matcher.OrderReplace) &&
		c.OrderRef == row.Ref && c.AccountID == row.AccountID
}

// endedItself explains an order whose own command cancelled what was left. Reason Accepted is the
// engine's word for an end that time in force brought.
func (q *inquiry) endedItself(reason matcher.RiskReason) {
	rule := "time-in-force"
	q.canceled = "what could not execute at once does not rest"
	switch reason {
	case matcher.Accepted:
	case matcher.PriceCollar:
		rule = "risk.price.collar-bps"
		q.canceled = "the rest of the book is beyond the collar"
	default: // a market purchase that a limit has bounded
		rule = matcher.LimitSettings[limitOf(reason)]
		q.canceled = "the rest of the book is beyond what " + rule + " allows"
	}
	q.x.Rule = &rule
	q.x.because("its own command", describe(&q.cmd, q.ticker), q.x.InputSeq, q.cmd.EventTimeMillis)
}

// endedBy explains an order that a later command cancelled. first is that command's first event,
// which names its order.
func (q *inquiry) endedBy(c *matcher.Command, first *matcher.Event) {
	rule, what, value := "owner", "its own cancel", describe(c, q.ticker)
	q.canceled = "its owner cancelled it"
	switch {
	case c.Type == matcher.RestrictionControl:
		rule, what = "restriction", "restriction"
		q.canceled = q.ticker + " was restricted"
	case c.OrderRef != uint32(q.number):
		other := matcher.OrderID(first.Order())
		rule, what = "self-trade-prevention", "self-trade prevention against "+other
		q.canceled = "it would have traded with " + other + " of the same account"
	case c.Type == matcher.OrderReplace:
		what = "its own replace"
		q.canceled = "its replace could not rest"
	default:
		value += " of " + matcher.OrderID(q.number) // the command has only a half of the number
	}
	q.x.Rule = &rule
	q.x.because(what, value, c.InputSeq, c.EventTimeMillis)
}
