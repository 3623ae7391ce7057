package matcher

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// WriteSnapshot writes the whole state: everything that a later decision depends on, as records of
// format 6 (snapshot_records.go has the layout). ReadSnapshot makes an engine from it that decides
// as this one does. Only the owner may call it, between two commands.
//
//   - Order of open orders: by priority, so that a restore rebuilds the queue of every level. They
//     ascend by reference, except for those that a replace sent to the back of the queue.
//   - Not written: what follows from the rest, such as reservations, books and the salt of the
//     keys. So equal states have equal bytes on every machine.
//   - Cost: linear in the state, streamed; memory for one index of the open orders.
//   - Errors: the writer's, wrapped.
func (e *Engine) WriteSnapshot(w io.Writer) error {
	s := snapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
	s.header(e)
	all := &e.all.RiskLimits
	s.record(recordPolicy, e.policyVersion, int64(oneIf(e.policy.kill)),
		all[LimitPosition], all[LimitConcentration])
	s.capacities(e.Capacities(), e.genesis.Limits.Capacities())
	for i := range e.accounts.rows[:e.accounts.count] {
		a := &e.accounts.rows[i]
		s.record(recordAccount, int64(a.id), int64(a.flags&accountEnabled), a.executed)
	}
	s.limits(e)
	for _, r := range e.revoked.rows[:e.revoked.count] {
		s.record(recordRevocation, r.Subject[0], r.Subject[1], r.Millis)
	}
	s.securities(e)
	for i := range e.keys.count {
		k := e.keys.place(i)
		s.record(recordIdempotency, int64(k.key), int64(k.ref), int64(k.decision))
	}
	for i := range e.contracts.rows[:e.contracts.count] {
		s.contract(&e.contracts.rows[i])
	}
	for _, row := range e.positions.held[:e.positions.count] {
		p := &e.positions.rows[row]
		s.record(recordPosition, int64(e.accounts.rows[e.positions.account(row)].id),
			int64(e.positions.security(row)), p.quantity, p.average)
	}
	s.books(e)
	for _, i := range e.openByPriority() {
		s.order(e, i)
	}
	for n := range e.retired.count {
		s.order(e, e.retired.at(n))
	}
	s.record(recordEnd)
	if s.err == nil {
		s.err = s.w.Flush()
	}
	if s.err != nil {
		return fmt.Errorf("matcher: write snapshot sequence=%d: %w", e.applied, s.err)
	}
	return nil
}

// openByPriority lists the open orders. An order comes before those that queue behind it. The
// stamps order the orders of all books, not only of one level; that is more than a restore needs,
// and makes the order independent of the books. It allocates, and costs a sort of the open orders.
func (e *Engine) openByPriority() []ix {
	open := make([]ix, 0, e.openOrders)
	e.orders.each(func(i ix) bool {
		if !e.orders.hot(i).status().Terminal() {
			open = append(open, i)
		}
		return true
	})
	slices.SortFunc(open, func(a, b ix) int {
		return cmp.Compare(e.orders.cold(a).stamp, e.orders.cold(b).stamp)
	})
	return open
}

// snapshotWriter writes records. After the first error it writes nothing more and keeps the error,
// so that WriteSnapshot tests it once, at the end.
type snapshotWriter struct {
	w   *bufio.Writer
	buf [4 + 8*maxColumns]byte
	err error
}

// write keeps the first error and writes nothing after it.
func (s *snapshotWriter) write(b []byte) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
}

// record writes a record of i64 columns. The caller gives as many as recordColumns has for the
// kind.
func (s *snapshotWriter) record(kind uint32, columns ...int64) {
	b := binary.LittleEndian.AppendUint32(s.buf[:0], kind)
	for _, c := range columns {
		b = binary.LittleEndian.AppendUint64(b, uint64(c))
	}
	s.write(b)
}

