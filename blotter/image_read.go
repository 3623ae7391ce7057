package blotter

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"posttrade/matcher"
)

// ErrImage reports bytes that are no image of this genesis record's views. The views are then
// rebuilt from the first command.
var ErrImage = errors.New("unusable views image")

// maxRecord is the widest record of the image.
const maxRecord = 136

// imageReader reads sections. It holds one record at a time, so a false count in the image cannot
// make it allocate.
type imageReader struct {
	in   *bufio.Reader
	crc  uint32
	at   section // being read
	rec  [maxRecord]byte
	left []byte // the rest of the record
}

// bad is ErrImage with its reason.
func bad(what string, args ...any) error {
	return fmt.Errorf("blotter: read image: %w: %s", ErrImage, fmt.Sprintf(what, args...))
}

// read fills b and adds it to the checksum. An image that ends is ErrImage; any other error is the
// reader's own.
func (r *imageReader) read(b []byte) error {
	if _, err := io.ReadFull(r.in, b); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return bad("it ends in section %s", r.at.name)
		}
		return fmt.Errorf("blotter: read image: %w", err)
	}
	r.crc = crc32.Update(r.crc, castagnoli, b)
	return nil
}

// section reads one section of least to most records. It calls record for each of them; record
// takes the fields in order, all of them. A record is used before the checksum of its section is
// known, so record must check every field itself.
func (r *imageReader) section(s section, least, most int, record func() error) error {
	r.at, r.crc = s, 0
	head := r.rec[:16]
	if err := r.read(head); err != nil {
		return err
	}
	id, width := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	count := binary.LittleEndian.Uint64(head[8:])
	if id != s.id || width != uint32(s.width) {
		return bad("section %d of width %d where section %s is due", id, width, s.name)
	}
	if count < uint64(least) || count > uint64(most) {
		return bad("%d records in section %s, allowed are %d to %d", count, s.name, least, most)
	}
	for range count {
		r.left = r.rec[:s.width]
		if err := r.read(r.left); err != nil {
			return err
		}
		if err := record(); err != nil {
			return err
		}
	}
	want, sum := r.crc, r.rec[:4]
	if err := r.read(sum); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint32(sum); got != want {
		return bad("section %s has checksum %08x, want %08x", s.name, got, want)
	}
	return nil
}

// The number methods take the next field off the record. A section's width is checked against its
// description, so a record always has its fields.
func (r *imageReader) u8() uint8 {
	n := r.left[0]
	r.left = r.left[1:]
	return n
}

func (r *imageReader) u32() uint32 {
	n := binary.LittleEndian.Uint32(r.left)
	r.left = r.left[4:]
	return n
}

func (r *imageReader) u64() uint64 {
	n := binary.LittleEndian.Uint64(r.left)
	r.left = r.left[8:]
	return n
}

func (r *imageReader) i64() int64 { return int64(r.u64()) }

// bytes returns the next n bytes, valid until the next record.
func (r *imageReader) bytes(n int) []byte {
	b := r.left[:n]
	r.left = r.left[n:]
	return b
}

// zeros reports whether the next n bytes are all zero.
func (r *imageReader) zeros(n int) bool { return len(bytes.Trim(r.bytes(n), "\x00")) == 0 }

