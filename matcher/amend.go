//perf:hot

package matcher

// owned returns the open order that a command names if the order belongs to the command's account.
// Another account's order and an order that does not exist are refused alike. Without ok the other
// results may be nil.
func (e *Engine) owned(c *Command) (i ix, o *order, cold *orderCold, ok bool) {
	i = e.orders.find(c.OrderRef)
	if i == 0 {
		return
	}
	o, cold = e.orders.hot(i), e.orders.cold(i)
	ok = !o.status().Terminal() && cold.accountID == c.AccountID
	return
}

// orderCancel decides an ORDER_CANCEL. No limit and no control applies: an owner can always cancel
// an order, also while the kill switch is on, the account is disabled or the security is halted. A
// cancel has no key; a repeated one is INVALID, because the order is then terminal.
func (e *Engine) orderCancel(c *Command) {
	i, o, cold, ok := e.owned(c)
	if !ok {
		e.rejectNamed(c, Invalid)
		return
	}
	e.ladders[o.security()-1].remove(i)
	e.cancelOpen(o, cold, Accepted)
	ev := e.first(c, head(EventCanceled, o.side(), Accepted, StatusCanceled, EventLast), cold.limit)
	ev.SecurityID = o.security()
	ev.Qty = o.leaves
	ev.name(e.number(o, cold))
	e.retire(i)
}

// orderReplace decides an ORDER_REPLACE. A refusal changes neither the order nor its place in the
// queue.
//
// The order's own reservation is out of the account's sums while the replace is judged, because the
// order as it would be takes its place. A key is remembered with the number of the order that the
// command names, if any order ever had it.
func (e *Engine) orderReplace(c *Command, q *request) {
	key, asker, slot := uint64(c.PriceTicks), askerOf(c), keySlot{}
	if key != 0 {
		var entry *remembered
		if entry, slot = e.keys.find(orderKeys, key, asker); entry != nil {
			e.rejectDuplicate(c, entry)
			return
		}
	}
	i, o, cold, ok := e.owned(c)
	ok = ok && o.security() == c.SecurityID && o.side() == c.Side
	q.market, q.cut = false, Accepted
	reason := Invalid
	if ok {
		e.releaseOpen(o, cold.limit)
		reason = e.screenReplace(c, q, o, cold)
		if reason != Accepted {
			e.reserveOpen(o, cold)
		}
	}
	if key != 0 {
		if number := e.named(c); number != 0 {
			e.keys.remember(slot, key, number, asker|uint64(reason))
		}
	}
	if reason != Accepted {
		e.rejectNamed(c, reason)
		return
	}
	e.replace(c, q, i, o, cold)
}

// screenReplace judges the order as it would be after the replace, without its present
// reservations. The new total must exceed what has been filled. Notional is judged over the new
// total, exposure over what is still to trade.
//
// It does not judge the number of open orders: the order is one of them already.
func (e *Engine) screenReplace(c *Command, q *request, o *order, cold *orderCold) RiskReason {
	if r := e.screenParties(c, q); r != Accepted {
		return r
	}
	limits := e.boundsOf(q)
	filled := cold.qty - o.leaves
	if c.Qty <= filled || c.LimitPx <= 0 || c.Flags&(FlagIOC|FlagFOK) != 0 {
		return Invalid
	}
	if q.limit = q.ticks; !q.onGrid {
		return Invalid
	}
	best, any := e.books.at(c.SecurityID - 1).best(c.Side.Opposite())
	q.crosses = any && within(c.Side, q.limit, best)
	if q.crosses && c.Flags&FlagPostOnly != 0 {
		return Invalid
	}
	if int64(c.Qty) > limits.RiskLimits[LimitOrderQty] {
		return OrderSize
	}
	if r := limits.collar(e.securities.table.at(c.SecurityID-1), c.LimitPx); r != Accepted {
		return r
	}
	q.price = c.LimitPx
	e.raiseToBid(c, q, best)
	if _, ok := limits.worth(q.price, c.Qty); !ok {
		return OrderNotional
	}
	leaves := c.Qty - filled
	if c.Version >= version2 && leaves <= o.leaves && c.LimitPx <= cold.limit && !q.crosses {
		return Accepted // it goes on resting and needs no more than was admitted
	}
	q.notional = q.price * int64(leaves)
	return e.exposed(c, q, limits, int64(leaves))
}

