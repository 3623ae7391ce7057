package matchertest

import "posttrade/matcher"

// limit returns what holds for the account of the command: its own limit, else that of all.
func (m *Model) limit(id matcher.LimitID) int64 {
	if own, ok := m.own[m.cmd.AccountID][id]; ok {
		return own
	}
	return m.all[id]
}

// limitsPart keeps the parts of a change and applies all of them when the last one is there. It
// judges all parts anew with each, where the engine keeps what it has found out.
func (m *Model) limitsPart() {
	c := &m.cmd
	refuse := func(reason matcher.RiskReason) {
		m.parts = nil
		m.say(matcher.Event{Kind: matcher.EventRejected, Side: c.Side, Reason: reason, Px: c.LimitPx,
			AccountID: c.AccountID})
	}
	if c.OrderRef == 1 && m.accounts[c.AccountID] == nil {
		refuse(matcher.UnknownAccount)
		return
	}
	if c.Qty&255 == 1 {
		m.parts = nil
	}
	m.parts = append(m.parts, *c)
	if c.PriceTicks <= m.policy || !sound(m.parts) {
		refuse(matcher.Invalid)
		return
	}
	m.say(matcher.Event{Kind: matcher.EventApplied, Side: c.Side, Px: c.LimitPx,
		AccountID: c.AccountID})
	if len(m.parts) < int(c.Qty>>8) {
		return
	}
	said := matcher.LimitsDetail{ForAccount: c.OrderRef == 1}
	for _, part := range m.parts {
		id := matcher.LimitID(part.SecurityID)
		switch {
		case c.OrderRef == 0:
			m.all[id] = part.LimitPx
		case part.Side == 1:
			delete(m.own[c.AccountID], id)
		default:
			if m.own[c.AccountID] == nil {
				m.own[c.AccountID] = map[matcher.LimitID]int64{}
			}
			m.own[c.AccountID][id] = part.LimitPx
		}
	}
	for id, own := range m.own[c.AccountID] {
		if said.ForAccount {
			said.Own |= 1 << id
			said.Values[id] = own
		}
	}
	if !said.ForAccount {
		said.Own, said.Values = 127, m.all
	}
	m.policy, m.parts = c.PriceTicks, nil
	ev := matcher.Event{Kind: matcher.EventLimits, Px: c.PriceTicks, AccountID: c.AccountID}
	m.say(ev)
	*m.said[len(m.said)-1].Limits() = said
}

// sound reports whether parts are the beginning of one change: numbered from 1, of one number of
// parts, version, account and scope, with ascending limits and possible values.
func sound(parts []matcher.Command) bool {
	first, seen := parts[0], map[uint32]bool{}
	for i, p := range parts {
		switch {
		case p.Qty>>8 < 1, p.Qty>>8 > 7, p.Qty != int32(i+1)|first.Qty&^255, p.Qty&255 > p.Qty>>8,
			p.PriceTicks != first.PriceTicks, p.AccountID != first.AccountID,
			p.OrderRef != first.OrderRef, p.OrderRef > 1, p.OrderRef == 0 && p.AccountID != 0,
			p.SecurityID > 6, p.Flags != 0:
			return false
		}
		switch {
		case p.Side == 1:
			if p.OrderRef == 0 || p.LimitPx != 0 {
				return false
			}
		case p.LimitPx < 0, p.LimitPx == 0 && p.SecurityID != 6,
			p.SecurityID == 0 && p.LimitPx > 1<<31-1:
			return false
		}
		// In the order of the limits, so each comes once.
		for id := p.SecurityID; id < 7; id++ {
			if seen[id] {
				return false
			}
		}
		seen[p.SecurityID] = true
	}
	return true
}
