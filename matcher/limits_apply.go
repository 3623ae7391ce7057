package matcher

import "posttrade/ring"

// boundRows holds a row of limits for each account with some of its own. The account names its row
// (account.flags); row 0 is never used, so that 0 in the account means none.
//
// A row holds the values of all limits, the account's own and those of all accounts, so that a
// decision reads one line and merges nothing. The price is that a change of the limits of all
// accounts visits every row. The rows are packed: their number is that of the accounts with own
// limits, and no order of them has a meaning.
type boundRows struct {
	table table[uint32, bounds]
	rows  []bounds // the same; the first count are in use
	// One more than the accounts with own limits: row 0 counts.
	count int
}

// newBoundRows reserves a row for every account; memory becomes resident only for the rows in use.
func newBoundRows(a *ring.Arena, accounts int) boundRows {
	rows := ring.CarveSparse[bounds](a, accounts+1)
	return boundRows{table: tableOf[uint32](rows), rows: rows, count: 1}
}

// changeAll sets limits of all accounts. An account keeps its own. Orders that rest keep what was
// admitted: a new limit judges only later commands.
func (e *Engine) changeAll(c *LimitsChange) {
	all, t := &e.all.RiskLimits, &e.bounds
	*all = c.Set.Over(all, &c.Values)
	for i := 1; i < t.count; i++ {
		row := &t.rows[i]
		row.RiskLimits = row.own.Over(all, &row.RiskLimits)
	}
}

// changeOwn sets and removes limits of one account. A row without a limit of its own is given up,
// and the last row takes its place; the account of that row gets the new number. A limit that is
// removed gives way to the one of all accounts.
func (e *Engine) changeOwn(index int, c *LimitsChange) {
	account, t := &e.accounts.rows[index], &e.bounds
	at := account.bounds()
	if at == 0 {
		at = uint32(t.count)
		t.rows[at] = bounds{account: uint32(index)}
		t.count++
		account.setBounds(at)
	}
	row := &t.rows[at]
	values := c.Set.Over(&row.RiskLimits, &c.Values)
	row.own = (row.own | c.Set) &^ c.Remove
	row.RiskLimits = row.own.Over(&e.all.RiskLimits, &values)
	if row.own != 0 {
		return
	}
	account.setBounds(0)
	t.count--
	if last := &t.rows[t.count]; last != row {
		*row = *last
		e.accounts.rows[row.account].setBounds(at)
	}
	t.rows[t.count] = bounds{}
}

// pendingLimits is a change of which some parts have come. It is a part of the engine's state and
// of a snapshot: a replay that starts between two parts continues in the same way.
//
// The zero value means that no change is pending. A refused part, an accepted POLICY_CONTROL and
// the last part of a change end it; other commands between two parts do not.
type pendingLimits struct {
	LimitsChange
	next, parts int // the part that must come next, and how many there are; 0 while none has come
}

// whole reports that the last part has come.
func (p *pendingLimits) whole() bool { return p.next > p.parts }

// limitsPart returns which part of how many a LIMITS_CONTROL is.
func (c *Command) limitsPart() (part, parts int) {
	return int(c.Qty) & partMask, int(c.Qty) >> partBits
}

// take adds a part. It returns false for one that does not continue what is pending: another
// version, account, number of parts, or a limit that is not above the last one. A first part always
// begins a new change: what is pending then is the rest of a request that did not survive.
//
// After false p may hold a part of the refused command. The caller must drop it.
func (p *pendingLimits) take(c *Command) bool {
	part, parts := c.limitsPart()
	if part == 1 {
		*p = pendingLimits{next: 1, parts: parts, LimitsChange: LimitsChange{
			Version: c.PriceTicks, ForAccount: c.OrderRef == limitsOfAccount, AccountID: c.AccountID,
		}}
	}
	switch {
	case part < 1, part != p.next, parts != p.parts, part > parts, parts > LimitCount:
		return false
	case c.PriceTicks != p.Version, c.AccountID != p.AccountID:
		return false
	case c.OrderRef > limitsOfAccount, (c.OrderRef == limitsOfAccount) != p.ForAccount,
		!p.ForAccount && c.AccountID != 0:
		return false
	case c.SecurityID >= LimitCount, (p.Set|p.Remove)>>c.SecurityID != 0: // they ascend
		return false
	}
	p.next++
	return p.note(c)
}

// note adds the limit of a part. It returns false for a value out of range, for a removal with a
// value, and for a removal from the limits of all accounts.
func (p *pendingLimits) note(c *Command) bool {
	id := LimitID(c.SecurityID)
	if c.Side == 1 {
		p.Remove |= 1 << id
		return p.ForAccount && c.LimitPx == 0
	}
	p.Set |= 1 << id
	p.Values[id] = c.LimitPx
	least, most := id.Range()
	return c.LimitPx >= least && c.LimitPx <= most
}

// limitsControl decides one part of a change of limits. The version must rise, as that of a
// POLICY_CONTROL. The last part applies the change; its second event states the new limits. A
// refused part gives up the whole change.
//
// The version is compared at every part, because a POLICY_CONTROL can come between two of them.
func (e *Engine) limitsControl(c *Command) {
	account, reason := -1, Accepted
	if c.OrderRef == limitsOfAccount {
		if account = e.accounts.find(c.AccountID); account < 0 {
			reason = UnknownAccount
		}
	}
	if reason == Accepted && (c.PriceTicks <= e.policyVersion || c.Flags != 0 || !e.pending.take(c)) {
		reason = Invalid
	}
	switch {
	case reason != Accepted:
		e.pending = pendingLimits{}
		e.reject(c, reason)
	case !e.pending.whole():
		e.applyEvent(c, c.LimitPx, EventLast)
	default:
		e.applyEvent(c, c.LimitPx, 0)
	}
	ev := e.out.last()
	ev.OrderRef, ev.SecurityID, ev.Qty = 0, 0, 0
	if ev.Flags&EventLast == 0 {
		e.changeLimits(account)
	}
}

// changeLimits applies the pending change, which is whole, and states the limits that hold then in
// a second event. account is the index of the account that it is for, negative for all accounts.
func (e *Engine) changeLimits(account int) {
	change := e.pending.LimitsChange
	e.pending = pendingLimits{}
	e.policyVersion = change.Version
	said := LimitsDetail{Own: AllLimits}
	if change.ForAccount {
		e.changeOwn(account, &change)
		row := e.bounds.rows[e.accounts.rows[account].bounds()] // row 0 has nothing
		said = LimitsDetail{ForAccount: true, Own: row.own, Values: row.own.only(&row.RiskLimits)}
	} else {
		e.changeAll(&change)
		said.Values = e.all.RiskLimits
	}
	ev, _ := e.next(head(EventLimits, 0, Accepted, 0, EventLast))
	ev.Px, ev.TradeSeq, ev.OrderRef, ev.SecurityID, ev.Qty = change.Version, 0, 0, 0, 0
	ev.AccountID = change.AccountID
	*ev.Limits() = said
}
