package matcher

import "slices"

// accountControl decides an ACCOUNT_CONTROL. It opens an unknown account. It enables or disables a
// known account, unless the command keeps the flag. Its control version is for the readers of its
// events; the engine does not compare it.
func (e *Engine) accountControl(c *Command) {
	if c.Side&^c.sides() != 0 {
		e.reject(c, Invalid)
		return
	}
	if i := e.accounts.find(c.AccountID); i < 0 {
		if !e.accounts.add(c.AccountID, c.Side&SecurityEnabled != 0) {
			e.reject(c, Capacity)
			return
		}
	} else if c.Side&KeepEnabled == 0 {
		e.accounts.rows[i].enable(c.Side&SecurityEnabled != 0)
	}
	e.applyEvent(c, 0, EventLast)
}

// securityControl decides a SECURITY_CONTROL. It sets whether a registered security is tradable,
// except for the flags that the command keeps. Resting orders stay on the book and can be
// cancelled; only a restriction cancels them.
func (e *Engine) securityControl(c *Command) {
	switch {
	case c.Side&^c.sides() != 0:
		e.reject(c, Invalid)
	case c.SecurityID-1 >= uint32(e.securities.count):
		e.reject(c, UnknownSecurity)
	default:
		s := &e.securities.rows[c.SecurityID-1]
		enabled, halted := c.Side&SecurityEnabled != 0, c.Side&SecurityHalted != 0
		if known := s.flags&securityKnown != 0; known && c.Side&KeepEnabled != 0 {
			enabled = s.flags&securityEnabled != 0
		}
		if known := s.flags&securityKnown != 0; known && c.Side&KeepHalted != 0 {
			halted = s.flags&securityHalted != 0
		}
		s.control(enabled, halted)
		e.applyEvent(c, 0, EventLast)
	}
}

// policyControl decides a POLICY_CONTROL. Its version must rise, so that a command that arrives
// late or twice reverts nothing. A limit of 0 leaves the limit as it is; accounts with limits of
// their own keep them. It ends a change of limits of which parts are missing, because the version
// of that change may not be above its own.
func (e *Engine) policyControl(c *Command) {
	stale := c.Version >= version2 && c.PriceTicks <= e.policyVersion
	if stale || c.Side > 1 || c.Qty < 0 || c.LimitPx < 0 {
		e.reject(c, Invalid)
		return
	}
	e.policyVersion = c.PriceTicks
	e.pending = pendingLimits{}
	e.policy.kill = c.Side == 1
	change := LimitsChange{}
	if c.Qty > 0 {
		change.Set |= 1 << LimitPosition
		change.Values[LimitPosition] = int64(c.Qty)
	}
	if c.LimitPx > 0 {
		change.Set |= 1 << LimitConcentration
		change.Values[LimitConcentration] = c.LimitPx
	}
	e.changeAll(&change)
	e.applyEvent(c, c.LimitPx, EventLast)
}

// restrictionControl decides a RESTRICTION_CONTROL. Restricting a security cancels its resting
// orders, ascending by reference, also when it is restricted already. Its cost and the number of
// its events follow these orders.
func (e *Engine) restrictionControl(c *Command) {
	s := e.securities.at(c.SecurityID)
	switch {
	case s == nil:
		e.reject(c, UnknownSecurity)
		return
	case c.Side > 1:
		e.reject(c, Invalid)
		return
	}
	s.flags = s.flags&^securityRestricted | uint32(c.Side)*securityRestricted
	e.applyEvent(c, 0, 0)
	if c.Side == 1 {
		e.cancelResting(c.SecurityID)
	}
	e.out.last().Flags |= EventLast
}

// cancelResting cancels every resting order of a security. It collects the references first, in
// memory that the engine keeps for this (scratch), because the walk over a book must not change it.
func (e *Engine) cancelResting(security uint32) {
	ladder := &e.ladders[security-1]
	refs := e.scratch[:0]
	collect := func(i ix) bool {
		refs = append(refs, e.orders.hot(i).ref)
		return true
	}
	ladder.eachOrder(Buy, collect)
	ladder.eachOrder(Sell, collect)
	slices.Sort(refs)
	for _, ref := range refs {
		i := e.orders.find(ref)
		o, cold := e.orders.hot(i), e.orders.cold(i)
		ladder.remove(i)
		e.cancelOpen(o, cold, Restricted)
		ev, detail := e.next(head(EventCanceled, o.side(), Restricted, StatusCanceled, 0))
		e.aboutOrder(ev, detail, o, cold)
		e.retire(i)
	}
}

// symbolRegister decides a template 7 record. A known ticker keeps its id, and the record is
// accepted. The event carries the id in SecurityID, 0 when it was refused. A new security is
// unknown to trading until its first control.
func (e *Engine) symbolRegister(c *Command) {
	reason := Accepted
	id := uint32(0)
	switch ticker := c.symbolBytes(); {
	case tickerLen(ticker) == 0:
		reason = Invalid
	default:
		if id = e.securities.register(ticker); id == 0 {
			reason = Capacity
		}
	}
	kind := EventApplied
	if reason != Accepted {
		kind = EventRejected
	}
	ev := e.first(c, head(kind, 0, reason, 0, EventLast), 0)
	ev.OrderRef, ev.AccountID, ev.SecurityID, ev.Qty = 0, 0, id, 0
}

// mark decides a record that changes nothing and exists for its sequence: a SNAPSHOT, a
// risk-extract marker or a part of an operator's note. It is never refused.
func (e *Engine) mark(c *Command) {
	ev := e.first(c, head(EventApplied, 0, Accepted, 0, EventLast), 0)
	ev.OrderRef, ev.AccountID, ev.SecurityID, ev.Qty = 0, 0, 0, 0
}
