package matcher

// The functions below read an engine's state, for views that start from a snapshot. They are not on
// the path of a command. Only the engine's owner may call them, between two commands.

// OrderInfo is an order as the engine knows it: a copy, valid after the engine has gone on. Times
// are epoch milliseconds; quantities are whole units.
type OrderInfo struct {
	Ref        uint32
	Era        uint16 // of Ref: the upper bits of the order's number
	AccountID  uint32
	SecurityID uint32
	Side       Side
	Status     OrderStatus
	Reason     RiskReason // why it was refused, or cancelled by another than its owner
	Qty        int32
	Leaves     int32 // the quantity not executed, also of a cancelled order
	LimitPx    int64 // x 1e6; 0 = market
	// Of the last fill: price x 1e6, and quantity; both 0 before the first.
	LastPx        int64
	LastQty       int32
	CreatedMillis int64
	UpdatedMillis int64
}

// Open reports whether the order rests on the book.
func (o *OrderInfo) Open() bool { return !o.Status.Terminal() }

// EachOrder calls f for the open orders by priority, then for the retained terminal orders, oldest
// first, until f returns false. It allocates a list of the open orders and sorts it.
func (e *Engine) EachOrder(f func(OrderInfo) bool) {
	for _, i := range e.openByPriority() {
		if !f(e.orderInfo(i)) {
			return
		}
	}
	for n := range e.retired.count {
		if !f(e.orderInfo(e.retired.at(n))) {
			return
		}
	}
}

// Order returns one order that is open or retained, by its reference: false for one that was
// forgotten or never existed. OrderInfo.Era says which order has the reference.
func (e *Engine) Order(ref uint32) (OrderInfo, bool) {
	i := e.orders.find(ref)
	if ref == 0 || i == 0 {
		return OrderInfo{}, false
	}
	return e.orderInfo(i), true
}

// orderInfo copies an order of the pool. A refused order has the ids of its command, which may not
// exist.
func (e *Engine) orderInfo(i ix) OrderInfo {
	o, cold := e.orders.hot(i), e.orders.cold(i)
	return OrderInfo{
		Ref: o.ref, Era: cold.era, AccountID: cold.accountID, SecurityID: cold.securityID,
		Side: o.side(), Status: o.status(), Reason: cold.reason,
		Qty: cold.qty, Leaves: o.leaves, LimitPx: cold.limit, LastPx: cold.lastPx, LastQty: cold.lastQty,
		CreatedMillis: cold.created, UpdatedMillis: cold.updated,
	}
}

// PositionInfo is what an account holds of a security. What its open orders could add is not in it:
// AccountInfo has the money, the orders have the quantities.
type PositionInfo struct {
	AccountID   uint32
	SecurityID  uint32
	Qty         int64 // negative = short
	AverageCost int64 // x 1e6; 0 when flat
}

// EachPosition calls f for every position that ever had a fill, flat ones too, in the order of
// their first fills, until f returns false.
func (e *Engine) EachPosition(f func(PositionInfo) bool) {
	for _, row := range e.positions.held[:e.positions.count] {
		p := &e.positions.rows[row]
		if !f(PositionInfo{
			AccountID:  e.accounts.rows[e.positions.account(row)].id,
			SecurityID: e.positions.security(row), Qty: p.quantity, AverageCost: p.average,
		}) {
			return
		}
	}
}

// AccountInfo is an account's risk state. Money is x 1e6. CreditUsed and CreditLimit are what the
// next booking is judged by; an order is judged by its own side alone.
type AccountInfo struct {
	ID            uint32
	Enabled       bool
	Executed      int64 // paid for purchases less received for sales
	ReservedBuys  int64 // what open orders could still pay
	ReservedSells int64 // and receive
	CreditUsed    int64 // the larger of its purchases and its sales, open orders included
	CreditLimit   int64 // the most that it may use
}

// EachAccount calls f for every account, in the order in which they appeared, until f returns
// false.
func (e *Engine) EachAccount(f func(AccountInfo) bool) {
	for i := range e.accounts.rows[:e.accounts.count] {
		a := &e.accounts.rows[i]
		if !f(AccountInfo{
			ID: a.id, Enabled: a.flags&accountEnabled != 0,
			Executed: a.executed, ReservedBuys: a.open[Buy], ReservedSells: a.open[Sell],
			CreditUsed:  a.used(),
			CreditLimit: e.boundsOf(&request{bounds: a.bounds()}).RiskLimits[LimitCredit],
		}) {
			return
		}
	}
}

