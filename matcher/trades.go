//perf:hot

package matcher

// taker is the incoming side of a match while the match runs. The engine is the ladder's fillSink:
// filled and prevented work on this. It holds pointers into the engine's tables, valid for one
// command; it means nothing between commands.
type taker struct {
	order   *order
	cold    *orderCold
	account *account
	row     uint32
	lastPx  int64  // x 1e6, 0 before the first fill
	late    uint16 // EventLate when the fills are older than the market price, else 0
}

// take matches an order against the other side of the book, up to q.limit, and records the price of
// its last fill as the market price. The order's leaves are what is left. It does not rest yet, so
// it has no reservation.
func (e *Engine) take(c *Command, ladder *ladder, i ix, o *order, cold *orderCold, q *request) {
	t := &e.taker // field by field: the compiler would build a composite aside and copy it
	t.order, t.cold, t.account = o, cold, e.accounts.table.at(q.owner-1)
	security := e.securities.table.at(o.security() - 1)
	t.row, t.lastPx, t.late = q.row, 0, security.late(c)
	ladder.match(o.side(), q.limit, o.leaves, o.account, e)
	if t.lastPx != 0 {
		security.traded(t.lastPx, e.now, t.late)
	}
}

// filled books one match: first the incoming order's fill, then the resting order's. Each has its
// own trade sequence, and both have the resting order's price. The ladder has already reduced the
// resting order's leaves; filled reduces the incoming order's.
func (e *Engine) filled(maker ix, px int64, qty int32) {
	t := &e.taker
	px *= e.policy.tickPx
	t.lastPx = px
	notional := px * int64(qty)

	m := e.orders.hot(maker)
	t.order.leaves -= qty
	t.account.settle(t.order.side(), notional)
	ev, detail := e.orderFilled(t.order, t.cold, t.row, px, qty, EventAggressor|t.late)
	ev.AccountID = t.account.id
	made := e.orders.cold(maker)
	detail.counter(e.number(m, made))
	detail.LimitPx = t.cold.limit

	// The code reads nothing of the resting order's cold half, so it does not wait for that memory:
	// the order is filled at its own limit, and its account holds its id.
	account, held := e.behind(m)
	account.release(m.side(), notional)
	account.settle(m.side(), notional)
	held.release(m.side(), int64(qty))
	row := e.positions.at(int(m.account)-1, m.security())
	ev, detail = e.orderFilled(m, made, row, px, qty, t.late)
	ev.AccountID = account.id
	detail.counter(e.number(t.order, t.cold))
	detail.LimitPx = px
	if m.leaves == 0 {
		e.openOrders--
		e.retire(maker)
	}
}

// orderFilled updates an order's status and the position behind it, and states the fill. The leaves
// are those after the fill; px is x 1e6. The caller must set AccountID, CounterRef and LimitPx,
// which it has at hand.
func (e *Engine) orderFilled(o *order, cold *orderCold, row uint32, px int64, qty int32,
	flags uint16) (*Event, *Detail) {
	status := StatusPartiallyFilled
	if o.leaves == 0 {
		status = StatusFilled
	}
	o.setStatus(status)
	cold.lastPx, cold.lastQty = px, qty
	cold.updated = e.now
	p := e.positions.fill(row, o.side(), px, qty)
	ev, detail := e.next(head(EventFilled, o.side(), Accepted, status, flags))
	e.tradeSeq++
	ev.Px = px
	ev.TradeSeq = e.tradeSeq
	ev.name(e.number(o, cold))
	ev.SecurityID = o.security()
	ev.Qty = qty
	detail.Leaves = o.leaves
	detail.PositionQty = p.quantity
	detail.AverageCost = p.average
	return ev, detail
}

// behind returns the account and the position of an order that was admitted. A refused order has no
// account and must not be asked for it.
func (e *Engine) behind(o *order) (*account, *position) {
	row := e.positions.at(int(o.account)-1, o.security())
	return e.accounts.table.at(o.account - 1), e.positions.table.at(row)
}

// prevented cancels a resting order that the incoming order of the same account meets. The incoming
// order goes on: it meets the next resting order.
func (e *Engine) prevented(maker ix) {
	m, cold := e.orders.hot(maker), e.orders.cold(maker)
	e.cancelOpen(m, cold, SelfTradePrevented)
	ev, detail := e.next(head(EventCanceled, m.side(), SelfTradePrevented, StatusCanceled, 0))
	e.aboutOrder(ev, detail, m, cold)
	e.retire(maker)
}

