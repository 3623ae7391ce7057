package matcher

import "math/big"

// wrongTerm is a refusal as Invalid, by a rule that has no setting.
func wrongTerm(rule string, observed, limit Measure) Judgement {
	return Judgement{Reason: Invalid, Rule: rule, Observed: observed, Limit: limit}
}

// unknownSecurity covers both a number without a ticker and a ticker that no control has made known
// to trading: decisions do not distinguish them.
func (e *Engine) unknownSecurity() Judgement {
	return Judgement{Reason: UnknownSecurity, Rule: "security-known", Observed: word("unknown"),
		Limit: word("registered and known")}
}

// offGrid states the tick as the other side, because the price must be a multiple of it.
func (e *Engine) offGrid(c *Command) Judgement {
	return wrongTerm("tick-size", measure(c.LimitPx, UnitPrice), measure(e.policy.tickPx, UnitPrice))
}

// explain gives the two sides of the check that gave a reason. q is as the checks have left it, qty
// is the quantity that was judged: of a replace that which is still to trade. A reason without a
// case, such as Accepted, gives a Judgement without a rule.
//
// The engine has not changed since the checks ran, so what explain reads is what they read.
func (e *Engine) explain(c *Command, q *request, reason RiskReason, qty int64) Judgement {
	j := Judgement{Reason: reason}
	limits := e.limitsOf(q)
	switch reason {
	case KillSwitch:
		j.Rule, j.Observed, j.Limit = "kill-switch", word("on"), word("off")
	case UnknownAccount:
		j.Rule, j.Observed, j.Limit = "account-known", word("unknown"), word("known")
	case AccountDisabled:
		j.Rule, j.Observed, j.Limit = "account-enabled", word("disabled"), word("enabled")
	case UnknownSecurity:
		return e.unknownSecurity()
	case SecurityDisabled, Restricted:
		j.Rule, j.Observed, j.Limit = e.untradableNow(c.SecurityID)
	case Invalid:
		return e.explainInvalid(c, q)
	case OrderSize:
		j.Rule, j.Observed = "risk.max-order-quantity", measure(int64(c.Qty), UnitQuantity)
		j.Limit = measure(limits[LimitOrderQty], UnitQuantity)
	case PriceMissing:
		j.Rule, j.Observed, j.Limit = "price-known", word("none"), word("a price")
	case PriceStale:
		s := e.securities.at(c.SecurityID)
		j.Rule, j.Observed = "risk.price.max-age-ms", measure(e.now-s.lastTime, UnitMillis)
		j.Limit = measure(limits[LimitPriceAge], UnitMillis)
	case PriceCollar:
		last := e.securities.at(c.SecurityID).lastPx
		j.Rule, j.Observed = "risk.price.collar-bps", offBps(c.LimitPx, last)
		j.Limit = measure(limits[LimitCollar]*PriceScale, UnitBps)
	case OrderNotional:
		j.Rule, j.Observed = "risk.max-order-notional", product(q.price, int64(c.Qty))
		j.Limit = measure(limits[LimitOrderNotional], UnitCurrency)
		j.Parts = []Part{{"price", measure(q.price, UnitPrice)},
			{"quantity", measure(int64(c.Qty), UnitQuantity)}}
	case CreditLimit, PositionLimit, ConcentrationLimit:
		e.explainExposure(&j, c.Side, q, qty, &limits)
	case Capacity:
		j.Rule, j.Observed = "open-orders", measure(int64(e.openOrders)+1, UnitOrders)
		j.Limit = measure(int64(e.maxOpen), UnitOrders)
	}
	return j
}

// untradableNow says which flag makes a security untradable. With more than one it names the first
// in the order of the reasons: disabled, halted, restricted.
func (e *Engine) untradableNow(id uint32) (rule string, observed, limit Measure) {
	switch flags := e.securities.at(id).flags; {
	case flags&securityEnabled == 0:
		return "security-enabled", word("disabled"), word("enabled")
	case flags&securityHalted != 0:
		return "security-halted", word("halted"), word("not halted")
	}
	return "security-restricted", word("restricted"), word("not restricted")
}

