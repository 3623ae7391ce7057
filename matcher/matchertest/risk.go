package matchertest

import (
	"cmp"
	"math/big"
	"slices"

	"posttrade/matcher"
)

// sender judges the sender of a command and its subject: kill switch, account, security. A security
// that is both halted and restricted is reported as disabled.
func (m *Model) sender() matcher.RiskReason {
	a, s := m.accounts[m.cmd.AccountID], m.security(m.cmd.SecurityID)
	switch {
	case m.kill:
		return matcher.KillSwitch
	case a == nil:
		return matcher.UnknownAccount
	case !a.enabled:
		return matcher.AccountDisabled
	case s == nil:
		return matcher.UnknownSecurity
	case !s.enabled || s.halted:
		return matcher.SecurityDisabled
	case s.restricted:
		return matcher.Restricted
	}
	return matcher.Accepted
}

// rules returns the version of the rules that decide the command.
func (m *Model) rules() uint16 { return m.cmd.Version }

// late returns the flag of a price that is older than the market price.
func (m *Model) late(s *security) uint16 {
	if m.rules() >= 2 && s.lastPx != 0 && m.cmd.EventTimeMillis < s.lastTime {
		return matcher.EventLate
	}
	return 0
}

// bound returns how far the order being decided may execute, 0 for any price, and the reason for
// the bound. It holds for an order that judge has admitted, before anything has executed. A limit
// order is bound by its limit, and its leaves rest or are cancelled without a reason.
func (m *Model) bound() (px int64, cut matcher.RiskReason) {
	c := &m.cmd
	if c.LimitPx > 0 || m.rules() == 1 {
		return max(c.LimitPx, 0), matcher.Accepted
	}
	price, reach := m.marketPrice(), big.NewInt(m.limit(matcher.LimitCollar))
	reach.Mul(reach, big.NewInt(price)).Quo(reach, big.NewInt(10_000))
	switch {
	case m.limit(matcher.LimitCollar) != 0 && c.Side == matcher.Buy:
		return reach.Add(reach, big.NewInt(price)).Int64(), matcher.PriceCollar
	case m.limit(matcher.LimitCollar) != 0:
		return max(price-reach.Int64(), 1), matcher.PriceCollar
	case c.Side == matcher.Sell:
		return 0, matcher.Accepted
	}
	// The first price of the grid that would be refused, with the first reason against it.
	qty, low, high := c.Qty, price/m.tick, int64(1)<<40
	for low < high {
		if mid := (low + high + 1) / 2; m.affordable(mid*m.tick, qty) == matcher.Accepted {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return max(low*m.tick, 1), m.scarcest(qty) // below the first tick is no price of the book
}

// affordable judges a purchase at a price, as if that were the price that it is judged at.
func (m *Model) affordable(px int64, qty int32) matcher.RiskReason {
	if m.tooMuch(px, qty) {
		return matcher.OrderNotional
	}
	return m.exposure(nil, qty, px)
}

// scarcest returns the limit that a rising price meets first. It searches for the last price that
// is affordable, in halves, and asks for the reason one step above.
func (m *Model) scarcest(qty int32) matcher.RiskReason {
	low, high := int64(0), int64(1)<<50 // no limit of a test is higher
	for low < high {
		if mid := (low + high + 1) / 2; m.affordable(mid, qty) == matcher.Accepted {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return m.affordable(low+1, qty)
}

// marketPrice returns the price that a market order is judged at.
func (m *Model) marketPrice() int64 {
	if s := m.security(m.cmd.SecurityID); s.lastPx != 0 {
		return s.lastPx
	}
	return m.best(m.cmd.SecurityID, m.cmd.Side)
}

// judged returns the price that limits are judged at: the highest that any part of the order can
// execute at.
func (m *Model) judged(price int64) int64 {
	c := &m.cmd
	if m.rules() == 1 {
		return price
	}
	px, _ := m.bound()
	best := m.best(c.SecurityID, c.Side)
	switch {
	case c.Side == matcher.Sell && crosses(matcher.Sell, px, best):
		return max(price, best)
	case c.Side == matcher.Buy && c.LimitPx <= 0 && m.limit(matcher.LimitCollar) != 0:
		return px
	}
	return price
}

// reduces reports whether an order only reduces a position, whatever else of its side executes.
func (m *Model) reduces(but *order, qty int32) bool {
	c := &m.cmd
	held := m.position(c.AccountID, c.SecurityID).qty
	after := held + signed(c.Side, qty)
	for _, o := range m.open {
		if o != but && o.account == c.AccountID && o.side == c.Side && o.security == c.SecurityID {
			after += signed(o.side, o.leaves)
		}
	}
	return held > 0 && c.Side == matcher.Sell && after >= 0 ||
		held < 0 && c.Side == matcher.Buy && after <= 0
}

// exposure judges credit, position and concentration from all open orders but one: the order that a
// replace changes, nil for a new one.
func (m *Model) exposure(but *order, qty int32, price int64) matcher.RiskReason {
	c := &m.cmd
	if m.rules() >= 2 && m.reduces(but, qty) {
		return matcher.Accepted
	}
	used := new(big.Int).Set(m.accounts[c.AccountID].executed)
	held := big.NewInt(m.position(c.AccountID, c.SecurityID).qty)
	if c.Side == matcher.Sell {
		used.Neg(used)
		held.Neg(held)
	}
	add := func(sum *big.Int, a, b int64) {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(a), big.NewInt(b)))
	}
	for _, o := range m.open {
		if o == but || o.account != c.AccountID || o.side != c.Side {
			continue
		}
		add(used, o.limit, int64(o.leaves))
		if o.security == c.SecurityID {
			add(held, int64(o.leaves), 1)
		}
	}
	add(used, price, int64(qty))
	add(held, int64(qty), 1)
	worth := new(big.Int).Mul(new(big.Int).Abs(held), big.NewInt(price))
	switch {
	case used.Cmp(big.NewInt(m.limit(matcher.LimitCredit))) > 0:
		return matcher.CreditLimit
	case held.Cmp(big.NewInt(m.limit(matcher.LimitPosition))) > 0:
		return matcher.PositionLimit
	case worth.Cmp(big.NewInt(m.limit(matcher.LimitConcentration))) > 0:
		return matcher.ConcentrationLimit
	case m.rules() == 3 &&
		m.worstBehind(but, qty).Cmp(big.NewInt(m.limit(matcher.LimitConcentration))) > 0:
		m.newest = true
		return matcher.ConcentrationLimit
	}
	return matcher.Accepted
}

// worstBehind returns the largest value, at the price of the last execution, that the position can
// have when this command and the open orders on its side execute from the best price on. A purchase
// from the book executes behind every open one that is dearer.
func (m *Model) worstBehind(but *order, qty int32) *big.Int {
	c, worst := &m.cmd, new(big.Int)
	if c.Side == matcher.Buy && c.Type != matcher.TradeNew {
		return worst
	}
	type execution struct {
		px, qty int64
		own     bool
	}
	all := []execution{{c.LimitPx, int64(qty), true}}
	for _, o := range m.open {
		if o != but && o.account == c.AccountID && o.side == c.Side && o.security == c.SecurityID {
			all = append(all, execution{o.limit, int64(o.leaves), false})
		}
	}
	slices.SortStableFunc(all, func(a, b execution) int {
		if c.Side == matcher.Buy {
			a, b = b, a
		}
		return cmp.Compare(a.px, b.px)
	})
	held := m.position(c.AccountID, c.SecurityID).qty
	if c.Type == matcher.TradeNew { // it executes at once
		held += signed(c.Side, qty)
	}
	for _, x := range all {
		if !x.own || c.Type != matcher.TradeNew {
			held += signed(c.Side, int32(x.qty))
		}
		added := held > 0 && c.Side == matcher.Buy || held < 0 && c.Side == matcher.Sell
		value := new(big.Int).Mul(big.NewInt(x.px), new(big.Int).Abs(big.NewInt(held)))
		if !x.own && added && value.Cmp(worst) > 0 {
			worst = value
		}
	}
	return worst
}

// collar judges a limit price against the market price.
func (m *Model) collar() matcher.RiskReason {
	s := m.security(m.cmd.SecurityID)
	off := new(big.Int).Abs(new(big.Int).Sub(big.NewInt(m.cmd.LimitPx), big.NewInt(s.lastPx)))
	off.Mul(off, big.NewInt(10_000))
	most := new(big.Int).Mul(big.NewInt(s.lastPx), big.NewInt(m.limit(matcher.LimitCollar)))
	if s.lastPx != 0 && m.limit(matcher.LimitCollar) != 0 && off.Cmp(most) > 0 {
		return matcher.PriceCollar
	}
	return matcher.Accepted
}

// tooMuch compares without rounding: the product has more than 64 bits.
func (m *Model) tooMuch(px int64, qty int32) bool {
	worth := new(big.Int).Mul(big.NewInt(px), big.NewInt(int64(qty)))
	return worth.Cmp(big.NewInt(m.limit(matcher.LimitOrderNotional))) > 0
}

// fresh judges the age of the market price. It is asked only for what executes at that price.
func (m *Model) fresh(s *security) matcher.RiskReason {
	switch {
	case s.lastPx == 0:
		return matcher.PriceMissing
	case m.cmd.EventTimeMillis-s.lastTime > m.limit(matcher.LimitPriceAge):
		return matcher.PriceStale
	}
	return matcher.Accepted
}

// verdict is the gate's refusal, which the command carries where it has no reference yet. A number
// that no gate writes is refused as such, and not obeyed.
func (m *Model) verdict() matcher.RiskReason {
	v := m.cmd.OrderRef
	if v >= uint32(matcher.ReasonCount) || v == uint32(matcher.Duplicate) {
		return matcher.InternalPolicyError
	}
	return matcher.RiskReason(v)
}

// judge is the verdict on a new order. The first rule that refuses gives the reason, so the order
// of the rules is part of what the engine promises.
func (m *Model) judge() matcher.RiskReason {
	c := &m.cmd
	if c.OrderRef != 0 {
		return m.verdict()
	}
	if r := m.sender(); r != matcher.Accepted {
		return r
	}
	tif := c.Flags &^ matcher.FlagShadow
	best := m.best(c.SecurityID, c.Side)
	isMarket := c.LimitPx <= 0
	switch {
	case c.Qty < 1, c.Side > 1, tif != 0 && tif != matcher.FlagIOC &&
		tif != matcher.FlagFOK && tif != matcher.FlagPostOnly,
		isMarket && tif == matcher.FlagPostOnly, !isMarket && c.LimitPx%m.tick != 0,
		tif == matcher.FlagPostOnly && crosses(c.Side, c.LimitPx, best):
		return matcher.Invalid
	case int64(c.Qty) > m.limit(matcher.LimitOrderQty):
		return matcher.OrderSize
	}
	price := c.LimitPx
	if isMarket {
		s := m.security(c.SecurityID)
		price = s.lastPx
		if r := m.fresh(s); r == matcher.PriceMissing && best != 0 {
			price = best
		} else if r != matcher.Accepted {
			return r
		}
	} else if r := m.collar(); r != matcher.Accepted {
		return r
	}
	price = m.judged(price)
	if m.tooMuch(price, c.Qty) {
		return matcher.OrderNotional
	}
	if r := m.exposure(nil, c.Qty, price); r != matcher.Accepted {
		return r
	}
	if len(m.open) == m.limits.MaxOpenOrders && !isMarket &&
		tif&(matcher.FlagIOC|matcher.FlagFOK) == 0 {
		return matcher.Capacity
	}
	return matcher.Accepted
}

// available returns the quantity that others offer an order up to bound, 0 for any price. An
// account's own orders do not count: they are cancelled and not traded with.
func (m *Model) available(o *order, bound int64) (qty int64) {
	for _, x := range m.open {
		if x.security == o.security && x.side != o.side && x.account != o.account &&
			crosses(o.side, bound, x.limit) {
			qty += int64(x.leaves)
		}
	}
	return qty
}

// signed is what an execution adds to a position.
func signed(side matcher.Side, qty int32) int64 {
	if side == matcher.Sell {
		return -int64(qty)
	}
	return int64(qty)
}

// position makes an empty one at its first use.
func (m *Model) position(account, security uint32) *position {
	key := [2]uint32{account, security}
	if m.positions[key] == nil {
		m.positions[key] = &position{}
	}
	return m.positions[key]
}

// trade adds an execution. The average cost changes while the position grows, starts again at px
// when it turns over, and stays while it shrinks.
func (p *position) trade(qty, px int64) {
	was := p.qty
	p.qty += qty
	switch {
	case p.qty == 0:
		p.avg = 0
	case was == 0 || was < 0 != (p.qty < 0):
		p.avg = px
	case was < 0 == (qty < 0):
		cost := new(big.Int).Mul(big.NewInt(was), big.NewInt(p.avg))
		cost.Add(cost, new(big.Int).Mul(big.NewInt(qty), big.NewInt(px)))
		// Half away from zero: twice the quotient, plus one, halved.
		cost.Abs(cost).Mul(cost, big.NewInt(2))
		by := new(big.Int).Abs(big.NewInt(p.qty))
		cost.Add(cost, by).Quo(cost, by.Mul(by, big.NewInt(2)))
		p.avg = cost.Int64()
	}
}

// judgeTrade is the verdict on a market trade: an order without a book behind it, judged and
// executed at the market price.
func (m *Model) judgeTrade() matcher.RiskReason {
	c := &m.cmd
	if c.OrderRef != 0 {
		return m.verdict()
	}
	if r := m.sender(); r != matcher.Accepted {
		return r
	}
	s := m.security(c.SecurityID)
	switch {
	case c.Qty < 1 || c.Side > 1:
		return matcher.Invalid
	case int64(c.Qty) > m.limit(matcher.LimitOrderQty):
		return matcher.OrderSize
	case m.fresh(s) != matcher.Accepted:
		return m.fresh(s)
	case m.tooMuch(s.lastPx, c.Qty):
		return matcher.OrderNotional
	}
	return m.exposure(nil, c.Qty, s.lastPx)
}

// judgeReplace judges the order as it would be, and leaves its own present reservation out. A
// replace that asks for no more than was admitted, and does not trade, passes the limits of
// exposure.
func (m *Model) judgeReplace(o *order) matcher.RiskReason {
	c := &m.cmd
	if r := m.sender(); r != matcher.Accepted {
		return r
	}
	filled := o.qty - o.leaves
	switch {
	case c.Qty <= filled, c.LimitPx < 1, c.LimitPx%m.tick != 0,
		c.Flags&(matcher.FlagIOC|matcher.FlagFOK) != 0,
		c.Flags&matcher.FlagPostOnly != 0 && crosses(c.Side, c.LimitPx, m.best(c.SecurityID, c.Side)):
		return matcher.Invalid
	case int64(c.Qty) > m.limit(matcher.LimitOrderQty):
		return matcher.OrderSize
	case m.collar() != matcher.Accepted:
		return matcher.PriceCollar
	case m.tooMuch(m.judged(c.LimitPx), c.Qty):
		return matcher.OrderNotional
	case m.rules() >= 2 && c.Qty <= o.qty && c.LimitPx <= o.limit &&
		!crosses(c.Side, c.LimitPx, m.best(c.SecurityID, c.Side)):
		return matcher.Accepted
	}
	return m.exposure(o, c.Qty-filled, m.judged(c.LimitPx))
}