// cancelOpen makes an open order that is already off the book a cancelled one, and gives its
// reservation back. The caller writes the event and retires the order.
func (e *Engine) cancelOpen(o *order, cold *orderCold, reason RiskReason) {
	e.openOrders--
	o.setStatus(StatusCanceled)
	cold.reason = reason
	cold.updated = e.now
	e.releaseOpen(o, cold.limit)
}

// releaseOpen gives back what an open order has reserved: limit (x 1e6) times its leaves, and the
// leaves.
func (e *Engine) releaseOpen(o *order, limit int64) {
	account, held := e.behind(o)
	account.release(o.side(), limit*int64(o.leaves))
	held.release(o.side(), int64(o.leaves))
}

// tradeNew decides a TRADE_NEW: a market trade at the last known price, without an order or a
// match. It moves one account's position and cash; there is no other side. The key refers to the
// InputSeq, because a market trade has no number of its own.
func (e *Engine) tradeNew(c *Command, q *request) {
	key, asker, slot := uint64(c.PriceTicks), askerOf(c), keySlot{}
	if key != 0 {
		var entry *remembered
		if entry, slot = e.keys.find(orderKeys, key, asker); entry != nil {
			e.rejectDuplicate(c, entry)
			return
		}
	}
	reason := e.screenTrade(c, q)
	if key != 0 {
		e.keys.remember(slot, key, e.applied, asker|uint64(KeyTrade)<<8|uint64(reason))
	}
	if reason != Accepted {
		e.first(c, head(EventRejected, c.Side, reason, 0, EventLast), 0).OrderRef = 0
		return
	}
	e.first(c, head(EventBooked, c.Side, Accepted, 0, 0), q.price).OrderRef = 0

	e.accounts.table.at(q.owner-1).settle(c.Side, q.notional)
	p := e.positions.fill(q.row, c.Side, q.price, c.Qty)
	security := e.securities.table.at(c.SecurityID - 1)
	late := security.late(c)
	flags := EventMarket | EventLast | late
	ev, detail := e.next(head(EventFilled, c.Side, Accepted, StatusFilled, flags))
	e.tradeSeq++
	ev.Px, ev.TradeSeq, ev.OrderRef = q.price, e.tradeSeq, 0
	ev.AccountID, ev.SecurityID, ev.Qty = c.AccountID, c.SecurityID, c.Qty
	detail.PositionQty, detail.AverageCost = p.quantity, p.average
	security.traded(q.price, e.now, late)
}

// screenTrade is screenOrder for a market trade: without limit price, collar, flags and room for an
// order. The book's price does not replace a missing market price here.
func (e *Engine) screenTrade(c *Command, q *request) RiskReason {
	if c.OrderRef != 0 {
		return gateVerdict(c.OrderRef)
	}
	if r := e.screenParties(c, q); r != Accepted {
		return r
	}
	if c.Qty <= 0 || c.Side > Sell {
		return Invalid
	}
	limits := e.boundsOf(q)
	if int64(c.Qty) > limits.RiskLimits[LimitOrderQty] {
		return OrderSize
	}
	security := e.securities.table.at(c.SecurityID - 1)
	if r := limits.fresh(security, e.now); r != Accepted {
		return r
	}
	q.price = security.lastPx
	var ok bool
	if q.notional, ok = limits.worth(q.price, c.Qty); !ok {
		return OrderNotional
	}
	return e.exposed(c, q, limits, int64(c.Qty))
}

// priceTick decides a PRICE_TICK. A feed's price need not lie on the order grid. A tick that is
// older than the market price is accepted and marked late, and changes nothing.
func (e *Engine) priceTick(c *Command) {
	s := e.securities.at(c.SecurityID)
	switch {
	case s == nil:
		e.reject(c, UnknownSecurity)
	case c.PriceTicks <= 0:
		e.reject(c, Invalid)
	default:
		late := s.late(c)
		if late == 0 {
			s.lastPx, s.lastTime = c.PriceTicks, e.now
		}
		e.applyEvent(c, c.PriceTicks, EventLast|late)
	}
}
