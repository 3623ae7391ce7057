package matcher

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The reasons for which a snapshot is refused. ReadSnapshot wraps exactly one of them (or the
// reader's error) and names the record at which it stopped.
var (
	ErrSnapshotHeader = errors.New("does not start with a header: no snapshot")
	ErrSnapshotNewer  = errors.New(
		"written in a newer format: roll forward to a build that knows it")
	ErrSnapshotOlder = errors.New(
		"written in a format that is no longer restored: go through a build that restores it " +
			"and writes " +
			"a newer one")
	ErrSnapshotRecord    = errors.New("unknown record type")
	ErrSnapshotSequence  = errors.New("record out of its place")
	ErrSnapshotTruncated = errors.New("ends in the middle of a record")
	ErrSnapshotEnd       = errors.New("has no END record")
	ErrSnapshotTrailing  = errors.New("goes on after its END record")
	ErrSnapshotOrderRef  = errors.New("order reference is not below nextOrderRef")
	ErrSnapshotContract  = errors.New("contract ids are not ascending up to appliedSeq")
	ErrSnapshotCrossed   = errors.New("open orders cross each other")
	ErrSnapshotTwice     = errors.New("the same thing is there twice")
	ErrSnapshotCapacity  = errors.New("does not fit into the limits of the genesis record")
	ErrSnapshotGenesis   = errors.New("belongs to another genesis record")
	ErrSnapshotValue     = errors.New("value is out of range or contradicts another")
)

// ReadSnapshot makes an engine from what WriteSnapshot wrote, in format 6, or in formats 4 and 5 of
// the same layout with fewer columns. The limits come from the genesis record. Everything else
// comes from the snapshot, also capacities that were raised.
//
//   - Trust: none. Every column is checked against its range and its neighbours. The SHA-256 in
//     the manifest shows whether the bytes are the ones that were written.
//   - Errors: one of ErrSnapshot…, ErrGenesis or the reader's own; no partly built engine.
//   - Cost: linear; the size of the allocations does not depend on any length in the input.
//   - Of format 6 it accepts only what WriteSnapshot would write byte for byte.
func ReadSnapshot(g *Genesis, r io.Reader) (*Engine, error) {
	e, err := newEngine(g)
	if err != nil {
		return nil, err
	}
	s := snapshotReader{engine: e, r: bufio.NewReaderSize(r, 64<<10)}
	if err := s.read(); err != nil {
		err = fmt.Errorf("matcher: read snapshot record=%d type=%d: %w", s.records, s.kind, err)
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// snapshotReader reads a snapshot, record by record, into an empty engine. It installs each record
// as soon as it is checked, so that it never holds a table twice; after an error the engine is
// incomplete, and ReadSnapshot closes it.
type snapshotReader struct {
	engine *Engine
	r      *bufio.Reader
	// From the header. It decides the width of a contract and which record types may appear.
	format uint32
	// Records begun, and the type of the last one: what an error names.
	records int
	kind    uint32
	// The body of the record being read, and the same as columns. Both have a fixed size, so no length
	// in the input decides an allocation.
	buf     [8 * maxColumns]byte
	columns [maxColumns]int64

	books     int  // BOOK records, which follow the securities that are known
	lastID    int  // of the record before, within the types that ascend by id
	terminals bool // a terminal order has been met
}

// place is a record type's place in the file; 0 means that the type does not exist. The order is
// that of dependence: accounts and securities come before the rows that name them, capacities
// before the tables that they size, limits before the accounts' own, and open orders before the
// retained ones.
//
// A type may repeat, except for the four that read refuses twice.
var place = [...]int{
	recordHeader: 1, recordPolicy: 2, recordCapacity: 3, recordOrderRoom: 4, recordAccount: 5,
	recordLimits: 6, recordRevocation: 7, recordSecurity: 8, recordSymbol: 9,
	recordIdempotency: 10, recordContract: 11, recordPosition: 12, recordPrice: 13, recordBook: 14,
	recordOrder: 15, recordEnd: 16,
}

// read reads the whole stream, up to the END record and the end of the input behind it.
func (s *snapshotReader) read() error {
	if err := s.header(); err != nil {
		return err
	}
	before := recordHeader
	for {
		if err := s.next(); err != nil {
			return err
		}
		// Types that came with a later format are unknown to a file of an older one.
		kind := int(s.kind)
		if kind >= len(place) || place[kind] == 0 || kind == recordContract && s.format == 4 ||
			(kind == recordCapacity || kind == recordOrderRoom || kind == recordLimits ||
				kind == recordRevocation) && s.format < SnapshotFormat {
			return ErrSnapshotRecord
		}
		if place[kind] < place[before] || kind == before && (kind == recordPolicy ||
			kind == recordHeader || kind == recordCapacity || kind == recordOrderRoom) {
			return fmt.Errorf("after type %d: %w", before, ErrSnapshotSequence)
		}
		if kind != before {
			s.lastID = 0
			if before == recordHeader && kind != recordPolicy {
				return fmt.Errorf("no POLICY record: %w", ErrSnapshotSequence)
			}
			if err := s.passed(before, kind); err != nil {
				return err
			}
		}
		before = kind
		if err := s.body(); err != nil {
			return err
		}
		if kind == recordEnd {
			return s.end()
		}
	}
}

// next reads a record's type. An input that ends here has no END record: ErrSnapshotEnd. One that
// ends within the type is ErrSnapshotTruncated.
func (s *snapshotReader) next() error {
	n, err := io.ReadFull(s.r, s.buf[:4])
	s.records++
	switch {
	case err == io.EOF:
		s.kind = 0
		return ErrSnapshotEnd
	case err != nil:
		return s.short(n, err)
	}
	s.kind = binary.LittleEndian.Uint32(s.buf[:4])
	return nil
}

// bytes reads n bytes of a record's body into the buffer.
func (s *snapshotReader) bytes(n int) error {
	if got, err := io.ReadFull(s.r, s.buf[:n]); err != nil {
		return s.short(got, err)
	}
	return nil
}

// short distinguishes an input that ends, which is a fault of the snapshot, from one that cannot be
// read. The reader's own error is returned as it is, so that the caller can test it.
func (s *snapshotReader) short(got int, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("after %d bytes of it: %w", got, ErrSnapshotTruncated)
	}
	return err
}

// read64 reads a record's columns.
func (s *snapshotReader) read64(columns int) error {
	if err := s.bytes(8 * columns); err != nil {
		return err
	}
	for i := range columns {
		s.columns[i] = int64(binary.LittleEndian.Uint64(s.buf[8*i:]))
	}
	return nil
}

// header reads the first record, which decides how the others are read, and sets the engine's
// numbers: sequences and the next order reference.
//
// It looks at the format before the rest of the record, because a record of another format may be
// of another length. Only format 6 is held to the exact values of the last columns: there they
// repeat what the engine has otherwise.
func (s *snapshotReader) header() error {
	if err := s.next(); err != nil {
		if errors.Is(err, ErrSnapshotEnd) || errors.Is(err, ErrSnapshotTruncated) {
			return ErrSnapshotHeader
		}
		return err
	}
	if s.kind != recordHeader {
		return ErrSnapshotHeader
	}
	if err := s.bytes(4); err != nil {
		return err
	}
	s.format = binary.LittleEndian.Uint32(s.buf[:4])
	switch {
	case s.format > SnapshotFormat:
		return fmt.Errorf("format %d, this build restores %d to %d: %w",
			s.format, oldestSnapshotFormat, SnapshotFormat, ErrSnapshotNewer)
	case s.format < oldestSnapshotFormat:
		return fmt.Errorf("format %d, this build restores %d to %d: %w",
			s.format, oldestSnapshotFormat, SnapshotFormat, ErrSnapshotOlder)
	}
	if err := s.bytes(headerBytes - 8); err != nil {
		return err
	}
	e := s.engine
	e.nextRef = binary.LittleEndian.Uint64(s.buf[0:])
	highest := binary.LittleEndian.Uint64(s.buf[8:])
	e.applied = binary.LittleEndian.Uint64(s.buf[16:])
	e.tradeSeq = binary.LittleEndian.Uint64(s.buf[24:])
	levels := binary.LittleEndian.Uint32(s.buf[32:])
	tick := int64(binary.LittleEndian.Uint64(s.buf[36:]))
	switch {
	case e.nextRef < 1 || e.nextRef > maxOrderNumber+1:
		return invalid("nextOrderRef", int64(e.nextRef))
	case highest >= e.nextRef || s.format == SnapshotFormat && highest != e.nextRef-1:
		return invalid("highestIssuedRef", int64(highest))
	case e.applied > maxInt64:
		return invalid("appliedSeq", int64(e.applied))
	case e.tradeSeq > maxInt64:
		return invalid("tradeCounter", int64(e.tradeSeq))
	case s.format == SnapshotFormat && levels != 0:
		return invalid("bookLevels", int64(levels))
	case s.format == SnapshotFormat && tick != e.policy.tickPx:
		return fmt.Errorf("bookTickPx=%d, the genesis record has %d: %w", tick, e.policy.tickPx,
			ErrSnapshotGenesis)
	}
	return nil
}

// body reads and installs the record after its type has been read. The width is that of the
// header's format, not that of this build. A contract of format 5 lacks the last three columns; as
// zeros they make it a swap.
func (s *snapshotReader) body() error {
	if s.kind == recordSymbol {
		return s.symbol()
	}
	columns := recordColumns[s.kind]
	if s.kind == recordContract && s.format == 5 {
		columns = contractColumns5
		clear(s.columns[contractColumns5:])
	}
	if err := s.read64(columns); err != nil {
		return err
	}
	switch s.kind {
	case recordPolicy:
		return s.policy()
	case recordCapacity:
		return s.capacity()
	case recordOrderRoom:
		return s.orderRoom()
	case recordAccount:
		return s.account()
	case recordLimits:
		return s.limits()
	case recordRevocation:
		return s.revocation()
	case recordSecurity:
		return s.security()
	case recordIdempotency:
		return s.idempotency()
	case recordContract:
		return s.contract()
	case recordPosition:
		return s.position()
	case recordPrice:
		return s.price()
	case recordBook:
		return s.book()
	case recordOrder:
		return s.order()
	}
	return nil
}

// passed checks that a whole section of the file is complete, when the first record behind it
// comes: here a section that is absent is also seen.
//
//   - The accounts of the genesis record come first; the snapshot may have more.
//   - The same for tickers; and no security may have a state without a ticker.
//   - In format 6 there is a BOOK record for every security that is known to trading.
func (s *snapshotReader) passed(before, now int) error {
	e := s.engine
	over := func(kind int) bool { return place[before] <= place[kind] && place[now] > place[kind] }
	if over(recordAccount) && e.accounts.count < len(e.genesis.Accounts) {
		return fmt.Errorf("%d accounts, the genesis record has %d: %w",
			e.accounts.count, len(e.genesis.Accounts), ErrSnapshotGenesis)
	}
	if over(recordSymbol) {
		if e.securities.count < len(e.genesis.Securities) {
			return fmt.Errorf("%d symbols, the genesis record has %d: %w",
				e.securities.count, len(e.genesis.Securities), ErrSnapshotGenesis)
		}
		for i := e.securities.count; i < len(e.securities.rows); i++ {
			if e.securities.rows[i].flags != 0 {
				return fmt.Errorf("security %d has no symbol: %w", i+1, ErrSnapshotValue)
			}
		}
	}
	if s.format == SnapshotFormat && over(recordBook) {
		known := 0
		for i := range e.securities.rows[:e.securities.count] {
			if e.securities.rows[i].flags&securityKnown != 0 {
				known++
			}
		}
		if s.books != known {
			return fmt.Errorf("%d books for %d securities: %w", s.books, known, ErrSnapshotValue)
		}
	}
	return nil
}

// end checks that nothing follows: a file with a tail is not what WriteSnapshot wrote.
func (s *snapshotReader) end() error {
	switch _, err := s.r.ReadByte(); err {
	case io.EOF:
		return nil
	case nil:
		return ErrSnapshotTrailing
	default:
		return err
	}
}

// invalid names a column that has an impossible value. It wraps ErrSnapshotValue.
func invalid(column string, value int64) error {
	return fmt.Errorf("%s=%d: %w", column, value, ErrSnapshotValue)
}
