package matchertest

import (
	"math/big"
	"slices"

	"posttrade/matcher"
)

// security is nil for a number that no control has made known: its ticker alone is not enough.
func (m *Model) security(id uint32) *security {
	if id < 1 || int(id) > len(m.securities) || !m.securities[id-1].known {
		return nil
	}
	return m.securities[id-1]
}

// find is the open order that a command names, nil for none. Another account's order is not found.
func (m *Model) find(c *matcher.Command) *order {
	for _, o := range m.open {
		if o.ref == c.OrderRef && o.account == c.AccountID {
			return o
		}
	}
	return nil
}

// remove takes an order out of the open ones, wherever it is.
func (m *Model) remove(o *order) {
	m.open = slices.DeleteFunc(m.open, func(x *order) bool { return x == o })
}

// cancel removes an order from the open ones, if it is there, and retains it.
func (m *Model) cancel(o *order, reason matcher.RiskReason) {
	m.remove(o)
	o.canceled, o.reason, o.updated = true, reason, m.cmd.EventTimeMillis
	m.retain(o)
}

// retain keeps an order that ended, and forgets the oldest one beyond the limit. With a limit of 0
// it forgets the order itself.
func (m *Model) retain(o *order) {
	m.retained = append(m.retained, o)
	if len(m.retained) > m.limits.RetainedOrders {
		m.retained = m.retained[1:]
	}
}

// canceled takes an order off the book and says why.
func (m *Model) canceled(o *order, reason matcher.RiskReason) {
	m.cancel(o, reason)
	ev := m.say(matcher.Event{
		Kind: matcher.EventCanceled, Side: o.side, Status: matcher.StatusCanceled, Reason: reason,
		Px: o.limit, OrderRef: o.ref, AccountID: o.account, SecurityID: o.security, Qty: o.leaves,
	})
	ev.Detail().Leaves, ev.Detail().LimitPx = o.leaves, o.limit
}

// known answers a repeated key and reports whether it did. Keys of bookings and of the other
// commands are apart; a key of another account is another key, except where a record does not name
// its account.
func (m *Model) known() bool {
	c := &m.cmd
	for _, k := range m.keys {
		if k.named && c.Version > 1 && k.account != c.AccountID {
			continue
		}
		if c.PriceTicks != 0 && k.key == uint64(c.PriceTicks) &&
			(k.kind == matcher.KeyContract) == (c.Type >= matcher.SwapBook) {
			ev := matcher.Event{
				Kind: matcher.EventRejected, Side: c.Side, Reason: matcher.Duplicate, TradeSeq: k.ref,
				Px: int64(k.reason) | int64(k.kind)<<8, AccountID: c.AccountID, SecurityID: c.SecurityID,
				Qty: c.Qty,
			}
			if k.kind == matcher.KeyOrder {
				ev.OrderRef = uint32(k.ref)
			}
			m.say(ev)
			return true
		}
	}
	return false
}

// remember keeps the first decision of a key, refusals too; the oldest key goes beyond the limit.
func (m *Model) remember(kind matcher.IdempotencyKind, ref uint64, reason matcher.RiskReason) {
	if m.cmd.PriceTicks == 0 {
		return
	}
	m.keys = append(m.keys, key{
		key: uint64(m.cmd.PriceTicks), ref: ref, kind: kind, reason: reason,
		account: m.cmd.AccountID, named: m.cmd.Version > 1,
	})
	if len(m.keys) > m.limits.IdempotencyCapacity {
		m.keys = m.keys[1:]
	}
}

// best returns the best resting price against a side, 0 if the other side is empty.
func (m *Model) best(security uint32, side matcher.Side) (px int64) {
	for _, o := range m.open {
		if o.security == security && o.side != side &&
			(px == 0 || side == matcher.Buy && o.limit < px || side == matcher.Sell && o.limit > px) {
			px = o.limit
		}
	}
	return px
}

// crosses reports that an order of a side executes at px. A limit of 0 is any price; px 0 is an
// empty side.
func crosses(side matcher.Side, limit, px int64) bool {
	return px != 0 && (limit == 0 || side == matcher.Buy && px <= limit ||
		side == matcher.Sell && px >= limit)
}

// orderCancel decides an ORDER_CANCEL.
func (m *Model) orderCancel() {
	c := &m.cmd
	o := m.find(c)
	if o == nil {
		m.reject(matcher.Invalid)
		return
	}
	m.say(matcher.Event{
		Kind: matcher.EventCanceled, Side: o.side, Status: matcher.StatusCanceled, Px: o.limit,
		OrderRef:  o.ref,
		AccountID: o.account, SecurityID: o.security, Qty: o.leaves,
	})
	m.cancel(o, matcher.Accepted)
}

// forceFill decides a FORCE_FILL. applied is its event if nothing is wrong. The fill has no other
// side, so it counts for the sum of the positions.
func (m *Model) forceFill(applied matcher.Event) {
	c := &m.cmd
	o := m.find(c)
	worth := new(big.Int).Mul(big.NewInt(c.LimitPx), big.NewInt(int64(c.Qty)))
	if o == nil || c.Qty < 1 || c.Qty > o.leaves || c.LimitPx < 1 || c.LimitPx%m.tick != 0 ||
		!worth.IsInt64() {
		m.reject(matcher.Invalid)
		return
	}
	applied.Px, applied.SecurityID = c.LimitPx, o.security
	m.say(applied)
	o.leaves -= c.Qty
	if o.leaves == 0 {
		m.remove(o)
	}
	m.securities[o.security-1].oneSided += signed(o.side, c.Qty)
	m.fill(o, c.LimitPx, c.Qty, 0, matcher.EventForced)
	if o.leaves == 0 {
		m.retain(o)
	}
}
