package matcher

import (
	"fmt"
	"math"
	"math/bits"
)

// The row readers install one record each. They see columns as int64 and trust none.

func (s *snapshotReader) policy() error {
	version, kill, position, concentration := s.columns[0], s.columns[1], s.columns[2], s.columns[3]
	switch {
	case kill != 0 && kill != 1:
		return invalid("kill", kill)
	case position < 1:
		return invalid("maxPosition", position)
	case concentration < 1:
		return invalid("maxConcentration", concentration)
	}
	e := s.engine
	e.policyVersion = version
	e.policy.kill = kill == 1
	all := &e.all.RiskLimits
	all[LimitPosition], all[LimitConcentration] = position, concentration
	return nil
}

// capacityColumn is a capacity of a record: its value is least to most.
type capacityColumn struct {
	name        string
	least, most int
}

// within checks the first columns of a record.
func (s *snapshotReader) within(columns []capacityColumn) error {
	for i, c := range columns {
		if value := s.columns[i]; value < int64(c.least) || value > int64(c.most) {
			return invalid(c.name, value)
		}
	}
	return nil
}

// capacity reads the one record of raised capacities.
func (s *snapshotReader) capacity() error {
	e, l := s.engine, s.engine.genesis.Limits.Capacities()
	if err := s.within([]capacityColumn{
		{"maxAccounts", l.Accounts, maxPositions}, {"maxSecurities", l.Securities, maxSecurity},
		{"maxContracts", l.Contracts, maxContracts},
	}); err != nil {
		return err
	}
	to := Capacities{int(s.columns[0]), int(s.columns[1]), int(s.columns[2]), l.OrderRoom}
	if to == l || !to.Possible() {
		return invalid("maxAccounts x maxSecurities", int64(to.Accounts)*int64(to.Securities))
	}
	return e.grow(to)
}

// orderRoom reads the one record of raised room for orders.
func (s *snapshotReader) orderRoom() error {
	e, l := s.engine, s.engine.genesis.Limits.Capacities().OrderRoom
	if err := s.within([]capacityColumn{
		{"maxOpenOrders", l.Open, MaxOrders}, {"retainedOrders", l.Retained, MaxOrders},
		{"idempotencyCapacity", l.Keys, maxKeys},
	}); err != nil {
		return err
	}
	to := OrderRoom{int(s.columns[0]), int(s.columns[1]), int(s.columns[2])}
	if to == l || !to.Possible() {
		return invalid("maxOpenOrders + retainedOrders", int64(to.Open)+int64(to.Retained))
	}
	return e.growOrders(to)
}

func (s *snapshotReader) account() error {
	id, enabled, executed := s.columns[0], s.columns[1], s.columns[2]
	t := &s.engine.accounts
	switch {
	case id < 0 || id > math.MaxUint32:
		return invalid("id", id)
	case enabled != 0 && enabled != 1:
		return invalid("enabled", enabled)
	case executed == math.MinInt64:
		return invalid("executed", executed)
	case t.find(uint32(id)) >= 0:
		return fmt.Errorf("account %d: %w", id, ErrSnapshotTwice)
	}
	if n, listed := t.count, s.engine.genesis.Accounts; n < len(listed) && listed[n].ID != uint32(id) {
		return fmt.Errorf("account %d where the genesis record has %d: %w", id, listed[n].ID,
			ErrSnapshotGenesis)
	}
	if !t.add(uint32(id), enabled == 1) {
		return fmt.Errorf("more than %d accounts: %w", len(t.rows), ErrSnapshotCapacity)
	}
	t.rows[t.count-1].executed = executed
	return nil
}

// ascends checks that an id is at most most, and above the id of the record before.
func (s *snapshotReader) ascends(column string, id int64, most int) error {
	if id < 1 || id > int64(most) {
		return invalid(column, id)
	}
	if int(id) <= s.lastID {
		return fmt.Errorf("%s=%d after %d: %w", column, id, s.lastID, ErrSnapshotTwice)
	}
	s.lastID = int(id)
	return nil
}

