//perf:hot

package matcher

import "math/bits"

// policy is what screening judges by. The last three move with POLICY_CONTROL,
// the rest is the genesis record's.
type policy struct {
	maxOrderQty      int64
	maxOrderNotional int64
	creditLimit      int64
	maxAgeMillis     int64
	collarBps        int64
	tickPx           int64

	kill             bool
	maxPosition      int64
	maxConcentration int64
}

// request is what screening finds out about a command on the way.
type request struct {
	security *security
	account  *account
	held     *position // of the account in the security
	ladder   *ladder   // of the security
	row      uint32    // of held
	owner    uint32    // index of the account + 1
	market   bool
	crosses  bool  // the best opposite price is within the limit
	limit    int64 // in ticks; of a market order the end of the range
	price    int64 // x 1e6: what the order is judged at
	notional int64 // price x the quantity that is still to trade
}

// standing judges who asks and what for: kill switch, account, security.
func (e *Engine) standing(accountID, securityID uint32, q *request) RiskReason {
	if e.policy.kill {
		return KillSwitch
	}
	index := e.accounts.find(accountID)
	if index < 0 {
		return UnknownAccount
	}
	q.account, q.owner = e.accounts.table.at(uint32(index)), uint32(index)+1
	if q.account.enabled == 0 {
		return AccountDisabled
	}
	s := e.securities.at(securityID)
	if s == nil {
		return UnknownSecurity
	}
	if s.flags != securityTradable {
		if s.flags&^securityRestricted == securityTradable {
			return Restricted
		}
		return SecurityDisabled
	}
	q.security, q.ladder = s, &e.ladders[securityID-1]
	q.row = e.positions.at(index, securityID)
	q.held = e.positions.table.at(q.row)
	return Accepted
}

// toTicks takes a limit price to ticks of the grid. False when it is off the grid.
func (p *policy) toTicks(px int64) (ticks int64, ok bool) {
	if p.tickPx == defaultTickPx { // a constant divisor is a multiplication
		ticks = px / defaultTickPx
		return ticks, ticks*defaultTickPx == px
	}
	ticks = px / p.tickPx
	return ticks, ticks*p.tickPx == px
}

// collar judges a limit against the market price, whatever its age. A limit is
// what the owner is prepared to pay, so it needs no market price to be judged.
func (p *policy) collar(s *security, limit int64) RiskReason {
	if s.lastPx == 0 || p.collarBps == 0 {
		return Accepted
	}
	offHi, offLo := bits.Mul64(uint64(abs(limit-s.lastPx)), 10_000)
	maxHi, maxLo := bits.Mul64(uint64(s.lastPx), uint64(p.collarBps))
	if offHi > maxHi || offHi == maxHi && offLo > maxLo {
		return PriceCollar
	}
	return Accepted
}

// fresh judges the market price's age by event times alone. A time before the
// price's counts as no age.
func (p *policy) fresh(s *security, now int64) RiskReason {
	if s.lastPx == 0 {
		return PriceMissing
	}
	if now > s.lastTime && uint64(now)-uint64(s.lastTime) > uint64(p.maxAgeMillis) {
		return PriceStale
	}
	return Accepted
}

// worth is px x qty when it is within the order notional limit.
func (p *policy) worth(px int64, qty int32) (notional int64, ok bool) {
	hi, lo := bits.Mul64(uint64(px), uint64(qty))
	return int64(lo), hi == 0 && lo <= uint64(p.maxOrderNotional)
}

// exposure judges credit, position and concentration as they would stand if all
// open orders on the side and this one were executed.
func (e *Engine) exposure(q *request, side Side, qty int64) RiskReason {
	m := mirror(side) // x ^ m - m is x for a buyer and -x for a seller: no branch to guess
	used, open := q.account.executed^m-m, q.account.open[side&1]
	held, leaves := q.held.quantity^m-m, q.held.open[side&1]
	// open and q.notional are not negative, so a sum that passed the end is negative.
	open += q.notional
	if open < 0 {
		return CreditLimit
	}
	if used > 0 && open > maxInt64-used || used+open > e.policy.creditLimit {
		return CreditLimit
	}
	// quantities of at most 2^28 orders: only held can be near the end.
	leaves += qty
	if held > 0 && leaves > maxInt64-held || held+leaves > e.policy.maxPosition {
		return PositionLimit
	}
	hi, lo := bits.Mul64(uint64(abs(held+leaves)), uint64(q.price))
	if hi != 0 || lo > uint64(e.policy.maxConcentration) {
		return ConcentrationLimit
	}
	return Accepted
}
