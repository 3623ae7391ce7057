package blotter

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// The image is a file of its own beside the engine's snapshot. It holds all data of the views that
// the snapshot does not hold. Little endian:
//
//	magic "PTVIEWS\n", version u32, zero u32
//	sections 1 to 11 in order, each
//	    id u32, width of a record u32, count u64, records, CRC-32C of all that u32
//
//	1 HEAD       applied, tradeSeq, lastRef u64; SHA-256 of the genesis record; capacities in
//	             force: accounts, securities, contracts u64; in version 5, where the room for orders
//	             was raised: open orders, retained orders, keys u64
//	2 POLICY     version, kill, maxPosition, maxConcentration i64
//	3 ACCOUNT    id, flags u32 (enabled, set by hand); version i64; in order of appearance
//	4 SECURITY   flags u64 (known, enabled, halted, restricted, enabled and halted set by hand);
//	             version, market price, its time, last fill's price i64; ticker [32]; by id from 1
//	5 POSITION   account, security u32; quantity, average cost i64; by order of account, security
//	6 OPEN       order, ascending by reference
//	7 RETAINED   order, in order of eviction
//	8 KEY        key, inputSeq, terms hash, reference u64; kind, reason, by account u8; zero u8;
//	             account u32, zero when not by account; in order of eviction
//	9 SOURCE     mark u32, zero u32; watermark i64; accounts, then securities
//	10 CONTRACT  contract, ascending by id
//	11 END       no records
//
//	order        ref, account, security u32; qty, leaves, last qty i32; inputSeq u64; created,
//	             updated, limit, last price i64; side, type, time in force, status, reason,
//	             length of the client id u8; era u16; client id [64], zero padded
//	contract     id u64; created, fixed rate i64; account u32; notional i32; convention, effective
//	             day, maturity day, expiry day u32; side, product (0 swap, 1 swaption), style, length
//	             of the client id u8; client id [64], zero padded
//
// The image has no levels: they are the sums of the open orders.
const (
	// The version rises when the layout changes. An image of an unknown version is not read: the views
	// are rebuilt.
	imageMagic   = "PTVIEWS\n"
	imageVersion = 4
	imageHeader  = 16

	// imageVersionRoom is the version of images in which the room for orders was raised.
	imageVersionRoom = 5
)

// section describes one section of the image: its id, its name in errors, and the bytes of a
// record.
type section struct {
	id    uint32
	name  string
	width int
}

var (
	headSection     = section{1, "head", 80}
	headSectionRoom = section{1, "head", 104}
	policySection   = section{2, "policy", 32}
	accountSection  = section{3, "account", 16}
	securitySection = section{4, "security", 72}
	positionSection = section{5, "position", 24}
	openSection     = section{6, "open order", 136}
	retainedSection = section{7, "retained order", 136}
	keySection      = section{8, "key", 40}
	sourceSection   = section{9, "source", 16}
	contractSection = section{10, "contract", 116}
	endSection      = section{11, "end", 0}
)

// ErrMidCommand reports that WriteTo was called between two events of one command.
var ErrMidCommand = errors.New("a command's events are not all in")

// castagnoli is CRC-32C, for which processors have an instruction: of the image's sections and of
// the index's blocks.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// imageWriter writes sections; the first error sticks, so WriteTo tests it once, at the end. The
// number methods append to the record being built and return the writer, so that a record reads as
// one chain that ends with flush.
type imageWriter struct {
	out     *bufio.Writer
	crc     uint32
	written int64
	err     error
	record  []byte // the record being built
}

func newImageWriter(out io.Writer) *imageWriter {
	return &imageWriter{out: bufio.NewWriterSize(out, 1<<16)}
}

// write adds bytes to the stream and to the section's checksum; after an error it does nothing.
func (w *imageWriter) write(b []byte) {
	if w.err != nil {
		return
	}
	n, err := w.out.Write(b)
	w.written += int64(n)
	w.crc = crc32.Update(w.crc, castagnoli, b)
	w.err = err
}

