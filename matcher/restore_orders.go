package matcher

import (
	"fmt"
	"math"
	"math/bits"
)

// orderRow is an ORDER record, column by column. Prices are x 1e6, times are epoch milliseconds.
// ref is the whole order number, era included. The reserved columns are 0 for a terminal order.
type orderRow struct {
	ref, account, security, side, quantity, remaining, limitPx, status, lastPx, lastQty,
	created, updated, reason, reservedNotional, reservedQty int64
}

// order reads an ORDER record: the open orders by priority, then the retained terminal ones, oldest
// first. An open order goes onto the book behind those before it, and a terminal one into the ring
// of retired orders, so that both have their order without a stored stamp.
//
// The account and the security of a refused order need not exist: that may be why it was refused.
func (s *snapshotReader) order() error {
	c := s.columns
	r := orderRow{
		c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14],
	}
	e := s.engine
	switch {
	case r.ref < 1 || uint64(r.ref) >= e.nextRef || uint32(r.ref) == 0:
		return fmt.Errorf("order %d with nextOrderRef %d: %w", r.ref, e.nextRef, ErrSnapshotOrderRef)
	case e.orders.find(uint32(r.ref)) != 0:
		return fmt.Errorf("order %d: %w", r.ref, ErrSnapshotTwice)
	}
	if err := r.verify(); err != nil {
		return fmt.Errorf("order %d: %w", r.ref, err)
	}
	open := !OrderStatus(r.status).Terminal()
	switch {
	case open && s.terminals:
		return fmt.Errorf("open order %d after the retained ones: %w", r.ref, ErrSnapshotSequence)
	case open && e.openOrders == e.maxOpen:
		return fmt.Errorf("more than %d open orders: %w", e.maxOpen, ErrSnapshotCapacity)
	case !open && e.retired.count == len(e.retired.ring):
		return fmt.Errorf("more than %d retained orders: %w", len(e.retired.ring), ErrSnapshotCapacity)
	}
	account := 0 // the account of no caller, for an order that was refused
	if OrderStatus(r.status) != StatusRejected {
		index, err := s.holder(r.account, r.security)
		if err != nil {
			return fmt.Errorf("order %d: %w", r.ref, err)
		}
		account = index + 1
	}
	i, _ := e.orders.take(uint32(r.ref)) // the limits checked above are the pool's
	o, cold := e.orders.hot(i), e.orders.cold(i)
	o.account = uint32(account)
	o.leaves = int32(r.remaining)
	o.tag = uint32(r.security)<<8 | uint32(r.status)<<4 | uint32(r.side)
	*cold = orderCold{
		limit: r.limitPx, lastPx: r.lastPx, created: r.created, updated: r.updated,
		qty: int32(r.quantity), lastQty: int32(r.lastQty), reason: RiskReason(r.reason),
		accountID: uint32(r.account), securityID: uint32(r.security), era: uint16(r.ref >> eraAt),
	}
	if !open {
		s.terminals = true
		e.retire(i)
		return nil
	}
	e.stamp++
	cold.stamp = e.stamp
	return s.rest(i, o, cold)
}

// verify checks an order's columns against their ranges and each other. A refused order keeps the
// quantity that was asked for, whatever it was. An open one has a price, because a market order
// never rests.
func (r *orderRow) verify() error {
	qtyMin, pxMin := int64(1), int64(0)
	if OrderStatus(r.status) == StatusRejected {
		qtyMin = math.MinInt32
	} else if !OrderStatus(r.status).Terminal() {
		pxMin = 1
	}
	switch {
	case r.status < 0 || r.status > int64(StatusRejected):
		return invalid("status", r.status)
	case r.account < 0 || r.account > math.MaxUint32:
		return invalid("account", r.account)
	case r.security < 0 || r.security > math.MaxUint32:
		return invalid("security", r.security)
	case r.side != int64(Buy) && r.side != int64(Sell):
		return invalid("side", r.side)
	case r.quantity < qtyMin || r.quantity > math.MaxInt32:
		return invalid("quantity", r.quantity)
	case !r.remainingFits():
		return invalid("remaining", r.remaining)
	case r.limitPx < pxMin:
		return invalid("limitPx", r.limitPx)
	case r.lastPx < 0:
		return invalid("lastExecPx", r.lastPx)
	case r.lastQty < 0 || r.lastQty > max(r.quantity, 0) || (r.lastQty == 0) != (r.lastPx == 0):
		return invalid("lastFillQty", r.lastQty)
	case r.reason < 0 || r.reason >= int64(ReasonCount) || !r.reasonFits():
		return invalid("riskReason", r.reason)
	}
	return r.reservedFits()
}

// remainingFits reports whether the leaves agree with the status. A cancelled order keeps the
// leaves that it did not execute, and a refused one has executed nothing.
func (r *orderRow) remainingFits() bool {
	switch OrderStatus(r.status) {
	case StatusNew, StatusRejected:
		return r.remaining == r.quantity
	case StatusPartiallyFilled:
		return r.remaining > 0 && r.remaining < r.quantity
	case StatusFilled:
		return r.remaining == 0
	}
	return r.remaining > 0 && r.remaining <= r.quantity
}

// reasonFits reports whether the reason agrees with the status. A cancelled order may have any: the
// owner's own cancel is Accepted.
func (r *orderRow) reasonFits() bool {
	switch OrderStatus(r.status) {
	case StatusCanceled:
		return true
	case StatusRejected:
		return RiskReason(r.reason) != Accepted
	}
	return RiskReason(r.reason) == Accepted
}

// reservedFits checks that the reserved columns are what the order needs: the engine derives them
// and does not restore them. The product is computed in 128 bits, so no column can make it wrap.
func (r *orderRow) reservedFits() error {
	var hi, notional uint64
	qty := int64(0)
	if !OrderStatus(r.status).Terminal() {
		hi, notional = bits.Mul64(uint64(r.limitPx), uint64(r.remaining))
		qty = r.remaining
	}
	if hi != 0 || notional > math.MaxInt64 || int64(notional) != r.reservedNotional {
		return invalid("reservedNotional", r.reservedNotional)
	}
	if qty != r.reservedQty {
		return invalid("reservedQty", r.reservedQty)
	}
	return nil
}

// rest puts a restored open order back in its place: behind the orders that precede it in the file.
//
// It refuses a price off the grid, a price that crosses the book (ErrSnapshotCrossed: such a
// snapshot shows a fault of its writer), and a reservation that does not fit the account's sum.
func (s *snapshotReader) rest(i ix, o *order, cold *orderCold) error {
	e := s.engine
	ticks, onGrid := e.policy.toTicks(cold.limit)
	if !onGrid {
		return fmt.Errorf("order %d: %w", o.ref, invalid("limitPx", cold.limit))
	}
	ladder := &e.ladders[o.security()-1]
	if best, any := ladder.best(o.side().Opposite()); any && within(o.side(), ticks, best) {
		return fmt.Errorf("order %d: %w", o.ref, ErrSnapshotCrossed)
	}
	account := &e.accounts.rows[o.account-1]
	notional := cold.limit * int64(o.leaves)
	if held := account.open[o.side()]; held > math.MaxInt64-notional {
		return fmt.Errorf("order %d: %w", o.ref, invalid("reservedNotional", notional))
	}
	e.openOrders++
	e.reserveOpen(o, cold)
	ladder.rest(i, o.side(), ticks, ladder.root)
	return nil
}