// ReadImage returns views in the state that WriteTo wrote, ready for the next event. The genesis
// record must be that of the views that wrote the image.
//
// Errors: ErrImage with the reason, ErrGenesis, or the error of in. Every field is checked, so
// damage that a checksum misses is still refused where it would break an invariant. The genesis
// record bounds the memory used.
func ReadImage(g *matcher.Genesis, in io.Reader) (*Views, error) {
	v, err := emptyViews(g)
	if err != nil {
		return nil, err
	}
	r := &imageReader{in: bufio.NewReaderSize(in, 1<<16), at: section{name: "header"}}
	if err := v.restore(g, r); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// restore reads the whole image. The sections come in the order of dependence: the head gives the
// capacities, accounts and securities come before the rows that name them. applied is published
// last, so the views are never seen half restored.
func (v *Views) restore(g *matcher.Genesis, r *imageReader) error {
	head := r.rec[:imageHeader]
	if err := r.read(head); err != nil {
		return err
	}
	if string(head[:8]) != imageMagic {
		return bad("no views image: it begins with %q", head[:8])
	}
	first := headSection
	switch n := binary.LittleEndian.Uint32(head[8:]); n {
	case imageVersion:
	case imageVersionRoom:
		first = headSectionRoom
	default:
		return bad("version %d, this program reads %d and %d", n, imageVersion, imageVersionRoom)
	}
	if n := binary.LittleEndian.Uint32(head[12:]); n != 0 {
		return bad("reserved field is %d", n)
	}
	if err := r.section(first, 1, 1, func() error { return v.restoreHead(r) }); err != nil {
		return err
	}
	c := v.Capacities()
	for _, part := range []struct {
		section     section
		least, most int
		record      func(*imageReader) error
	}{
		{policySection, 1, 1, v.restorePolicy},
		{accountSection, len(g.Accounts), c.Accounts, v.restoreAccount},
		{securitySection, len(g.Securities), c.Securities, v.restoreSecurity},
		{positionSection, 0, c.Accounts * c.Securities, v.positionRestorer()},
		{openSection, 0, c.Open, v.openRestorer()},
		{retainedSection, 0, c.Retained, v.restoreRetained},
		{keySection, 0, c.Keys, v.keyRestorer()},
		{sourceSection, controlSources, controlSources, v.sourceRestorer()},
		{contractSection, 0, c.Contracts, v.contractRestorer()},
		{endSection, 0, 0, nil},
	} {
		if err := r.section(part.section, part.least, part.most,
			func() error { return part.record(r) }); err != nil {
			return err
		}
	}
	if _, err := r.in.ReadByte(); err != io.EOF {
		if err != nil {
			return fmt.Errorf("blotter: read image: %w", err)
		}
		return bad("bytes after the end")
	}
	v.applied.Release(int64(v.current))
	return nil
}

// restoreHead takes the numbers and grows the empty views to the capacities in force. An image of
// version 5 must say that the room for orders was raised, or its bytes would not be those that
// WriteTo writes.
func (v *Views) restoreHead(r *imageReader) error {
	applied, tradeSeq, lastRef := r.u64(), r.u64(), r.u64()
	if applied > math.MaxInt64 || tradeSeq > math.MaxInt64 || lastRef > matcher.MaxOrderNumber {
		return bad("applied %d, tradeSeq %d, last reference %d", applied, tradeSeq, lastRef)
	}
	if genesis := [32]byte(r.bytes(32)); genesis != v.genesis {
		return bad("it belongs to the genesis record %x, not to %x", genesis[:4], v.genesis[:4])
	}
	v.current, v.tradeSeq = applied, tradeSeq
	v.orders.lastRef.Release(int64(lastRef))
	was, withRoom := v.Capacities(), len(r.left) > 3*8
	raised := was
	columns := []*int{&raised.Accounts, &raised.Securities, &raised.Contracts,
		&raised.Open, &raised.Retained, &raised.Keys}
	for _, to := range columns[:len(r.left)/8] {
		n := r.u64()
		if n > math.MaxUint32 || int(n) < *to {
			return bad("a capacity of %d, of the genesis record %v", n, was)
		}
		*to = int(n)
	}
	if raised != was && !raised.Possible() || withRoom && raised.OrderRoom == was.OrderRoom {
		return bad("capacities %v, of the genesis record %v", raised, was)
	}
	return v.grow(raised)
}

// restorePolicy takes the policy, with both limits: an image never leaves one as it is.
func (v *Views) restorePolicy(r *imageReader) error {
	version, kill, position, concentration := r.i64(), r.i64(), r.i64(), r.i64()
	if kill&1 != kill || position <= 0 || concentration <= 0 {
		return bad("policy with kill switch %d, position %d, concentration %d", kill, position,
			concentration)
	}
	v.policy.control(version, kill == 1, position, concentration)
	return nil
}

// restoreAccount takes an account under the next index. How many securities it has held is counted
// by its positions.
func (v *Views) restoreAccount(r *imageReader) error {
	id, flags, version := r.u32(), r.u32(), r.i64()
	if flags > accountFlags || v.accounts.find(id) >= 0 {
		return bad("account %d with flags %d, or it is there twice", id, flags)
	}
	v.accounts.control(id, flags, false, version)
	return nil
}

// restoreSecurity takes a security under the next id. Its ticker has no zero before its end.
func (v *Views) restoreSecurity(r *imageReader) error {
	row := securityRow{flags: r.u64(), version: r.i64(), market: r.i64(), marketTime: r.i64(),
		traded: r.i64()}
	copy(row.ticker[:], r.bytes(matcher.TickerBytes))
	id := uint32(v.securities.count.Load() + 1)
	if row.flags > securityFlags || row.market < 0 || row.traded < 0 {
		return bad("security %d with flags %#x, prices %d and %d", id, row.flags, row.market, row.traded)
	}
	if name := bytes.TrimRight(row.ticker[:], "\x00"); len(name) == 0 ||
		bytes.IndexByte(name, 0) >= 0 {
		return bad("security %d with ticker %q", id, row.ticker[:])
	}
	v.securities.register(id, &row.ticker)
	s := v.securities.at(id)
	row.tickerBytes = s.row.tickerBytes
	s.set(&row)
	return nil
}

// positionRestorer takes positions in ascending order of account index and security, flat ones too.
func (v *Views) positionRestorer() func(*imageReader) error {
	last := -1
	return func(r *imageReader) error {
		account, security, qty, cost := r.u32(), r.u32(), r.i64(), r.i64()
		at := v.accounts.find(account)
		if at < 0 || !v.registered(security) || cost < 0 || qty == 0 && cost != 0 {
			return bad("position of account %d in security %d: %d at %d", account, security, qty, cost)
		}
		place := at*v.positions.stride + int(security) - 1
		if place <= last {
			return bad("position of account %d in security %d is out of order", account, security)
		}
		last = place
		v.positions.at(at, security).set(qty, cost)
		row := v.accounts.slots[at].row
		row.held++
		v.accounts.slots[at].set(&row)
		return nil
	}
}

// readOrder reads an order and makes the checks that open and terminal orders share. id points into
// the record and is valid until the next one.
func (v *Views) readOrder(r *imageReader) (row OrderRow, id []byte, err error) {
	row = OrderRow{Ref: r.u32(), AccountID: r.u32(), SecurityID: r.u32()}
	row.Qty, row.Leaves, row.LastQty = int32(r.u32()), int32(r.u32()), int32(r.u32())
	row.InputSeq, row.CreatedMillis, row.UpdatedMillis = r.u64(), r.i64(), r.i64()
	row.LimitPx, row.LastPx = r.i64(), r.i64()
	row.Side, row.Type, row.TimeInForce = matcher.Side(r.u8()), OrderType(r.u8()), TimeInForce(r.u8())
	row.Status, row.Reason = matcher.OrderStatus(r.u8()), matcher.RiskReason(r.u8())
	idLen := r.u8()
	row.Era = uint16(r.u8()) | uint16(r.u8())<<8
	switch {
	case row.Ref == 0 || int64(row.Number()) > v.orders.lastRef.Load() || v.orders.find(row.Ref) != 0:
		return row, nil, bad("order %d is there twice or above %d", row.Ref, v.orders.lastRef.Load())
	case row.InputSeq == 0 || row.InputSeq > v.current:
		return row, nil, bad("order %d of inputSeq %d, applied are %d", row.Ref, row.InputSeq, v.current)
	case row.Side > matcher.Sell || row.Type > Market || row.TimeInForce > PostOnly ||
		row.Status > matcher.StatusRejected || row.Reason >= matcher.ReasonCount:
		return row, nil, bad("order %d: side %d, type %d, time in force %d, status %d, reason %d",
			row.Ref, row.Side, row.Type, row.TimeInForce, row.Status, row.Reason)
	case idLen > MaxClientID:
		return row, nil, bad("order %d: client id of %d bytes", row.Ref, idLen)
	}
	id = r.bytes(int(idLen))
	if !r.zeros(MaxClientID - int(idLen)) {
		return row, nil, bad("order %d: client id is not padded with zeros", row.Ref)
	}
	return row, id, nil
}

// openRestorer takes open orders ascending by reference and puts them on their levels.
func (v *Views) openRestorer() func(*imageReader) error {
	last := uint32(0)
	return func(r *imageReader) error {
		row, id, err := v.readOrder(r)
		if err != nil {
			return err
		}
		fresh := row.Status == matcher.StatusNew
		switch {
		case row.Ref <= last:
			return bad("open order %d after %d", row.Ref, last)
		case !row.Open() || row.Type != Limit || row.LimitPx <= 0 || row.TimeInForce == IOC ||
			row.TimeInForce == FOK:
			return bad("order %d cannot be open: %v %v %v at %d", row.Ref, row.Status, row.Type,
				row.TimeInForce, row.LimitPx)
		case row.Leaves < 1 || row.Leaves > row.Qty || fresh != (row.Leaves == row.Qty):
			return bad("open order %d, %v, has %d left of %d", row.Ref, row.Status, row.Leaves, row.Qty)
		case !v.registered(row.SecurityID) || v.accounts.find(row.AccountID) < 0:
			return bad("open order %d of account %d in security %d", row.Ref, row.AccountID, row.SecurityID)
		}
		last = row.Ref
		row.level = v.levels.add(row.SecurityID, row.Side, row.LimitPx, row.Leaves)
		v.insertRestored(&row, id)
		v.orders.open++
		return nil
	}
}

// insertRestored is orders.insert without raising the last reference, which the head has set: the
// orders of the image do not come in the order of their numbers.
func (v *Views) insertRestored(row *OrderRow, id []byte) uint32 {
	lastRef := v.orders.lastRef.Load()
	at := v.orders.insert(row, id)
	v.orders.lastRef.Release(lastRef)
	return at
}

// restoreRetained takes a terminal order behind the others, so that they are forgotten in the same
// order.
func (v *Views) restoreRetained(r *imageReader) error {
	row, id, err := v.readOrder(r)
	if err != nil {
		return err
	}
	if row.Open() || (row.Status == matcher.StatusFilled) != (row.Leaves == 0) &&
		row.Status != matcher.StatusRejected {
		return bad("retained order %d, %v, has %d left of %d", row.Ref, row.Status, row.Leaves, row.Qty)
	}
	v.orders.retire(v.insertRestored(&row, id))
	return nil
}

// keyRestorer takes keys in order of their first use, which is that of their commands.
func (v *Views) keyRestorer() func(*imageReader) error {
	last := uint64(0)
	return func(r *imageReader) error {
		row := KeyRow{Key: r.u64(), InputSeq: r.u64(), TermsHash: r.u64(), Ref: r.u64()}
		row.Kind, row.Reason = matcher.IdempotencyKind(r.u8()), matcher.RiskReason(r.u8())
		named, padded := r.u8(), r.zeros(1)
		row.ByAccount, row.AccountID = named == 1, r.u32()
		var other KeyRow
		switch {
		case !padded || named > 1 || named == 0 && row.AccountID != 0,
			row.Kind > matcher.KeyContract || row.Reason >= matcher.ReasonCount:
			return bad("key %016x: kind %d, reason %d, or padding that is not zero", row.Key, row.Kind,
				row.Reason)
		case row.Key == 0 || v.keys.read(family(row.Kind), row.Key, row.AccountID, &other):
			return bad("key %016x is none or there twice", row.Key)
		case row.InputSeq <= last || row.InputSeq > v.current:
			return bad("key %016x of inputSeq %d after %d, applied are %d", row.Key, row.InputSeq, last,
				v.current)
		}
		last = row.InputSeq
		v.keys.remember(&row)
		return nil
	}
}