func (s *snapshotReader) security() error {
	id, enabled, restricted := s.columns[0], s.columns[1], s.columns[2]
	lastPx, lastTime, multiplier := s.columns[3], s.columns[4], s.columns[5]
	if err := s.ascends("id", id, len(s.engine.securities.rows)); err != nil {
		return err
	}
	switch {
	case enabled < 0 || enabled > int64(SecurityEnabled|SecurityHalted):
		return invalid("enabled", enabled)
	case restricted != 0 && restricted != 1:
		return invalid("restricted", restricted)
	case lastPx < 0:
		return invalid("lastPx", lastPx)
	case lastPx == 0 && lastTime != 0:
		return invalid("lastPxTime", lastTime)
	case multiplier < 1 || multiplier > math.MaxUint32:
		return invalid("multiplier", multiplier)
	}
	row := &s.engine.securities.rows[id-1]
	row.control(enabled&int64(SecurityEnabled) != 0, enabled&int64(SecurityHalted) != 0)
	row.flags |= uint32(restricted) * securityRestricted
	row.lastPx, row.lastTime, row.multiplier = lastPx, lastTime, uint32(multiplier)
	return nil
}

// symbol reads the one record with its own shape: id, length, ASCII.
func (s *snapshotReader) symbol() error {
	if err := s.bytes(8); err != nil {
		return err
	}
	id := uint32(s.buf[0]) | uint32(s.buf[1])<<8 | uint32(s.buf[2])<<16 | uint32(s.buf[3])<<24
	length := uint32(s.buf[4]) | uint32(s.buf[5])<<8 | uint32(s.buf[6])<<16 | uint32(s.buf[7])<<24
	if length < 1 || length > MaxTicker {
		return invalid("length", int64(length))
	}
	if err := s.bytes(int(length)); err != nil {
		return err
	}
	ticker := string(s.buf[:length])
	t := &s.engine.securities
	switch {
	case !validTicker(ticker):
		return fmt.Errorf("symbol %q: %w: %w", ticker, ErrTicker, ErrSnapshotValue)
	case t.count == len(t.rows):
		return fmt.Errorf("more than %d symbols: %w", len(t.rows), ErrSnapshotCapacity)
	case int64(id) != int64(t.count)+1:
		return invalid("id", int64(id))
	}
	if n, listed := t.count, s.engine.genesis.Securities; n < len(listed) &&
		listed[n].Ticker != ticker {
		return fmt.Errorf("symbol %q where the genesis record has %q: %w", ticker, listed[n].Ticker,
			ErrSnapshotGenesis)
	}
	multiplier := max(t.rows[t.count].multiplier, 1)
	if s.engine.registerTicker(ticker) != id {
		return fmt.Errorf("symbol %q: %w", ticker, ErrSnapshotTwice)
	}
	t.rows[id-1].multiplier = multiplier
	return nil
}

func (s *snapshotReader) idempotency() error {
	key, ref, whole := uint64(s.columns[0]), s.columns[1], uint64(s.columns[2])
	e := s.engine
	decision, who := whole&decisionBits, whole&^decisionBits
	reason, kind := RiskReason(decision), IdempotencyKind(decision>>8)
	switch {
	case key == 0:
		return invalid("key", 0)
	case kind > KeyContract || reason >= ReasonCount || reason == Duplicate,
		uint32(who)&^uint32(byAccount) != 0, who&byAccount == 0 && who != 0:
		return invalid("decision", s.columns[2])
	case kind == KeyOrder && (ref < 1 || uint64(ref) >= e.nextRef),
		kind != KeyOrder && (ref < 1 || uint64(ref) > e.applied):
		return invalid("ref", ref)
	case e.keys.count == len(e.keys.ring):
		return fmt.Errorf("more than %d keys: %w", len(e.keys.ring), ErrSnapshotCapacity)
	}
	entry := remembered{key: key, ref: uint64(ref), decision: whole}
	known, slot := e.keys.find(entry.family(), key, who)
	if known != nil {
		return fmt.Errorf("key %d: %w", key, ErrSnapshotTwice)
	}
	e.keys.remember(slot, entry.key, entry.ref, entry.decision)
	return nil
}

