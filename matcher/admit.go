//perf:hot

package matcher

// orderNew decides an ORDER_NEW. A repeated key is answered with the first decision and uses no
// number. Every other order uses one, a refused order too: its number is what the client asks for
// it by, and the key remembers it.
//
// An order that rests at once, the usual case, is one event; any other is an EventAccepted and then
// what matching did.
func (e *Engine) orderNew(c *Command, q *request) {
	key, asker, slot := uint64(c.PriceTicks), askerOf(c), keySlot{}
	if key != 0 {
		var entry *remembered
		if entry, slot = e.keys.find(orderKeys, key, asker); entry != nil {
			e.rejectDuplicate(c, entry)
			return
		}
	}
	number := e.nextRef
	if number > maxOrderRef {
		if number = e.numberLate(c); number == 0 {
			e.rejectUnnumbered(c)
			return
		}
	}
	e.nextRef = number + 1

	reason := e.screenOrder(c, q)
	if key != 0 {
		e.keys.remember(slot, key, number, asker|uint64(reason))
	}
	if reason != Accepted {
		e.refuse(c, number, reason)
		return
	}
	i, o, cold := e.newOrder(c, number)
	o.account = q.owner
	cold.reason = Accepted
	e.stamp++
	cold.stamp = e.stamp

	rests := !q.market && c.Flags&(FlagIOC|FlagFOK) == 0
	ladder := e.books.at(c.SecurityID - 1)
	if !q.crosses && rests {
		e.rest(ladder, i, o, q, q.notional)
		e.first(c, head(EventAccepted, c.Side, Accepted, StatusNew, EventRests|EventLast),
			cold.limit).name(number)
		return
	}
	e.first(c, head(EventAccepted, c.Side, Accepted, StatusNew, 0), cold.limit).name(number)
	switch {
	case q.crosses && (c.Flags&FlagFOK == 0 ||
		ladder.fillable(c.Side, q.limit, c.Qty, o.account)):
		e.take(c, ladder, i, o, cold, q)
	case c.Flags&FlagFOK != 0 && q.cut != Accepted &&
		!ladder.fillable(c.Side, anyPrice(c.Side), c.Qty, o.account):
		q.cut = Accepted // without the bound the book could not fill it whole either
	}
	e.finish(ladder, i, o, cold, q, rests)
}

