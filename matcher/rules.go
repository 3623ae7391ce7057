//perf:hot

package matcher

import "math/bits"

// What records of version 2 decide differently from those of version 1. Each rule reads the version
// of the record that it decides, so a journal of an older build replays to the state that it had.
//
//   - A market order executes no further than the collar from the price it was judged at. Without
//     a collar it executes no further than its limits reach, and is judged at that bound.
//   - A sale is judged at the best price that it could execute at.
//   - An order that reduces a position passes the limits of exposure.
//   - The market price is the one of the newest event time.
//   - The version of a policy rises.
const version2 = 2

// What records of version 3 decide differently from those of version 2:
//
//   - Concentration is also judged at the prices of the account's open orders that can execute
//     behind the command, with a larger position than they were judged with. Only what this rule
//     refuses is recorded as version 3. Whatever it passes is decided by version 2 in the same way.
//   - A CAPACITY_CONTROL also raises the room for orders. It is recorded as version 3 when it does.
const version3 = 3

// boundMarket gives a market order that has its price the bound of the collar. A purchase is judged
// at the bound. A sale is still judged at its price, or at the price that it could execute at. The
// bound may make the order cross nothing, although the book has an opposite side.
func (e *Engine) boundMarket(c *Command, q *request, limits *bounds, best int64, any bool) {
	tickPx := e.policy.tickPx
	if limits.RiskLimits[LimitCollar] != 0 {
		off := limits.CollarOff(q.price)
		if c.Side == Buy {
			if q.price > maxInt64-off {
				q.price = maxInt64
			} else {
				q.price += off
			}
			q.limit = q.price / tickPx
		} else {
			q.limit = ceilTicks(q.price-off, tickPx)
		}
		q.cut = PriceCollar
	}
	q.crosses = any && within(c.Side, q.limit, best)
}

// ceilTicks returns the first price of the grid at or above px, in ticks. It treats prices below
// the first tick as no price. Rounding up keeps a sale's bound within the collar.
func ceilTicks(px, tickPx int64) int64 {
	if px <= 0 {
		return 0
	}
	return (px-1)/tickPx + 1
}

// raiseToBid judges a sale that meets the book at the best bid, the highest price that any part of
// it can execute at. A purchase executes at its limit at most.
func (e *Engine) raiseToBid(c *Command, q *request, best int64) {
	if q.crosses && c.Side == Sell && c.Version >= version2 {
		q.price = max(q.price, best*e.policy.tickPx)
	}
}

// boundByLimits bounds a market purchase without a collar: at the highest price at which it is
// still within every limit that it is judged by. screenOrder calls it after every other check has
// passed, and only for purchases: what a sale receives bounds itself, because it is judged at the
// best bid. q.cut is the reason of the limit that the bound comes from, the tightest of order
// notional, credit and concentration.
func (e *Engine) boundByLimits(c *Command, q *request, best int64, any bool) {
	qty, limits := int64(c.Qty), &e.boundsOf(q).RiskLimits
	px, reason := limits[LimitOrderNotional]/qty, OrderNotional
	if !e.reduces(q, Buy, qty) {
		account, p := e.accounts.table.at(q.owner-1), e.positions.table.at(q.row)
		// exposure has admitted the order, so no sum overflows and q.price leaves credit.
		used := account.executed + account.open[Buy] + q.notional
		room := q.notional + (limits[LimitCredit] - max(used, minInt64+limits[LimitCredit]+1))
		if room < 0 {
			room = maxInt64
		}
		if most := room / qty; most < px {
			px, reason = most, CreditLimit
		}
		if sum := p.quantity + p.open[Buy] + qty; sum != 0 {
			if most := limits[LimitConcentration] / abs(sum); most < px {
				px, reason = most, ConcentrationLimit
			}
		}
	}
	q.limit, q.cut = px/e.policy.tickPx, reason
	q.crosses = any && within(Buy, q.limit, best)
}

// exposed is exposure with the exemption of version 2: an order that reduces a position passes
// every limit of exposure.
func (e *Engine) exposed(c *Command, q *request, limits *bounds, qty int64) RiskReason {
	reason := e.exposure(c, q, limits, qty)
	if reason != Accepted && c.Version >= version2 && e.reduces(q, c.Side, qty) {
		return Accepted
	}
	return reason
}

// maxBehind is how many orders openBehind looks at, of whatever account. Beyond them it refuses, as
// if all that the account has open were at the price that it has come to. The bound keeps the cost
// of one command from following the depth of a book.
const maxBehind = 512

// openBehind judges the concentration of the account's open orders that can still execute behind a
// command. Orders of a side execute from the best price on: an open sale behind every cheaper sale,
// an open purchase only behind market trades and dearer purchases. It looks only at the orders
// whose price is high enough for a refusal.
//
// most is the concentration limit. A refusal sets q.price to the price that it was judged at and
// records the command as version 3, because a replay by the rules of version 2 would not come here.
func (e *Engine) openBehind(c *Command, q *request, most uint64, qty int64) RiskReason {
	side, p := c.Side&1, e.positions.table.at(q.row)
	m := mirror(side)
	held := p.quantity ^ m - m + qty
	sum := held + p.open[side] // exposure has passed it: it does not overflow
	if p.open[side] == 0 || side == Buy && c.Type != TradeNew || e.reduces(q, side, qty) {
		return Accepted
	}
	ladder := e.books.at(c.SecurityID - 1)
	at := ladder.tops[Buy].level
	if side == Sell {
		at, held = ladder.pages.highest(ladder.root), sum
	}
	harmless, looked := int64(most/uint64(sum))/e.policy.tickPx, 0
	for ; at != 0 && ladder.pages.price(at) > harmless; at = ladder.pages.below(at) {
		px := ladder.pages.price(at) * e.policy.tickPx
		for i := ladder.levels.at(at).head; i != 0; i = ladder.orders.at(i).next {
			o := ladder.orders.at(i)
			ladder.pages.visits++
			looked++
			own := o.account == q.owner && o.ref != c.OrderRef // c replaces that order
			if own && side == Buy {
				held += int64(o.leaves)
			}
			if looked > maxBehind || own && held > 0 && beyond(held, px, most) {
				q.price, e.version = px, version3
				return ConcentrationLimit
			}
		}
	}
	return Accepted
}

// beyond reports whether the product of two numbers, which are not negative, is above most.
func beyond(a, b int64, most uint64) bool {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return hi != 0 || lo > most
}

// reduces reports whether an order on side can only bring its account closer to holding nothing of
// the security. If it and every open order on its side were executed, the position would be smaller
// or none, and would not change sign. What such orders could pay or receive is reserved as for any
// other order, so the sum must fit the reservation.
func (e *Engine) reduces(q *request, side Side, qty int64) bool {
	account, p := e.accounts.table.at(q.owner-1), e.positions.table.at(q.row)
	m := mirror(side)
	held := p.quantity ^ m - m
	return held < 0 && held+p.open[side&1]+qty <= 0 && account.open[side&1]+q.notional >= 0
}

// late returns EventLate for a record with a price older than the market price, else 0. An equal
// event time is not late: of two prices in one millisecond the later record's holds.
func (s *security) late(c *Command) uint16 {
	if c.EventTimeMillis < s.lastTime && s.lastPx != 0 && c.Version >= version2 {
		return EventLate
	}
	return 0
}