// capacities writes those that are not the genesis record's: nothing for an engine that was never
// raised.
func (s *snapshotWriter) capacities(now, first Capacities) {
	room := now.OrderRoom
	if now.OrderRoom = first.OrderRoom; now != first {
		s.record(recordCapacity, int64(now.Accounts), int64(now.Securities), int64(now.Contracts))
	}
	if room != first.OrderRoom {
		s.record(recordOrderRoom, int64(room.Open), int64(room.Retained), int64(room.Keys))
	}
}

// header writes the first record. It repeats what a reader can derive, such as the highest
// reference, because format 4 had it.
func (s *snapshotWriter) header(e *Engine) {
	b := binary.LittleEndian.AppendUint32(s.buf[:0], recordHeader)
	b = binary.LittleEndian.AppendUint32(b, SnapshotFormat)
	b = binary.LittleEndian.AppendUint64(b, e.nextRef)
	b = binary.LittleEndian.AppendUint64(b, e.nextRef-1) // the highest reference issued
	b = binary.LittleEndian.AppendUint64(b, e.applied)
	b = binary.LittleEndian.AppendUint64(b, e.tradeSeq)
	b = binary.LittleEndian.AppendUint32(b, 0) // book levels: a price has no band
	b = binary.LittleEndian.AppendUint64(b, uint64(e.policy.tickPx))
	s.write(b)
}

// securities writes the SECURITY records of the known securities, then the SYMBOL records of all
// registered ones.
func (s *snapshotWriter) securities(e *Engine) {
	for i := range e.securities.rows[:e.securities.count] {
		row := &e.securities.rows[i]
		if row.flags&securityKnown == 0 {
			continue
		}
		s.record(recordSecurity, int64(i+1), row.enabledColumn(),
			int64(row.flags&securityRestricted/securityRestricted),
			row.lastPx, row.lastTime, int64(row.multiplier))
	}
	for i := range e.securities.tickers[:e.securities.count] {
		ticker := &e.securities.tickers[i]
		n := tickerLen(ticker)
		b := binary.LittleEndian.AppendUint32(s.buf[:0], recordSymbol)
		b = binary.LittleEndian.AppendUint32(b, uint32(i+1))
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
		s.write(append(b, ticker[:n]...))
	}
}

// enabledColumn returns 0 or 1 for a security that is not halted; bit 1 marks a halted one.
func (s *security) enabledColumn() int64 {
	return int64(s.flags&securityEnabled/securityEnabled | s.flags&securityHalted/securityHalted<<1)
}

// contract writes all 11 columns; format 5 had the first 8.
func (s *snapshotWriter) contract(c *contract) {
	s.record(recordContract, int64(c.id), int64(c.account), int64(c.payFixed), c.notional, c.fixedRate,
		int64(c.convention), int64(c.effective), int64(c.maturity),
		int64(c.product), int64(c.expiry), int64(c.style))
}

// books writes the PRICE records of the securities that have traded, then a BOOK record for every
// known one.
func (s *snapshotWriter) books(e *Engine) {
	rows := e.securities.rows[:e.securities.count]
	for i := range rows {
		if rows[i].lastTrade != 0 {
			s.record(recordPrice, int64(i+1), rows[i].lastTrade)
		}
	}
	for i := range rows {
		if rows[i].flags&securityKnown != 0 {
			s.record(recordBook, int64(i+1), 0)
		}
	}
}

// order writes an open or a retained order. The reserved columns repeat what follows from price and
// leaves: a reader checks them and does not restore them.
func (s *snapshotWriter) order(e *Engine, i ix) {
	o, cold := e.orders.hot(i), e.orders.cold(i)
	notional, qty := int64(0), int64(0)
	if !o.status().Terminal() {
		notional, qty = cold.limit*int64(o.leaves), int64(o.leaves)
	}
	number := uint64(o.ref) | uint64(cold.era)<<eraAt
	s.record(recordOrder, int64(number), int64(cold.accountID), int64(cold.securityID),
		int64(o.side()),
		int64(cold.qty), int64(o.leaves), cold.limit, int64(o.status()), cold.lastPx, int64(cold.lastQty),
		cold.created, cold.updated, int64(cold.reason), notional, qty)
}