// SecurityInfo is a security's state. Prices are x 1e6, the time is an event time in epoch
// milliseconds. Enabled, Halted and Restricted mean nothing before a control has made the security
// known.
type SecurityInfo struct {
	ID               uint32
	Ticker           string
	Controlled       bool // a control has made it known to trading
	Enabled          bool
	Halted           bool
	Restricted       bool
	LastPx           int64 // the market price x 1e6: of the newest trade or tick; 0 = none yet
	LastPxTimeMillis int64
	LastTradePx      int64 // of the last executed fill; 0 = none yet
}

// EachSecurity calls f for every registered security, ascending by id, until f returns false.
func (e *Engine) EachSecurity(f func(SecurityInfo) bool) {
	for i := range e.securities.rows[:e.securities.count] {
		s := &e.securities.rows[i]
		if !f(SecurityInfo{
			ID: uint32(i + 1), Ticker: e.Ticker(uint32(i + 1)),
			Controlled: s.flags&securityKnown != 0, Enabled: s.flags&securityEnabled != 0,
			Halted: s.flags&securityHalted != 0, Restricted: s.flags&securityRestricted != 0,
			LastPx: s.lastPx, LastPxTimeMillis: s.lastTime, LastTradePx: s.lastTrade,
		}) {
			return
		}
	}
}

// Security returns the id of a registered ticker, known to trading or not. ok is false also for a
// text that no ticker can be.
func (e *Engine) Security(ticker string) (id uint32, ok bool) {
	if !fitsRecord(ticker) {
		return 0, false
	}
	var b [TickerBytes]byte
	copy(b[:], ticker)
	id, _ = e.securities.find(&b)
	return id, id != 0
}

// Ticker returns the ticker of a security, empty when no security has the id. It allocates.
func (e *Engine) Ticker(id uint32) string {
	if id-1 >= uint32(e.securities.count) {
		return ""
	}
	b := &e.securities.tickers[id-1]
	return string(b[:tickerLen(b)])
}

// PolicyInfo is the policy in force: the version of the last POLICY_CONTROL or change of limits,
// and the two limits that a POLICY_CONTROL can set. RiskLimits has them all.
type PolicyInfo struct {
	Version                  int64
	KillSwitch               bool
	MaxPositionQty           int64
	MaxConcentrationNotional int64 // x 1e6
}

// Policy returns the policy in force.
func (e *Engine) Policy() PolicyInfo {
	limits := &e.all.RiskLimits
	return PolicyInfo{
		Version: e.policyVersion, KillSwitch: e.policy.kill,
		MaxPositionQty: limits[LimitPosition], MaxConcentrationNotional: limits[LimitConcentration],
	}
}

// KeyInfo is a remembered idempotency key and the first decision on it. Ref is what Kind names.
type KeyInfo struct {
	Key      uint64
	Kind     IdempotencyKind
	Ref      uint64
	Decision RiskReason

	ByAccount bool   // the key is AccountID's; else its record names no account
	AccountID uint32 // 0 unless ByAccount
}

// EachKey calls f for every remembered key, the oldest first, until f returns false. The oldest is
// the next to be forgotten.
func (e *Engine) EachKey(f func(KeyInfo) bool) {
	for i := range e.keys.count {
		k := e.keys.place(i)
		if !f(KeyInfo{
			Key: k.key, Ref: k.ref,
			Kind: IdempotencyKind(k.decision & decisionBits >> 8), Decision: RiskReason(k.decision),
			ByAccount: k.decision&byAccount != 0, AccountID: uint32(k.decision >> accountAt),
		}) {
			return
		}
	}
}

// EachLevel calls f for the levels of one side of a security's book, best first, until f returns
// false. Prices are x 1e6.
func (e *Engine) EachLevel(securityID uint32, side Side, f func(px, qty int64, orders int) bool) {
	if securityID-1 >= uint32(e.securities.count) || side > Sell {
		return
	}
	e.ladders[securityID-1].eachLevel(side, func(ticks, qty int64, orders int) bool {
		return f(ticks*e.policy.tickPx, qty, orders)
	})
}

// Counts are sizes of the state, for metrics and logs. Securities are the registered tickers;
// Positions are those that ever had a fill.
type Counts struct {
	OpenOrders, RetainedOrders, Accounts, Securities, Positions, Keys, Contracts int
}

// Counts returns the sizes of the state.
func (e *Engine) Counts() Counts {
	return Counts{
		OpenOrders: e.openOrders, RetainedOrders: e.retired.count,
		Accounts: e.accounts.count, Securities: e.securities.count,
		Positions: e.positions.count, Keys: e.keys.count, Contracts: e.contracts.count,
	}
}