// begin writes a section's head; exactly count records follow, each of the section's width.
func (w *imageWriter) begin(s section, count int) {
	w.crc = 0
	w.u32(s.id).u32(uint32(s.width)).u64(uint64(count)).flush()
}

// end writes the section's checksum, which covers its head and its records.
func (w *imageWriter) end() { w.u32(w.crc).flush() }

func (w *imageWriter) u8(n uint8) *imageWriter {
	w.record = append(w.record, n)
	return w
}

func (w *imageWriter) u32(n uint32) *imageWriter {
	w.record = binary.LittleEndian.AppendUint32(w.record, n)
	return w
}

func (w *imageWriter) u64(n uint64) *imageWriter {
	w.record = binary.LittleEndian.AppendUint64(w.record, n)
	return w
}

func (w *imageWriter) i64(n int64) *imageWriter { return w.u64(uint64(n)) }

func (w *imageWriter) bytes(b []byte) *imageWriter {
	w.record = append(w.record, b...)
	return w
}

// flush ends a record.
func (w *imageWriter) flush() {
	w.write(w.record)
	w.record = w.record[:0]
}

// WriteTo writes the image of the views as they are after the last command, and returns the bytes
// written. Two views that observed the same events write the same bytes. It implements io.WriterTo.
//
// Errors: ErrMidCommand, or the error of out. Observer's goroutine only. The cost follows the rows,
// with a sort of the open orders.
func (v *Views) WriteTo(out io.Writer) (int64, error) {
	if v.current != v.Applied() {
		return 0, fmt.Errorf("blotter: write image inputSeq=%d: %w", v.current, ErrMidCommand)
	}
	w := newImageWriter(out)
	c := v.Capacities()
	version, head := uint32(imageVersion), headSection
	if c.OrderRoom != v.created {
		version, head = imageVersionRoom, headSectionRoom
	}
	w.bytes([]byte(imageMagic)).u32(version).u32(0).flush()

	w.begin(head, 1)
	w.u64(v.current).u64(v.tradeSeq).i64(v.orders.lastRef.Load()).bytes(v.genesis[:])
	w.u64(uint64(c.Accounts)).u64(uint64(c.Securities)).u64(uint64(c.Contracts))
	if version == imageVersionRoom {
		w.u64(uint64(c.Open)).u64(uint64(c.Retained)).u64(uint64(c.Keys))
	}
	w.flush()
	w.end()
	p := &v.policy.row
	w.begin(policySection, 1)
	w.i64(p.version).i64(p.kill).i64(p.maxPosition).i64(p.maxConcentration).flush()
	w.end()
	v.writeControls(w)
	v.writeOrders(w)
	w.begin(keySection, v.keys.count)
	for i := range v.keys.count {
		k := v.keys.oldest(i)
		w.u64(k.Key).u64(k.InputSeq).u64(k.TermsHash).u64(k.Ref)
		w.u8(uint8(k.Kind)).u8(uint8(k.Reason)).u8(flagByte(k.ByAccount)).u8(0).u32(k.AccountID).flush()
	}
	w.end()
	w.begin(sourceSection, controlSources)
	for s := range ControlSource(controlSources) {
		m := v.SourceMark(s)
		w.u32(m.Mark).u32(0).i64(m.Watermark).flush()
	}
	w.end()
	v.writeContracts(w)
	w.begin(endSection, 0)
	w.end()
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err != nil {
		return w.written, fmt.Errorf("blotter: write image: %w", w.err)
	}
	return w.written, nil
}

