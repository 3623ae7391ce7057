package matcher

// Judgement is how the checks judge a command, and the two sides of the one that decides. The zero
// value is the judgement of a command that no check refuses.
//
// For orders, trades, replaces and bookings Reason is what the engine's own checks return; for the
// other types judgeOther repeats their conditions. Rule and the two sides are found afterwards,
// from the state that the checks read; they are for people and take no part in a decision.
type Judgement struct {
	Reason RiskReason
	// Rule names the check: the setting of the limit that refuses (risk.max-order-quantity), or a word
	// for a check without a setting (kill-switch). Empty when none refuses.
	Rule     string
	Observed Measure
	Limit    Measure
	Parts    []Part // what Observed is the sum or the product of
}

// Part is one term of an observed value. What names it in words: "position", "open orders", "this
// command", "price".
type Part struct {
	What string
	Measure
}

// Judge says what the engine would decide on a command now, without the verdict of the gate that a
// record may carry, and why. The decision is that of the checks themselves; nothing changes. It is
// not on the path of a command: only the owner may call it, between two commands. Package
// journal/why asks it about the state before a command, journal/whatif about a verdict of the gate.
//
//   - c is in the form that Decode requires. Its InputSeq does not matter; its event time does.
//   - Cost: that of the decision, and of the numbers as big.Int. It allocates.
func (e *Engine) Judge(c *Command) Judgement {
	switch c.TemplateID {
	case TemplateCommand:
	case TemplateSymbolRegister:
		return e.judgeSymbol(c)
	default:
		return Judgement{}
	}
	// The checks read the age of a price from the engine's clock, which is the event time.
	now := e.now
	e.now = c.EventTimeMillis
	defer func() { e.now = now }()
	q := &request{}
	e.lookNow(c, q)
	switch c.Type {
	case OrderNew, TradeNew, OrderReplace, SwapBook, SwaptionBook:
		if j, known := e.judgeKey(c); known {
			return j
		}
	}
	// Without the gate's verdict: OrderRef of a new order or a trade holds it.
	free := *c
	free.OrderRef = 0
	switch c.Type {
	case OrderNew:
		if e.nextRef > maxOrderRef && e.numberLate(c) == 0 {
			return Judgement{Reason: Capacity, Rule: "order-numbers", Observed: measure(1, UnitOrders),
				Limit: measure(0, UnitOrders)}
		}
		return e.explain(&free, q, e.screenOrder(&free, q), int64(c.Qty))
	case TradeNew:
		return e.explain(&free, q, e.screenTrade(&free, q), int64(c.Qty))
	case OrderReplace:
		return e.judgeReplace(c, q)
	case SwapBook, SwaptionBook:
		terms, _ := c.ContractTerms()
		return e.explainBooking(c, &terms, e.screenBooking(c, &terms))
	}
	return e.judgeOther(c)
}

// lookNow is lookAhead without prefetching. q.row means something only when q.owner is not 0.
func (e *Engine) lookNow(c *Command, q *request) {
	q.owner = e.accounts.seek(c.AccountID)
	q.row = e.positions.at(int(q.owner)-1, c.SecurityID)
	q.ticks, q.onGrid = e.policy.toTicks(c.LimitPx)
}

// judgeKey finds a command whose key is known; known is false for a new key and for a command
// without a key. The engine answers such a command with the first decision and checks nothing else,
// so this comes before every other check.
func (e *Engine) judgeKey(c *Command) (Judgement, bool) {
	family := orderKeys
	if c.books() {
		family = contractKeys
	}
	if c.PriceTicks == 0 {
		return Judgement{}, false
	}
	entry, _ := e.keys.find(family, uint64(c.PriceTicks), askerOf(c))
	if entry == nil {
		return Judgement{}, false
	}
	first := RiskReason(entry.decision)
	return Judgement{Reason: Duplicate, Rule: "idempotency-key", Observed: word("used before"),
		Limit: word("new"), Parts: []Part{{"first decision", word(first.String())},
			{"first reference", measure(int64(entry.ref), UnitNumber)}}}, true
}

