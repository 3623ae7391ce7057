package matcher

import "math/big"

// Unit is what a Measure counts.
type Unit string

// The units. Values of currency, prices and basis points are x 1e6.
const (
	UnitQuantity  Unit = "quantity"
	UnitCurrency  Unit = "currency"
	UnitPrice     Unit = "price"
	UnitBps       Unit = "bps"
	UnitMillis    Unit = "ms"
	UnitOrders    Unit = "orders"
	UnitContracts Unit = "contracts"
	UnitNumber    Unit = "number"
	UnitState     Unit = "state" // a word instead of a number
)

// Scaled reports that values of the unit are x 1e6.
func (u Unit) Scaled() bool { return u == UnitCurrency || u == UnitPrice || u == UnitBps }

// Measure is one side of a check. Value is exact, also beyond 64 bits: a product may be.
type Measure struct {
	Value *big.Int // nil when Word says it
	Word  string
	Unit  Unit
}

func measure(v int64, u Unit) Measure { return Measure{Value: big.NewInt(v), Unit: u} }

func word(s string) Measure { return Measure{Word: s, Unit: UnitState} }

// Judgement is how the checks judge a command, and the two sides of the one that decides.
type Judgement struct {
	Reason   RiskReason
	Rule     string // names the check; empty when none refuses
	Observed Measure
	Limit    Measure
	Parts    []Part // what Observed is the sum or the product of
}

// Part is one term of an observed value.
type Part struct {
	What string
	Measure
}

