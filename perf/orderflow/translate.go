package orderflow

import (
	"fmt"
	"slices"
	"strconv"

	"posttrade/matcher"
)

// seedBook is rule 1: the levels of row 1 as seeds, and the order of message 1. A row 1 that is
// crossed is an error: its orders would trade with each other.
func (l *Lobster) seedBook(m message) error {
	if r := &l.row; len(r.Asks) > 0 && len(r.Bids) > 0 && r.Asks[0].Px <= r.Bids[0].Px {
		return l.rows.errorf("the book is crossed: ask %d, bid %d", r.Asks[0].Px, r.Bids[0].Px)
	}
	for _, side := range []matcher.Side{matcher.Buy, matcher.Sell} {
		for _, level := range levelsOf(&l.row, side) {
			qty := level.Qty
			own := m.kind == lobsterAdd && m.side == side && m.px == level.Px && m.qty <= qty
			if own {
				qty -= m.qty
			}
			if qty > 0 {
				l.addSeed(side, level.Px, qty)
				l.stats.SeedLevels++
			}
			if own {
				l.add(m)
			}
		}
	}
	return nil
}

// translate is rules 2 and 3. An error is a message that does not fit the book: it names the line
// of the message file.
func (l *Lobster) translate(m message) error {
	if !m.visible() {
		l.stats.Silent++
		return nil
	}
	if m.kind == lobsterAdd {
		if l.byID[m.id] != nil {
			return l.messages.errorf("order %d is added twice", m.id)
		}
		if other := l.book.best(m.side.Opposite()); other != nil && !better(m.side, other.px, m.px) {
			return l.messages.errorf("order %d at %d would trade: the other side stands at %d", m.id, m.px,
				other.px)
		}
		l.add(m)
		return nil
	}
	known := l.byID[m.id]
	if known != nil && (known.side != m.side || known.px != m.px) {
		return l.messages.errorf("order %d is a %s at %d, not a %s at %d",
			m.id, SideName(known.side), known.px, SideName(m.side), m.px)
	}
	if known == nil {
		l.stats.Unknown++
	}
	if m.kind == lobsterExecution {
		return l.execute(m, known)
	}
	r := l.book.at(m.side, m.px)
	if r == nil || r.open() < m.qty {
		return l.messages.errorf("%d taken off order %d at %d, where less is open", m.qty, m.id, m.px)
	}
	l.reduceLevel(m.side, m.px, m.qty, known)
	l.settle(m, known)
	return nil
}

// add sends a message's order under its own id.
func (l *Lobster) add(m message) {
	o := &resting{
		clientID: l.options.Prefix + "o" + strconv.FormatUint(m.id, 10),
		side:     m.side, px: m.px, total: m.qty, leaves: m.qty, unnamed: m.qty,
	}
	l.byID[m.id] = o
	l.send(o)
}

// addSeed sends an order that represents the orders that no message added, at one price.
func (l *Lobster) addSeed(side matcher.Side, px, qty int64) {
	for qty > 0 { // a level may hold more than one order can
		part := min(qty, maxQty)
		qty -= part
		l.seeds++
		l.send(&resting{
			clientID: l.options.Prefix + "seed" + strconv.Itoa(l.seeds),
			side:     side, px: px, total: part, leaves: part, seed: true,
		})
	}
}

// send rests an order in the book here and adds the step that rests it at the venue.
func (l *Lobster) send(o *resting) {
	l.book.rest(o)
	l.event.Steps = append(l.event.Steps, Step{
		Action: New, ClientOrderID: o.clientID, AccountID: l.options.Maker, Security: l.options.Security,
		Side: o.side, Quantity: int32(o.total), LimitPx: o.px,
	})
}

// execute sends the aggressor of a visible execution: an immediate-or-cancel order for the
// message's size at the message's price. The price must be the touch and hold as much, or a
// published book could not follow. OutOfTurn counts the executions whose named order is not the one
// that the venue fills.
func (l *Lobster) execute(m message, known *resting) error {
	front := l.book.best(m.side)
	if front == nil || front.px != m.px || front.open() < m.qty {
		return l.messages.errorf("%d executed at %d, which is not the touch or holds less", m.qty, m.px)
	}
	oldest := front.queue[0]
	if known != nil && known != oldest || known == nil && !oldest.seed {
		l.stats.OutOfTurn++
	}
	l.event.Steps = append(l.event.Steps, Step{
		Action: New, AccountID: l.options.Taker, Security: l.options.Security, Side: m.side.Opposite(),
		ClientOrderID: l.options.Prefix + "x" + strconv.Itoa(l.stats.Events),
		TimeInForce:   IOC, Quantity: int32(m.qty), LimitPx: m.px,
	})
	if left := l.book.take(m.side, m.px, m.qty); left != 0 {
		panic(fmt.Sprintf("orderflow: %d of %d found no maker at a rung that holds enough", left, m.qty))
	}
	l.settle(m, known)
	return nil
}

// settle notes how much of an order the messages have taken, and drops the order's id at the end,
// so that memory is bounded by the book. The venue may then still hold a part of it, because an
// older order was filled in its place. No message names that part again: it becomes a seed.
func (l *Lobster) settle(m message, known *resting) {
	if known == nil {
		return
	}
	known.unnamed -= m.qty
	if known.unnamed <= 0 || m.kind == lobsterDelete {
		known.seed = true
		delete(l.byID, m.id)
	}
}

// reduceLevel takes qty from the orders at one price: first the named order, then seeds, then the
// youngest. The level must hold at least qty.
func (l *Lobster) reduceLevel(side matcher.Side, px, qty int64, named *resting) {
	if named != nil && named.leaves > 0 {
		qty -= l.reduce(named, qty)
	}
	for qty > 0 {
		queue := l.book.at(side, px).queue
		victim := queue[len(queue)-1]
		if i := slices.IndexFunc(queue, func(o *resting) bool { return o.seed }); i >= 0 {
			victim = queue[i]
		}
		qty -= l.reduce(victim, qty)
	}
}

// reduce cancels an order, or shrinks it by a replace at its price, which keeps its place, and
// returns the reduction: qty, or the order's leaves if those are less.
func (l *Lobster) reduce(o *resting, qty int64) int64 {
	qty = min(qty, o.leaves)
	if qty == o.leaves {
		l.event.Steps = append(l.event.Steps, Step{Action: Cancel, AccountID: l.options.Maker,
			Security: l.options.Security, Side: o.side, Ref: o.clientID})
	} else {
		o.total -= qty
		l.event.Steps = append(l.event.Steps, Step{Action: Replace, AccountID: l.options.Maker,
			Security: l.options.Security, Side: o.side, Ref: o.clientID, Quantity: int32(o.total),
			LimitPx: o.px})
	}
	l.book.shrink(o, qty)
	return qty
}

// levelsOf are one side's levels, best first.
func levelsOf(d *Depth, side matcher.Side) []Level {
	if side == matcher.Buy {
		return d.Bids
	}
	return d.Asks
}
