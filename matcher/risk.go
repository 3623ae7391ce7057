//perf:hot

package matcher

import "math/bits"

// policy is what screening judges every command by. The grid comes from the genesis record and
// never changes; POLICY_CONTROL sets the switch.
type policy struct {
	tickPx int64
	kill   bool
}

// bounds are the limits that the orders of one account are judged by: one cache line. Most accounts
// have none of their own, and share the row of all accounts.
type bounds struct {
	RiskLimits
	account uint32   // index of the account, 0 in the row of all accounts
	own     LimitSet // what is the account's own
	_       [3]byte
}

// request is what is found out about a command before its decision: the first five by lookAhead,
// ahead of its turn, the rest by screening. It names rows by number: each store of a pointer here
// would cost the collector's write barrier.
type request struct {
	owner  uint32 // index of the account + 1; 0 is looked up again: it may be open now
	row    uint32 // of its position in the security
	leaf   uint32 // where an order of this price would rest, if the leaf still exists then
	onGrid bool   // the limit price is a whole number of ticks
	ticks  int64  // the limit price

	market   bool
	crosses  bool       // the best opposite price is within the limit
	cut      RiskReason // why a market order stops at limit; Accepted: it has no bound
	bounds   uint32     // row of the limits that hold for the account
	limit    int64      // in ticks; of a market order its bound, or the end of the range
	price    int64      // x 1e6: what the order is judged at
	notional int64      // price x the quantity that is still to trade
	_        [8]byte
}

// boundsOf returns the limits that hold for the account of a request that screenParties has
// accepted.
//
// Most accounts have those of all accounts, which lie in the engine itself: no load waits for the
// account's row.
func (e *Engine) boundsOf(q *request) *bounds {
	if q.bounds == 0 {
		return &e.all
	}
	return e.bounds.table.at(q.bounds)
}

// screenParties judges the sender and the subject of a command: kill switch, account, security, in
// this order. Accepted means that q.owner, q.row and q.bounds are valid and the security has a row
// and a ladder.
//
// An account that lookAhead did not find is looked up again: a command decided since may have
// opened it. No command removes an account, so one that was found stays valid.
func (e *Engine) screenParties(c *Command, q *request) RiskReason {
	if e.policy.kill {
		return KillSwitch
	}
	if q.owner == 0 {
		if q.owner = e.accounts.seek(c.AccountID); q.owner == 0 {
			return UnknownAccount
		}
		q.row = e.positions.at(int(q.owner)-1, c.SecurityID)
	}
	flags := e.accounts.table.at(q.owner - 1).flags
	if flags&accountEnabled == 0 {
		return AccountDisabled
	}
	q.bounds = flags >> boundsAt
	if c.SecurityID-1 >= uint32(e.securities.count) {
		return UnknownSecurity
	}
	if flags := e.securities.table.at(c.SecurityID - 1).flags; flags != securityTradable {
		return untradable(flags)
	}
	return Accepted
}

// untradable returns why a security with these flags cannot be traded.
func untradable(flags uint32) RiskReason {
	switch {
	case flags&securityKnown == 0:
		return UnknownSecurity
	case flags&^securityRestricted == securityTradable:
		return Restricted
	}
	return SecurityDisabled
}

// toTicks converts a limit price to ticks of the grid. It returns false when the price is off the
// grid.
func (p *policy) toTicks(px int64) (ticks int64, ok bool) {
	if p.tickPx == defaultTickPx { // a constant divisor is a multiplication
		ticks = px / defaultTickPx
		return ticks, ticks*defaultTickPx == px
	}
	ticks = px / p.tickPx
	return ticks, ticks*p.tickPx == px
}

// collar judges a limit against the market price. A limit is what the owner is prepared to pay, so
// the check does not require a market price.
func (b *bounds) collar(s *security, limit int64) RiskReason {
	if b.RiskLimits.BeyondCollar(limit, s.lastPx) {
		return PriceCollar
	}
	return Accepted
}

// fresh judges the market price's age: PRICE_MISSING, PRICE_STALE or Accepted.
func (b *bounds) fresh(s *security, now int64) RiskReason {
	if s.lastPx == 0 {
		return PriceMissing
	}
	if b.RiskLimits.Stale(now, s.lastTime) {
		return PriceStale
	}
	return Accepted
}

// worth returns px x qty, ok when it is within the order notional limit. Without ok the notional
// may have wrapped. px and qty are not negative.
func (b *bounds) worth(px int64, qty int32) (notional int64, ok bool) {
	hi, lo := bits.Mul64(uint64(px), uint64(qty))
	return int64(lo), hi == 0 && lo <= uint64(b.RiskLimits[LimitOrderNotional])
}

// exposure judges credit, position and concentration, in this order, as they would be if all open
// orders on the side and this one, of quantity qty, were executed. The other side's open orders
// count for nothing: that they execute is not certain.
//
// q.notional is the value of this one at its judged price. The account and the security have been
// judged. Nothing changes, but openBehind notes the price and the version of its refusal.
func (e *Engine) exposure(c *Command, q *request, limits *bounds, qty int64) RiskReason {
	side := c.Side
	account, p := e.accounts.table.at(q.owner-1), e.positions.table.at(q.row)
	// x ^ m - m is x for a buyer and -x for a seller: no branch for the processor to predict.
	m := mirror(side)
	used, open := account.executed^m-m, account.open[side&1]
	held, leaves := p.quantity^m-m, p.open[side&1]
	// open and q.notional are not negative, so a negative sum means an overflow.
	open += q.notional
	if open < 0 {
		return CreditLimit
	}
	// smaller: it overflowed
	if sum := used + open; sum < used || sum > limits.RiskLimits[LimitCredit] {
		return CreditLimit
	}
	// Leaves are quantities of at most 2^28 orders: only held can be near the end of the range.
	leaves += qty
	sum := held + leaves
	if sum < held || sum > limits.RiskLimits[LimitPosition] {
		return PositionLimit
	}
	// No price on the side, this one's included, is above what all of it is worth.
	held = abs(sum)
	if most := uint64(limits.RiskLimits[LimitConcentration]); beyond(held, open, most) {
		if beyond(held, q.price, most) {
			return ConcentrationLimit
		}
		if c.Version >= version3 {
			return e.openBehind(c, q, most, qty)
		}
	}
	return Accepted
}