func (s *snapshotReader) contract() error {
	c := s.columns[:]
	e := s.engine
	t := &e.contracts
	var before uint64
	if t.count > 0 {
		before = t.rows[t.count-1].id
	}
	switch id := c[0]; {
	case id < 1 || uint64(id) <= before || uint64(id) > e.applied:
		return fmt.Errorf("contract %d after %d with appliedSeq %d: %w", id, before, e.applied,
			ErrSnapshotContract)
	case c[1] < 0 || c[1] > math.MaxUint32 || e.accounts.find(uint32(c[1])) < 0:
		return invalid("accountId", c[1])
	}
	expiries, styles := int64(math.MaxUint16), int64(math.MaxUint8)
	if c[8] == int64(productSwap) {
		expiries, styles = 0, 0
	}
	for _, in := range [...]struct {
		name            string
		at, least, most int64
	}{{"payFixed", 2, 0, 1}, {"notional", 3, 1, math.MaxInt32},
		{"conventionIndex", 5, 0, math.MaxUint32}, {"effectiveDay", 6, 0, math.MaxUint16},
		{"maturityDay", 7, 0, math.MaxUint16},
		{"productType", 8, int64(productSwap), int64(productSwaption)},
		{"expiryDay", 9, 0, expiries}, {"exerciseStyle", 10, 0, styles}} {
		if v := c[in.at]; v < in.least || v > in.most {
			return invalid(in.name, v)
		}
	}
	if !t.append(contract{
		id: uint64(c[0]), account: uint32(c[1]), payFixed: uint8(c[2]), notional: c[3], fixedRate: c[4],
		convention: uint32(c[5]), effective: uint16(c[6]), maturity: uint16(c[7]),
		product: uint8(c[8]), expiry: uint16(c[9]), style: uint8(c[10]),
	}) {
		return fmt.Errorf("more than %d contracts: %w", len(t.rows), ErrSnapshotCapacity)
	}
	return nil
}

// holder finds the account index of a column and checks that the security is registered.
func (s *snapshotReader) holder(account, security int64) (int, error) {
	i := -1
	if account >= 0 && account <= math.MaxUint32 {
		i = s.engine.accounts.find(uint32(account))
	}
	if i < 0 {
		return 0, invalid("account", account)
	}
	if security < 1 || security > math.MaxUint32 || s.engine.securities.at(uint32(security)) == nil {
		return 0, invalid("security", security)
	}
	return i, nil
}

func (s *snapshotReader) position() error {
	account, security, quantity, average := s.columns[0], s.columns[1], s.columns[2], s.columns[3]
	i, err := s.holder(account, security)
	switch {
	case err != nil:
		return err
	case quantity == math.MinInt64:
		return invalid("quantity", quantity)
	case average < 0 || (average == 0) != (quantity == 0):
		return invalid("avgCostTicks", average)
	}
	t := &s.engine.positions
	row := t.at(i, uint32(security))
	if t.seen[row/64]&(1<<(row%64)) != 0 {
		return fmt.Errorf("position of account %d in security %d: %w", account, security,
			ErrSnapshotTwice)
	}
	t.touch(row)
	t.rows[row].quantity, t.rows[row].average = quantity, average
	return nil
}

func (s *snapshotReader) price() error {
	id, last := s.columns[0], s.columns[1]
	if err := s.ascends("security", id, s.engine.securities.count); err != nil {
		return err
	}
	row := s.engine.securities.at(uint32(id))
	switch {
	case row == nil:
		return invalid("security", id)
	case last < 1:
		return invalid("last", last)
	}
	row.lastTrade = last
	return nil
}

// book checks a BOOK record. In a book without bands it states only that the book exists.
func (s *snapshotReader) book() error {
	id, base := s.columns[0], s.columns[1]
	if err := s.ascends("security", id, s.engine.securities.count); err != nil {
		return err
	}
	switch {
	case s.engine.securities.at(uint32(id)) == nil:
		return invalid("security", id)
	case s.format == SnapshotFormat && base != 0:
		return invalid("baseLevel", base)
	}
	s.books++
	return nil
}

// orderRow is an ORDER record.
type orderRow struct {
	ref, account, security, side, quantity, remaining, limitPx, status, lastPx, lastQty,
	created, updated, reason, reservedNotional, reservedQty int64
}

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

// verify checks an order's columns against their ranges and each other.
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
// and does not restore them.
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
