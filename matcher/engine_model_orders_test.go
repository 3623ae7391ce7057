package matcher

import (
	"slices"
)

func (m *naive) security(id uint32) *naiveSecurity {
	if id < 1 || int(id) > len(m.securities) || !m.securities[id-1].known {
		return nil
	}
	return m.securities[id-1]
}

func (m *naive) find(c *Command) *naiveOrder {
	for _, o := range m.open {
		if o.ref == c.OrderRef && o.account == c.AccountID {
			return o
		}
	}
	return nil
}

func (m *naive) remove(o *naiveOrder) {
	m.open = slices.DeleteFunc(m.open, func(x *naiveOrder) bool { return x == o })
}

// cancel removes an order from the open ones, if it is there, and retains it.
func (m *naive) cancel(o *naiveOrder, reason RiskReason) {
	m.remove(o)
	o.canceled, o.reason, o.updated = true, reason, m.cmd.EventTimeMillis
	m.retain(o)
}

func (m *naive) retain(o *naiveOrder) {
	m.retained = append(m.retained, o)
	if len(m.retained) > m.limits.RetainedOrders {
		m.retained = m.retained[1:]
	}
}

func (m *naive) canceled(o *naiveOrder, reason RiskReason) {
	m.cancel(o, reason)
	ev := m.say(Event{
		Kind: EventCanceled, Side: o.side, Status: StatusCanceled, Reason: reason, Px: o.limit,
		OrderRef: o.ref, AccountID: o.account, SecurityID: o.security, Qty: o.leaves,
	})
	ev.Detail().Leaves, ev.Detail().LimitPx = o.leaves, o.limit
}

// known answers a repeated key.
func (m *naive) known() bool {
	c := &m.cmd
	for _, k := range m.keys {
		if k.named && c.Version > 1 && k.account != c.AccountID {
			continue
		}
		if c.PriceTicks != 0 && k.key == uint64(c.PriceTicks) &&
			(k.kind == KeyContract) == (c.Type >= SwapBook) {
			ev := Event{
				Kind: EventRejected, Side: c.Side, Reason: Duplicate, TradeSeq: k.ref,
				Px: int64(k.reason) | int64(k.kind)<<8, AccountID: c.AccountID, SecurityID: c.SecurityID,
				Qty: c.Qty,
			}
			if k.kind == KeyOrder {
				ev.OrderRef = uint32(k.ref)
			}
			m.say(ev)
			return true
		}
	}
	return false
}

func (m *naive) remember(kind IdempotencyKind, ref uint64, reason RiskReason) {
	if m.cmd.PriceTicks == 0 {
		return
	}
	m.keys = append(m.keys, naiveKey{
		key: uint64(m.cmd.PriceTicks), ref: ref, kind: kind, reason: reason,
		account: m.cmd.AccountID, named: m.cmd.Version > 1,
	})
	if len(m.keys) > m.limits.IdempotencyCapacity {
		m.keys = m.keys[1:]
	}
}

// best returns the best resting price against a side, 0 if the other side is empty.
func (m *naive) best(security uint32, side Side) (px int64) {
	for _, o := range m.open {
		if o.security == security && o.side != side &&
			(px == 0 || side == Buy && o.limit < px || side == Sell && o.limit > px) {
			px = o.limit
		}
	}
	return px
}

func crosses(side Side, limit, px int64) bool {
	return px != 0 && (limit == 0 || side == Buy && px <= limit || side == Sell && px >= limit)
}