// judgeReplace judges a replace as orderReplace does: without the order's present reservation,
// which it gives back to the engine before it returns. The explanation is made while the
// reservation is out, because its sums must be those that the checks saw.
func (e *Engine) judgeReplace(c *Command, q *request) Judgement {
	_, o, cold, ok := e.owned(c)
	if !ok {
		return e.judgeNamed(c)
	}
	if o.security() != c.SecurityID || o.side() != c.Side {
		return wrongTerm("order-terms", word("another security or side"), word("those of the order"))
	}
	e.releaseOpen(o, cold.limit)
	defer e.reserveOpen(o, cold)
	reason := e.screenReplace(c, q, o, cold)
	filled := cold.qty - o.leaves
	if reason == Invalid && c.Qty <= filled {
		return wrongTerm("replace-quantity", measure(int64(c.Qty), UnitQuantity),
			measure(int64(filled), UnitQuantity))
	}
	return e.explain(c, q, reason, int64(c.Qty-filled))
}

// judgeNamed judges the order that a cancel, a replace or a force fill names. The reason is Invalid
// in every case; only the rule says which. A retained terminal order and an order that the engine
// has forgotten differ here, but not in a decision.
func (e *Engine) judgeNamed(c *Command) Judgement {
	i := e.orders.find(c.OrderRef)
	if i == 0 {
		return wrongTerm("order-known", word("no such order is kept"), word("an open order"))
	}
	o, cold := e.orders.hot(i), e.orders.cold(i)
	switch {
	case cold.accountID != c.AccountID:
		return wrongTerm("order-owner", word("another account's order"),
			word("an order of the account"))
	case o.status().Terminal():
		return wrongTerm("order-open", word(o.status().String()), word("NEW or PARTIALLY_FILLED"))
	}
	return Judgement{}
}

// judgeOther judges a command that no risk limit applies to. Its cases repeat the conditions of the
// functions that decide these commands (controls.go, revoke.go, limits_apply.go) in the same order;
// the two must be changed together.
func (e *Engine) judgeOther(c *Command) Judgement {
	switch c.Type {
	case OrderCancel:
		return e.judgeNamed(c)
	case ForceFill:
		if j := e.judgeNamed(c); j.Reason != Accepted {
			return j
		}
		return e.judgeForce(c)
	case SecurityControl:
		if c.Side&^c.sides() != 0 {
			return wrongTerm("flags", measure(int64(c.Side), UnitNumber), word("flags that there are"))
		}
		if c.SecurityID-1 >= uint32(e.securities.count) {
			return e.unknownSecurity()
		}
	case PriceTick, RestrictionControl:
		return e.judgeOfSecurity(c)
	case AccountControl:
		if c.Side&^c.sides() != 0 {
			return wrongTerm("flags", measure(int64(c.Side), UnitNumber), word("flags that there are"))
		}
		if e.accounts.find(c.AccountID) < 0 && e.accounts.count == len(e.accounts.rows) {
			n := int64(e.accounts.count)
			return Judgement{Reason: Capacity, Rule: "risk.max-accounts",
				Observed: measure(n+1, UnitNumber), Limit: measure(n, UnitNumber)}
		}
	case LimitsControl:
		return e.judgeLimits(c)
	case CapacityControl:
		if !e.Capacities().Raised(c).Possible() {
			return wrongTerm("capacities", word("not possible together"), word("what an engine can have"))
		}
	case TokenRevoke:
		if r := c.Revocation(); e.revoked.place(&r) < 0 {
			return Judgement{Reason: Capacity, Rule: "revocations",
				Observed: measure(MaxRevocations+1, UnitNumber), Limit: measure(MaxRevocations, UnitNumber)}
		}
	case PolicyControl:
		if c.Version >= version2 && c.PriceTicks <= e.policyVersion {
			return wrongTerm("policy-version", measure(c.PriceTicks, UnitNumber),
				measure(e.policyVersion+1, UnitNumber))
		}
		if c.Side > 1 || c.Qty < 0 || c.LimitPx < 0 {
			return wrongTerm("terms", word("not those of a policy"), word("limits that are not negative"))
		}
	}
	return Judgement{}
}