// screenOrder decides whether an order is admitted. It takes the gate's verdict first and then
// repeats every check, because the engine is the authority: the gate's image follows the engine's
// events and is older.
//
// The first check that fails gives the reason. They run in this order: kill switch, account,
// security, the order's own terms, size, price or collar, notional, credit, position,
// concentration, room for an order that may rest. Along the way they fill in q for the match:
// market, limit, crosses, price, notional and cut.
func (e *Engine) screenOrder(c *Command, q *request) RiskReason {
	if c.OrderRef != 0 {
		return gateVerdict(c.OrderRef)
	}
	if r := e.screenParties(c, q); r != Accepted {
		return r
	}
	limits := e.boundsOf(q)
	q.market, q.cut = c.LimitPx <= 0, Accepted
	if c.Qty <= 0 || c.Side > Sell || !Coherent(c.Flags, q.market) {
		return Invalid
	}
	if q.limit = q.ticks; q.market {
		q.limit = anyPrice(c.Side)
	} else if !q.onGrid {
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
	security := e.securities.table.at(c.SecurityID - 1)
	if q.market {
		if r := e.priceMarket(q, limits, security, best, any); r != Accepted {
			return r
		}
		if c.Version >= version2 {
			e.boundMarket(c, q, limits, best, any)
		}
	} else {
		if r := limits.collar(security, c.LimitPx); r != Accepted {
			return r
		}
		q.price = c.LimitPx
	}
	e.raiseToBid(c, q, best)
	var ok bool
	if q.notional, ok = limits.worth(q.price, c.Qty); !ok {
		return OrderNotional
	}
	if r := e.exposed(c, q, limits, int64(c.Qty)); r != Accepted {
		return r
	}
	if q.market && c.Side == Buy && q.cut == Accepted && c.Version >= version2 {
		e.boundByLimits(c, q, best, any)
	}
	if e.openOrders == e.maxOpen && !q.market && c.Flags&(FlagIOC|FlagFOK) == 0 {
		return Capacity
	}
	return Accepted
}

// gateVerdict is what the gate decided, as far as the gate can decide it. A number that is no
// reason, or a duplicate, which only the engine's memory of keys knows, shows a fault of the edge;
// the order is refused with INTERNAL_POLICY_ERROR.
func gateVerdict(verdict uint32) RiskReason {
	if verdict >= uint32(ReasonCount) || RiskReason(verdict) == Duplicate {
		return InternalPolicyError
	}
	return RiskReason(verdict)
}

// anyPrice returns the limit of a side, in ticks, that every opposite price is within: the end of
// the range, MaxInt64 for a buyer and MinInt64 for a seller.
func anyPrice(side Side) int64 { return maxInt64 ^ mirror(side) }

// within reports whether a limit on side reaches the opposite price px, both in ticks. Exclusive or
// with the mirror reverses the order of all int64 for a seller, so one comparison without a branch
// serves both sides.
func within(side Side, limit, px int64) bool {
	m := mirror(side)
	return px^m <= limit^m
}

// priceMarket finds the price that a MARKET order is judged at: the market price, or the best
// opposite price while there is no market price. A price that is too old is not replaced by the
// book's: the order is refused.
func (e *Engine) priceMarket(q *request, limits *bounds, s *security, best int64,
	any bool) RiskReason {
	switch r := limits.fresh(s, e.now); {
	case r == PriceMissing && any:
		q.price = best * e.policy.tickPx
	case r != Accepted:
		return r
	default:
		q.price = s.lastPx
	}
	return Accepted
}

// newOrder takes an order from the pool and sets the fields that every order has. The account of a
// refused order stays 0, which belongs to no account. Links and stamp may be those of an earlier
// order at the place; the level is 0, because that order was off the book.
//
// The caller has checked the limits of open orders, so the pool has room: its capacity is open
// orders, retained orders and the one being decided.
func (e *Engine) newOrder(c *Command, number uint64) (ix, *order, *orderCold) {
	p, ref := e.orders, uint32(number)
	i := p.homeOf(ref)
	o := p.hot(i)
	if p.taken(o) || p.full() {
		i, o = e.newGuest(ref)
	} else {
		p.count++
		o.ref, o.account = ref, 0
	}
	o.tag = c.SecurityID<<8 | uint32(c.Side&1) // status NEW; cold has a refused id
	o.leaves = c.Qty
	cold := p.cold(i)
	cold.accountID, cold.securityID = c.AccountID, c.SecurityID
	cold.qty, cold.lastQty = c.Qty, 0
	cold.limit, cold.lastPx = max(c.LimitPx, 0), 0
	cold.created, cold.updated = e.now, e.now
	cold.era = uint16(number >> 32)
	return i, o, cold
}

// newGuest is the slow path of newOrder: another order has the home of the reference.
func (e *Engine) newGuest(ref uint32) (ix, *order) {
	i, ok := e.orders.take(ref)
	if !ok {
		panicPool(ref)
	}
	return i, e.orders.hot(i)
}

// refuse makes a refused order: it has a reference and is terminal at once. It is retained like
// other terminal orders, so that a client can read why.
func (e *Engine) refuse(c *Command, number uint64, reason RiskReason) {
	i, o, cold := e.newOrder(c, number)
	o.setStatus(StatusRejected)
	cold.reason = reason
	e.first(c, head(EventRejected, c.Side, reason, StatusRejected, EventLast), cold.limit).name(number)
	e.retire(i)
}

// rejectUnnumbered refuses an order when no number is left for it. There is no order then and no
// key is remembered: a repetition is decided anew.
func (e *Engine) rejectUnnumbered(c *Command) {
	e.first(c, head(EventRejected, c.Side, Capacity, StatusRejected, EventLast),
		c.LimitPx).OrderRef = 0
}

// rest puts the leaves of an order onto the book and reserves what the order needs. notional is its
// limit price times its leaves. Screening has judged at least as much, so the sums do not overflow.
func (e *Engine) rest(ladder *ladder, i ix, o *order, q *request, notional int64) {
	side := o.side()
	e.accounts.table.at(q.owner-1).reserve(side, notional)
	e.positions.table.at(q.row).reserve(side, int64(o.leaves))
	e.openOrders++
	ladder.rest(i, side, q.limit, ladder.start(q.leaf))
}

// finish ends the decision on an order that may have traded. Its leaves rest or are cancelled, and
// the last event of the command is marked, whichever it is. A cancel here has the reason of q.cut
// only when the book could have gone on; with an empty other side the bound made no difference.
func (e *Engine) finish(ladder *ladder, i ix, o *order, cold *orderCold, q *request, rests bool) {
	switch {
	case o.leaves == 0:
		e.retire(i)
	case rests:
		ev, detail := e.next(head(EventRested, o.side(), Accepted, o.status(), 0))
		e.aboutOrder(ev, detail, o, cold)
		e.rest(ladder, i, o, q, cold.limit*int64(o.leaves))
	default:
		o.setStatus(StatusCanceled)
		if _, more := ladder.best(o.side().Opposite()); more {
			cold.reason = q.cut // the rest of the book is beyond the bound
		}
		ev, detail := e.next(head(EventCanceled, o.side(), cold.reason, StatusCanceled, 0))
		e.aboutOrder(ev, detail, o, cold)
		e.retire(i)
	}
	e.out.last().Flags |= EventLast
}

// aboutOrder fills in a later event about the leaves of an order. It takes the ids as the command
// named them, from the cold half.
func (e *Engine) aboutOrder(ev *Event, detail *Detail, o *order, cold *orderCold) {
	ev.Px = cold.limit
	ev.TradeSeq = 0
	ev.name(e.number(o, cold))
	ev.AccountID = cold.accountID
	ev.SecurityID = cold.securityID
	ev.Qty = o.leaves
	detail.Leaves = o.leaves
	detail.LimitPx = cold.limit
}

// retired is the ring of the terminal orders that the engine still keeps, oldest first. Clients can
// read these orders.
//
// The ring holds pool indexes. An order that leaves it is forgotten in the same step, so no index
// in the ring is stale.
type retired struct {
	ring  []uint32
	next  int // where the next order goes
	count int
}

// retire keeps a terminal order. When the ring is full, the oldest one is forgotten. An engine that
// retains nothing drops the order at once. The caller has taken the order off the book.
func (e *Engine) retire(i ix) {
	r := &e.retired
	if len(r.ring) == 0 {
		e.orders.drop(i)
		return
	}
	place := &r.ring[r.next]
	gone := ix(*place)
	*place = uint32(i)
	if r.next++; r.next == len(r.ring) {
		r.next = 0
	}
	if r.count < len(r.ring) {
		r.count++
	}
	e.orders.retire(i, gone)
}

// at returns the i-th oldest retired order, from 0; i is below count.
func (r *retired) at(i int) ix {
	return ix(r.ring[(r.next-r.count+i+len(r.ring))%len(r.ring)])
}
