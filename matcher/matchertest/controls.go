package matchertest

import (
	"math/big"
	"slices"

	"posttrade/matcher"
)

// priceTick decides a PRICE_TICK. applied is its event if nothing is wrong.
func (m *Model) priceTick(applied matcher.Event) {
	c := &m.cmd
	s := m.security(c.SecurityID)
	switch {
	case s == nil:
		m.reject(matcher.UnknownSecurity)
	case c.PriceTicks < 1:
		m.reject(matcher.Invalid)
	default:
		applied.Flags = m.late(s)
		if applied.Flags == 0 {
			s.lastPx, s.lastTime = c.PriceTicks, c.EventTimeMillis
		}
		applied.Px = c.PriceTicks
		m.say(applied)
	}
}

// accountControl decides an ACCOUNT_CONTROL. applied is its event if nothing is wrong.
func (m *Model) accountControl(applied matcher.Event) {
	c := &m.cmd
	a, keeps := m.accounts[c.AccountID], c.Side&4 != 0
	switch {
	case c.Side&^5 != 0, keeps && m.rules() == 1:
		m.reject(matcher.Invalid)
	case a == nil && len(m.accounts) == m.limits.MaxAccounts:
		m.reject(matcher.Capacity)
	case a == nil:
		m.accounts[c.AccountID] = &account{enabled: c.Side&1 != 0, executed: new(big.Int)}
		m.say(applied)
	default:
		if !keeps {
			a.enabled = c.Side&1 != 0
		}
		m.say(applied)
	}
}

// securityControl decides a SECURITY_CONTROL. applied is its event if nothing is wrong.
func (m *Model) securityControl(applied matcher.Event) {
	c := &m.cmd
	switch {
	case c.Side > 15, c.Side > 3 && m.rules() == 1:
		m.reject(matcher.Invalid)
	case c.SecurityID < 1 || int(c.SecurityID) > len(m.securities):
		m.reject(matcher.UnknownSecurity)
	default:
		s := m.securities[c.SecurityID-1]
		if !s.known || c.Side&4 == 0 {
			s.enabled = c.Side&1 != 0
		}
		if !s.known || c.Side&8 == 0 {
			s.halted = c.Side&2 != 0
		}
		s.known = true
		m.say(applied)
	}
}

// policyControl decides a POLICY_CONTROL. applied is its event if nothing is wrong.
func (m *Model) policyControl(applied matcher.Event) {
	c := &m.cmd
	if c.Side > 1 || c.Qty < 0 || c.LimitPx < 0 || m.rules() >= 2 && c.PriceTicks <= m.policy {
		m.reject(matcher.Invalid)
		return
	}
	m.policy = c.PriceTicks
	m.parts = nil
	m.kill = c.Side == 1
	if c.Qty > 0 {
		m.all[matcher.LimitPosition] = int64(c.Qty)
	}
	if c.LimitPx > 0 {
		m.all[matcher.LimitConcentration] = c.LimitPx
	}
	applied.Px = c.LimitPx
	m.say(applied)
}

// capacityControl decides a CAPACITY_CONTROL of which the tests know that it is possible. The model
// raises the room for orders alone; its other limits stay those of the genesis record.
func (m *Model) capacityControl() {
	c := &m.cmd
	l := &m.limits
	was := *l
	if m.rules() >= 3 {
		l.MaxOpenOrders = max(l.MaxOpenOrders, int(c.OrderRef))
		l.RetainedOrders = max(l.RetainedOrders, int(c.PriceTicks))
		l.IdempotencyCapacity = max(l.IdempotencyCapacity, int(c.LimitPx))
	}
	m.newest = *l != was
	m.say(matcher.Event{Kind: matcher.EventApplied})
}

// restrictionControl decides a RESTRICTION_CONTROL. applied is its event if nothing is wrong. The
// orders that a restriction cancels are cancelled ascending by number, which is not their priority.
func (m *Model) restrictionControl(applied matcher.Event) {
	c := &m.cmd
	s := m.security(c.SecurityID)
	switch {
	case s == nil:
		m.reject(matcher.UnknownSecurity)
	case c.Side > 1:
		m.reject(matcher.Invalid)
	default:
		m.say(applied)
		s.restricted = c.Side == 1
		var gone []*order
		for _, o := range m.open {
			if s.restricted && o.security == c.SecurityID {
				gone = append(gone, o)
			}
		}
		slices.SortFunc(gone, func(a, b *order) int { return int(a.ref) - int(b.ref) })
		for _, o := range gone {
			m.canceled(o, matcher.RiskReason(matcher.Restricted))
		}
	}
}