// Judge says what the engine would decide on a command now, without the verdict of the gate that a
// record may carry, and why. The decision is that of the checks themselves; nothing changes. It is
// not on the path of a command: only the owner may call it, between two commands.
func (e *Engine) Judge(c *Command) Judgement {
	if c.TemplateID != TemplateCommand {
		return Judgement{}
	}
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

// lookNow is lookAhead without prefetching.
func (e *Engine) lookNow(c *Command, q *request) {
	q.owner = e.accounts.seek(c.AccountID)
	q.row = e.positions.at(int(q.owner)-1, c.SecurityID)
	q.ticks, q.onGrid = e.policy.toTicks(c.LimitPx)
}

// judgeKey finds a command whose key is known.
func (e *Engine) judgeKey(c *Command) (Judgement, bool) {
	family := orderKeys
	if c.books() {
		family = contractKeys
	}
	if c.PriceTicks == 0 {
		return Judgement{}, false
	}
	entry, _ := e.keys.find(family, uint64(c.PriceTicks), asker(c))
	if entry == nil {
		return Judgement{}, false
	}
	first := RiskReason(entry.decision)
	return Judgement{Reason: Duplicate, Rule: "idempotency-key", Observed: word("used before"),
		Limit: word("new"), Parts: []Part{{"first decision", word(first.String())},
			{"first reference", measure(int64(entry.ref), UnitNumber)}}}, true
}

// judgeReplace judges a replace as orderReplace does, and gives the order's reservation back.
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

func wrongTerm(rule string, observed, limit Measure) Judgement {
	return Judgement{Reason: Invalid, Rule: rule, Observed: observed, Limit: limit}
}

// judgeNamed judges the order that a cancel, a replace or a force fill names.
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

// judgeOther judges a command that no limit applies to.
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

// judgeOfSecurity judges a price or a restriction.
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

// judgeLimits judges one part of a change of limits.
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

func (e *Engine) judgeForce(c *Command) Judgement {
	o := e.orders.hot(e.orders.find(c.OrderRef))
	if c.Qty <= 0 || c.Qty > o.leaves {
		return wrongTerm("force-quantity", measure(int64(c.Qty), UnitQuantity),
			measure(int64(o.leaves), UnitQuantity))
	}
	if _, ok := e.policy.toTicks(c.LimitPx); !ok || c.LimitPx <= 0 {
		return e.offGrid(c)
	}
	return Judgement{}
}

func (e *Engine) unknownSecurity() Judgement {
	return Judgement{Reason: UnknownSecurity, Rule: "security-known", Observed: word("unknown"),
		Limit: word("registered and known")}
}

func (e *Engine) offGrid(c *Command) Judgement {
	return wrongTerm("tick-size", measure(c.LimitPx, UnitPrice), measure(e.policy.tickPx, UnitPrice))
}

// explain gives the two sides of the check that gave a reason. q is as the checks have left it, qty
// is the quantity that was judged.
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

// untradableNow says which flag makes a security untradable.
func (e *Engine) untradableNow(id uint32) (rule string, observed, limit Measure) {
	switch flags := e.securities.at(id).flags; {
	case flags&securityEnabled == 0:
		return "security-enabled", word("disabled"), word("enabled")
	case flags&securityHalted != 0:
		return "security-halted", word("halted"), word("not halted")
	}
	return "security-restricted", word("restricted"), word("not restricted")
}

// explainInvalid finds which term of a well-framed command is wrong.
func (e *Engine) explainInvalid(c *Command, q *request) Judgement {
	switch {
	case c.Qty <= 0:
		return wrongTerm("quantity", measure(int64(c.Qty), UnitQuantity), measure(1, UnitQuantity))
	case c.Side > Sell:
		return wrongTerm("side", measure(int64(c.Side), UnitNumber), word("Buy or Sell"))
	case c.Type == TradeNew:
		return wrongTerm("terms", word("not well-formed"), word("well-formed"))
	case !coherent(c.Flags, c.LimitPx <= 0) || c.Type == OrderReplace && c.LimitPx <= 0:
		return wrongTerm("time-in-force", word("contradicts the type"), word("one that fits the type"))
	case !q.onGrid && c.LimitPx > 0:
		return e.offGrid(c)
	}
	best, _ := e.books.at(c.SecurityID - 1).best(c.Side.Opposite())
	return wrongTerm("post-only", measure(c.LimitPx, UnitPrice),
		measure(best*e.policy.tickPx, UnitPrice))
}

// explainExposure gives the sums of exposure.
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

// explainBooking is explain of an OTC booking.
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

// limitsOf returns the limits that hold for the account of a request.
func (e *Engine) limitsOf(q *request) RiskLimits {
	if q.owner != 0 {
		if at := e.accounts.rows[q.owner-1].bounds(); at != 0 {
			return e.bounds.rows[at].RiskLimits
		}
	}
	return e.all.RiskLimits
}

func sumOf(u Unit, terms ...int64) Measure {
	sum := new(big.Int)
	for _, t := range terms {
		sum.Add(sum, big.NewInt(t))
	}
	return Measure{Value: sum, Unit: u}
}

// product is a price x 1e6 times a quantity.
func product(px, qty int64) Measure {
	return Measure{Value: new(big.Int).Mul(big.NewInt(px), big.NewInt(qty)), Unit: UnitCurrency}
}

// offBps is how far a limit is from the market price, rounded up.
func offBps(limit, last int64) Measure {
	v := big.NewInt(abs(limit - last))
	v.Mul(v, big.NewInt(10_000*PriceScale))
	v.Add(v, big.NewInt(last-1))
	return Measure{Value: v.Div(v, big.NewInt(last)), Unit: UnitBps}
}

// String is the value with its unit.
func (m Measure) String() string {
	if m.Value == nil {
		return m.Word
	}
	return m.Decimal() + " " + string(m.Unit)
}

// Decimal is the value as an exact decimal without trailing zeros.
func (m Measure) Decimal() string {
	if m.Value == nil {
		return ""
	}
	if !m.Unit.Scaled() {
		return m.Value.String()
	}
	text := new(big.Rat).SetFrac(m.Value, big.NewInt(PriceScale)).FloatString(6)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text
}

// QueueAhead counts the open orders that are before an open order in the queue of its price level,
// and their quantity. Its cost is the queue of the level. Only the owner may call it.
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