// judgeOfSecurity judges a price or a restriction. The security must be known to trading: a ticker
// that is only registered takes neither.
func (e *Engine) judgeOfSecurity(c *Command) Judgement {
	switch {
	case e.securities.at(c.SecurityID) == nil:
		return e.unknownSecurity()
	case c.Type == PriceTick && c.PriceTicks <= 0:
		return wrongTerm("price", measure(c.PriceTicks, UnitPrice), measure(1, UnitPrice))
	case c.Type == RestrictionControl && c.Side > 1:
		return wrongTerm("flags", measure(int64(c.Side), UnitNumber), word("0 or 1"))
	}
	return Judgement{}
}

// judgeLimits judges one part of a change of limits. It takes the part into a copy of what is
// pending, so the engine still waits for the same part afterwards.
func (e *Engine) judgeLimits(c *Command) Judgement {
	pending := e.pending
	switch {
	case c.OrderRef == limitsOfAccount && e.accounts.find(c.AccountID) < 0:
		return Judgement{Reason: UnknownAccount, Rule: "account-known", Observed: word("unknown"),
			Limit: word("known")}
	case c.PriceTicks <= e.policyVersion:
		return wrongTerm("policy-version", measure(c.PriceTicks, UnitNumber),
			measure(e.policyVersion+1, UnitNumber))
	case c.Flags != 0 || !pending.take(c):
		return wrongTerm("terms", word("not the next part of a change"), word("the parts in order"))
	}
	return Judgement{}
}

// judgeForce judges quantity and price of a force fill whose order is known, open and the
// account's.
func (e *Engine) judgeForce(c *Command) Judgement {
	o := e.orders.hot(e.orders.find(c.OrderRef))
	if c.Qty <= 0 || c.Qty > o.leaves {
		return wrongTerm("force-quantity", measure(int64(c.Qty), UnitQuantity),
			measure(int64(o.leaves), UnitQuantity))
	}
	if _, ok := e.policy.toTicks(c.LimitPx); !ok || c.LimitPx <= 0 {
		return e.offGrid(c)
	}
	if c.LimitPx > maxInt64/int64(c.Qty) {
		return wrongTerm("force-notional", product(c.LimitPx, int64(c.Qty)),
			measure(maxInt64, UnitCurrency))
	}
	return Judgement{}
}

// judgeSymbol judges the registration of a ticker. A known ticker needs no room.
func (e *Engine) judgeSymbol(c *Command) Judgement {
	ticker, n := c.symbolBytes(), int64(e.securities.count)
	if tickerLen(ticker) == 0 {
		return wrongTerm("ticker", word("not a ticker"), word("1 to 32 printable ASCII characters"))
	}
	if id, _ := e.securities.find(ticker); id == 0 && e.securities.count == len(e.securities.rows) {
		return Judgement{Reason: Capacity, Rule: "risk.max-securities",
			Observed: measure(n+1, UnitNumber), Limit: measure(n, UnitNumber)}
	}
	return Judgement{}
}

// QueueAhead counts the open orders that are before an open order in the queue of its price level,
// and their quantity. ok is false for a reference without an open order. Its cost is the queue of
// the level. Only the owner may call it, between two commands.
func (e *Engine) QueueAhead(ref uint32) (orders int, qty int64, ok bool) {
	i := e.orders.find(ref)
	if ref == 0 || i == 0 || e.orders.hot(i).status().Terminal() {
		return 0, 0, false
	}
	o := e.orders.hot(i)
	ladder := &e.ladders[o.security()-1]
	for at := ladder.levels.at(o.level).head; at != i && at != 0; at = ladder.orders.at(at).next {
		orders++
		qty += int64(ladder.orders.at(at).leaves)
	}
	return orders, qty, true
}

// SetOrder and SetCounter change the order that a copy of an event is about, and the one on the
// other side of a fill: for readers that number orders in their own way.
func (e *Event) SetOrder(number uint64) { e.name(number) }

// SetCounter is described at SetOrder.
func (d *Detail) SetCounter(number uint64) { d.counter(number) }

// AboutOrder reports a command whose events' order number is that of an order. In a control it
// holds something else.
func (c *Command) AboutOrder() bool {
	if c.TemplateID != TemplateCommand {
		return false
	}
	switch c.Type {
	case OrderNew, OrderCancel, OrderReplace, ForceFill:
		return true
	}
	return false
}