// replace carries out what screenReplace has admitted. The order keeps its place only if the price
// stays and the quantity falls. Otherwise it gets a new stamp and stands behind all orders of its
// level, also when neither changes. The number stays in every case.
func (e *Engine) replace(c *Command, q *request, i ix, o *order, cold *orderCold) {
	ladder := &e.ladders[o.security()-1]
	less := cold.qty - c.Qty
	keeps := c.LimitPx == cold.limit && less > 0
	number := e.number(o, cold)
	cold.qty = c.Qty
	cold.updated = e.now
	if keeps {
		ladder.reduce(i, less)
		e.reserveOpen(o, cold)
		e.first(c, head(EventReplaced, o.side(), Accepted, o.status(),
			EventKeptPlace|EventRests|EventLast), cold.limit).name(number)
		return
	}
	ladder.remove(i)
	e.openOrders--
	o.leaves -= less
	cold.limit = c.LimitPx
	e.stamp++
	cold.stamp = e.stamp
	if !q.crosses {
		e.rest(ladder, i, o, q, cold.limit*int64(o.leaves))
		e.first(c, head(EventReplaced, o.side(), Accepted, o.status(), EventRests|EventLast),
			cold.limit).name(number)
		return
	}
	e.first(c, head(EventReplaced, o.side(), Accepted, o.status(), 0), cold.limit).name(number)
	e.take(c, ladder, i, o, cold, q)
	e.finish(ladder, i, o, cold, q, true)
}

// reserveOpen undoes releaseOpen: it reserves limit price times leaves, and the leaves, on the
// order's side.
func (e *Engine) reserveOpen(o *order, cold *orderCold) {
	account, held := e.behind(o)
	account.reserve(o.side(), cold.limit*int64(o.leaves))
	held.reserve(o.side(), int64(o.leaves))
}

// forceFill decides a FORCE_FILL: the operator executes an open order, whole or in part, at a given
// price. The fill has no other side, so the positions of the security then do not sum to zero
// (doc.go, invariant 1).
//
// No limit and no control applies. The price may be any on the grid, also beyond the order's limit;
// only the product must fit. It becomes the market price, unless it is late.
func (e *Engine) forceFill(c *Command) {
	i, o, cold, ok := e.owned(c)
	if !ok || c.Qty <= 0 || c.Qty > o.leaves || c.LimitPx <= 0 {
		e.rejectNamed(c, Invalid)
		return
	}
	_, ok = e.policy.toTicks(c.LimitPx)
	if !ok || c.LimitPx > maxInt64/int64(c.Qty) {
		e.rejectNamed(c, Invalid)
		return
	}
	ev := e.applyEvent(c, c.LimitPx, 0)
	ev.SecurityID = cold.securityID
	ev.name(e.number(o, cold))

	account, held := e.behind(o)
	account.release(o.side(), cold.limit*int64(c.Qty))
	account.settle(o.side(), c.LimitPx*int64(c.Qty))
	held.release(o.side(), int64(c.Qty))
	ladder := &e.ladders[o.security()-1]
	if c.Qty < o.leaves {
		ladder.reduce(i, c.Qty)
	} else {
		ladder.remove(i)
		o.leaves = 0
		e.openOrders--
	}
	row := e.positions.at(int(o.account)-1, o.security())
	security := &e.securities.rows[o.security()-1]
	late := security.late(c)
	fill, detail := e.orderFilled(o, cold, row, c.LimitPx, c.Qty, EventForced|EventLast|late)
	fill.AccountID = cold.accountID
	detail.LimitPx = cold.limit
	security.traded(c.LimitPx, e.now, late)
	if o.leaves == 0 {
		e.retire(i)
	}
}