// writeControls writes the sections ACCOUNT, SECURITY and POSITION. Each account knows in how many
// securities it ever had a fill, so the walk over its row of positions ends with the last one.
func (v *Views) writeControls(w *imageWriter) {
	accounts := v.accounts.slots[:v.accounts.count.Load()]
	held := 0
	w.begin(accountSection, len(accounts))
	for i := range accounts {
		a := &accounts[i].row
		w.u32(a.id).u32(a.flags).i64(a.version).flush()
		held += int(a.held)
	}
	w.end()
	securities := v.securities.slots[:v.securities.count.Load()]
	w.begin(securitySection, len(securities))
	for i := range securities {
		s := &securities[i].row
		w.u64(s.flags).i64(s.version).i64(s.market).i64(s.marketTime).i64(s.traded)
		w.bytes(s.ticker[:]).flush()
	}
	w.end()
	w.begin(positionSection, held)
	for i := range accounts {
		left := accounts[i].row.held
		for security := uint32(1); left > 0; security++ {
			if p := &v.positions.at(i, security).row; p.used != 0 {
				w.u32(accounts[i].row.id).u32(security).i64(p.qty).i64(p.cost).flush()
				left--
			}
		}
	}
	w.end()
}

// writeContracts writes the section CONTRACT.
func (v *Views) writeContracts(w *imageWriter) {
	rows := v.contracts.rows[:v.contracts.count.Load()]
	w.begin(contractSection, len(rows))
	for i := range rows {
		r := &rows[i]
		product := uint8(0)
		if r.Swaption {
			product = 1
		}
		w.u64(r.ID).i64(r.CreatedMillis).i64(r.FixedRate).u32(r.AccountID).u32(uint32(r.Notional))
		w.u32(r.Convention).u32(uint32(r.Effective)).u32(uint32(r.Maturity)).u32(uint32(r.Expiry))
		w.u8(uint8(r.Side)).u8(product).u8(uint8(r.Style)).u8(r.idLen)
		w.bytes(r.ClientID()).bytes(make([]byte, MaxClientID-int(r.idLen))).flush()
	}
	w.end()
}

// writeOrders writes the sections OPEN and RETAINED.
func (v *Views) writeOrders(w *imageWriter) {
	o := &v.orders
	open := make([]uint64, 0, o.open) // ref << 32 | slot
	for at := uint32(1); at <= o.top; at++ {
		if row := &o.slots[at].row; row.Ref != 0 && row.Open() {
			open = append(open, uint64(row.Ref)<<32|uint64(at))
		}
	}
	slices.Sort(open)
	w.begin(openSection, len(open))
	for _, word := range open {
		w.order(&o.slots[uint32(word)].row)
	}
	w.end()
	w.begin(retainedSection, o.kept)
	for i := range o.kept {
		w.order(&o.slots[o.retainedAt(i)].row)
	}
	w.end()
}

// order writes one order. The client id is padded with zeros, because the bytes behind it in the
// row are those of an earlier order.
func (w *imageWriter) order(r *OrderRow) {
	w.u32(r.Ref).u32(r.AccountID).u32(r.SecurityID)
	w.u32(uint32(r.Qty)).u32(uint32(r.Leaves)).u32(uint32(r.LastQty)).u64(r.InputSeq)
	w.i64(r.CreatedMillis).i64(r.UpdatedMillis).i64(r.LimitPx).i64(r.LastPx)
	w.u8(uint8(r.Side)).u8(uint8(r.Type)).u8(uint8(r.TimeInForce)).u8(uint8(r.Status))
	w.u8(uint8(r.Reason)).u8(r.idLen).u8(uint8(r.Era)).u8(uint8(r.Era >> 8))
	w.bytes(r.ClientID()).bytes(make([]byte, MaxClientID-int(r.idLen))).flush()
}

// retainedAt is the slot of the i-th oldest terminal order.
func (o *orders) retainedAt(i int) uint32 { return o.retained[(o.oldest+i)%len(o.retained)] }

func flagByte(set bool) uint8 {
	if set {
		return 1
	}
	return 0
}

// oldest is the row of the i-th oldest key.
func (k *keys) oldest(i int) *KeyRow {
	capacity := len(k.slots) - 1
	at := (int(k.next) - 1 + capacity - k.count + i) % capacity
	return &k.slots[at+1].row
}
