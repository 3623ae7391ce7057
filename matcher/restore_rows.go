package matcher

import (
	"fmt"
	"math"
)

// The row readers below install one record each. They see columns as int64 and trust none. A value
// that an engine cannot reach is refused even where a decision would survive it, because the
// snapshot of the restored engine must have the same bytes.
//
// account reads an ACCOUNT record. The rows come in the order in which the accounts appeared, which
// starts with those of the genesis record; the place gives the account its index. Cash of MinInt64
// does not exist: account.settle saturates before it.
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

// ascends checks that an id is 1 to most, and above the id of the record before: so no id is there
// twice, and the order is the one that WriteSnapshot writes.
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

// security reads a SECURITY record: a security that a control has made known to trading. Its ticker
// comes in a SYMBOL record behind it; passed checks that every one has come.
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

// symbol reads the one record with its own shape: id and length, u32 each, then the ticker in
// ASCII. Ids have no hole, so the n-th record has id n. The multiplier of the row was set by a
// SECURITY record, if there was one; registering would reset it.
func (s *snapshotReader) symbol() error {
	if err := s.bytes(8); err != nil {
		return err
	}
	id := uint32(s.buf[0]) | uint32(s.buf[1])<<8 | uint32(s.buf[2])<<16 | uint32(s.buf[3])<<24
	length := uint32(s.buf[4]) | uint32(s.buf[5])<<8 | uint32(s.buf[6])<<16 | uint32(s.buf[7])<<24
	if length < 1 || length > TickerBytes {
		return invalid("length", int64(length))
	}
	if err := s.bytes(int(length)); err != nil {
		return err
	}
	ticker := string(s.buf[:length])
	t := &s.engine.securities
	switch {
	case !fitsRecord(ticker):
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

// idempotency reads one remembered key, in the order in which the engine will forget them. Account
// and reference must agree with the kind of thing that the entry names; the account need not exist,
// because a refused order can name any.
func (s *snapshotReader) idempotency() error {
	key, ref, whole := uint64(s.columns[0]), s.columns[1], uint64(s.columns[2])
	e := s.engine
	decision, asker := whole&decisionBits, whole&^decisionBits
	reason, kind := RiskReason(decision), IdempotencyKind(decision>>8)
	switch {
	case key == 0:
		return invalid("key", 0)
	case kind > KeyContract || reason >= ReasonCount || reason == Duplicate,
		uint32(asker)&^uint32(byAccount) != 0, asker&byAccount == 0 && asker != 0:
		return invalid("decision", s.columns[2])
	case kind == KeyOrder && (ref < 1 || uint64(ref) >= e.nextRef),
		kind != KeyOrder && (ref < 1 || uint64(ref) > e.applied):
		return invalid("ref", ref)
	case e.keys.count == len(e.keys.ring):
		return fmt.Errorf("more than %d keys: %w", len(e.keys.ring), ErrSnapshotCapacity)
	}
	entry := remembered{key: key, ref: uint64(ref), decision: whole}
	known, slot := e.keys.find(entry.family(), key, asker)
	if known != nil {
		return fmt.Errorf("key %d: %w", key, ErrSnapshotTwice)
	}
	e.keys.remember(slot, entry.key, entry.ref, entry.decision)
	return nil
}

// contract reads a CONTRACT record, in format 6 or widened from format 5. The account must exist.
// The terms are only held to their widths: a contract with a convention that this build does not
// know is kept as it is.
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

// holder finds the account index of a column and checks that the security is known to trading. Its
// error names the column that is wrong.
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

// position reads a POSITION record. Flat positions come too: the order of the records is that of
// the first fills, and the restored engine must list them in the same order. A quantity of MinInt64
// is refused, so that the quantity can be negated. The reserved quantities come with the orders.
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

// price reads the price of a security's last fill. Only securities that have traded have a record.
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

// book checks a BOOK record. In a book without bands it states only that the book exists; the
// column of the base level is kept for the layout and is 0 in format 6.
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