// explainInvalid finds which term of a well-framed order, trade or replace is wrong. Its cases come
// in the order of screenOrder; the last one is a post-only order that would trade.
func (e *Engine) explainInvalid(c *Command, q *request) Judgement {
	switch {
	case c.Qty <= 0:
		return wrongTerm("quantity", measure(int64(c.Qty), UnitQuantity), measure(1, UnitQuantity))
	case c.Side > Sell:
		return wrongTerm("side", measure(int64(c.Side), UnitNumber), word("Buy or Sell"))
	case c.Type == TradeNew:
		return wrongTerm("terms", word("not well-formed"), word("well-formed"))
	case !Coherent(c.Flags, c.LimitPx <= 0) ||
		c.Type == OrderReplace && (c.LimitPx <= 0 || c.Flags&(FlagIOC|FlagFOK) != 0):
		return wrongTerm("time-in-force", word("contradicts the type"), word("one that fits the type"))
	case !q.onGrid && c.LimitPx > 0:
		return e.offGrid(c)
	}
	best, _ := e.books.at(c.SecurityID - 1).best(c.Side.Opposite())
	return wrongTerm("post-only", measure(c.LimitPx, UnitPrice),
		measure(best*e.policy.tickPx, UnitPrice))
}

// explainExposure gives the sums of exposure, with the terms that they are made of. A sale counts
// with the opposite sign: its executed cash and its position lower what the side uses. q.price is
// the price at which concentration was judged, which openBehind may have replaced by that of an
// open order.
func (e *Engine) explainExposure(j *Judgement, side Side, q *request, qty int64, l *RiskLimits) {
	account, p := e.accounts.table.at(q.owner-1), e.positions.table.at(q.row)
	sign := int64(1)
	if side == Sell {
		sign = -1
	}
	if j.Reason == CreditLimit {
		j.Rule, j.Limit = "risk.credit-limit", measure(l[LimitCredit], UnitCurrency)
		j.Observed = sumOf(UnitCurrency, sign*account.executed, account.open[side&1], q.notional)
		j.Parts = []Part{{"executed", measure(sign*account.executed, UnitCurrency)},
			{"open orders", measure(account.open[side&1], UnitCurrency)},
			{"this command", measure(q.notional, UnitCurrency)}}
		return
	}
	sum := sumOf(UnitQuantity, sign*p.quantity, p.open[side&1], qty)
	j.Parts = []Part{{"position", measure(sign*p.quantity, UnitQuantity)},
		{"open orders", measure(p.open[side&1], UnitQuantity)},
		{"this command", measure(qty, UnitQuantity)}}
	if j.Reason == PositionLimit {
		j.Rule, j.Observed = "risk.max-position-quantity", sum
		j.Limit = measure(l[LimitPosition], UnitQuantity)
		return
	}
	j.Rule, j.Limit = "risk.max-concentration-notional", measure(l[LimitConcentration], UnitCurrency)
	value := new(big.Int).Mul(new(big.Int).Abs(sum.Value), big.NewInt(q.price))
	j.Observed = Measure{Value: value, Unit: UnitCurrency}
	j.Parts = append(j.Parts, Part{"price", measure(q.price, UnitPrice)})
}

// explainBooking is explain of an OTC booking, which is judged by its notional alone: no price, no
// position and no security.
func (e *Engine) explainBooking(c *Command, terms *ContractTerms, reason RiskReason) Judgement {
	q := &request{}
	e.lookNow(c, q)
	limits := e.limitsOf(q)
	notional := int64(terms.Notional) * PriceScale
	switch reason {
	case Invalid:
		return wrongTerm("terms", word("not those of a contract"), word("representable terms"))
	case OrderNotional:
		return Judgement{Reason: reason, Rule: "risk.max-order-notional",
			Observed: measure(notional, UnitCurrency), Limit: measure(limits[LimitOrderNotional],
				UnitCurrency)}
	case CreditLimit:
		used := e.accounts.rows[q.owner-1].used()
		return Judgement{Reason: reason, Rule: "risk.credit-limit",
			Observed: sumOf(UnitCurrency, used, notional), Limit: measure(limits[LimitCredit], UnitCurrency),
			Parts: []Part{{"used", measure(used, UnitCurrency)},
				{"this command", measure(notional, UnitCurrency)}}}
	case Capacity:
		n := int64(len(e.contracts.rows))
		return Judgement{Reason: reason, Rule: "risk.max-contracts",
			Observed: measure(n+1, UnitContracts), Limit: measure(n, UnitContracts)}
	}
	return e.explain(c, q, reason, 0)
}

// limitsOf returns the limits that hold for the account of a request. Unlike boundsOf it does not
// need screenParties to have run, and an unknown account has those of all accounts.
func (e *Engine) limitsOf(q *request) RiskLimits {
	if q.owner != 0 {
		if at := e.accounts.rows[q.owner-1].bounds(); at != 0 {
			return e.bounds.rows[at].RiskLimits
		}
	}
	return e.all.RiskLimits
}
