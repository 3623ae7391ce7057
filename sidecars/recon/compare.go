package recon

import (
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// fieldSet is the set of fields in which a row differs from its fill. It is stored, so the bits
// keep their meaning.
type fieldSet uint16

const (
	fieldAccount fieldSet = 1 << iota
	fieldSecurity
	fieldSide
	fieldQuantity
	fieldPrice
	fieldTimestamp
	fieldSettlementDate
	fieldStatus
	fieldOrder
	fieldSequence
	fieldBookedAt
	fieldUpdatedAt
)

// fieldNames are the names of the bits, lowest first.
var fieldNames = [...]string{"account", "security", "side", "quantity", "price", "timestamp",
	"settlementDate", "status", "orderId", "sequence", "bookedAt", "updatedAt"}

// names lists the fields that differ.
func (s fieldSet) names() []string {
	var out []string
	for i, name := range fieldNames {
		if s>>i&1 != 0 {
			out = append(out, name)
		}
	}
	return out
}

// row is a trade row with only what is compared.
type row struct {
	seq   uint64
	owned bool // its id is that of its trade_seq
	trade Trade
	settled
}

// idBytes is room for the longest id of a trade sequence.
const idBytes = 24

// appendID appends the id of the row of a trade sequence.
func appendID(b []byte, tradeSeq uint64) []byte {
	return strconv.AppendUint(append(b, "trd-"...), tradeSeq, 10)
}

// ownID reports whether id is the id of the trade sequence, without building one.
func ownID(id string, tradeSeq uint64) bool {
	var room [idBytes]byte
	return string(appendID(room[:0], tradeSeq)) == id
}

// tradeOf returns the part of a row that is compared.
func tradeOf(t *store.Trade) Trade {
	return Trade{
		AccountID: t.AccountID, Security: t.Security, Side: t.Side,
		Quantity: t.Quantity, Price: t.Price, TimeMillis: t.ExecutedAt,
	}
}

// tradeOfFill is the required content of the row of a fill.
func tradeOfFill(f *matcher.Fill, ticker string) Trade {
	return Trade{
		AccountID: f.AccountID, Security: ticker, Side: f.Side,
		Quantity: int64(f.Qty), Price: f.Px, TimeMillis: f.TimeMillis,
	}
}

// differing returns the fields in which a and b differ.
func differing(a, b *Trade) (s fieldSet) {
	if a.AccountID != b.AccountID {
		s |= fieldAccount
	}
	if a.Security != b.Security {
		s |= fieldSecurity
	}
	if a.Side != b.Side {
		s |= fieldSide
	}
	if a.Quantity != b.Quantity {
		s |= fieldQuantity
	}
	if a.Price != b.Price {
		s |= fieldPrice
	}
	if a.TimeMillis != b.TimeMillis {
		s |= fieldTimestamp
	}
	return s
}

// span is a range of trade sequences, both ends inclusive.
type span struct{ lo, hi uint64 }

func (s span) count() uint64 { return s.hi - s.lo + 1 }

// mismatch is an entry whose row differs, with the row as it was read.
type mismatch struct {
	seq                   uint64
	fields                fieldSet
	row                   Trade
	firstSeen, lastMillis int64
}

// findings are the result of comparing the entries of a span. An entry that is in neither list
// matched.
type findings struct {
	span
	absent  []span     // maximal runs of entries without a row, ascending
	differs []mismatch // ascending; without times
}

// size is the number of findings, for the budget of a chunk.
func (f *findings) size() int { return len(f.absent) + len(f.differs) }

// noteAbsent appends a run of entries without a row.
func (f *findings) noteAbsent(s span) {
	if n := len(f.absent); n > 0 && f.absent[n-1].hi+1 == s.lo {
		f.absent[n-1].hi = s.hi
		return
	}
	f.absent = append(f.absent, s)
}

// notePage adds the absent entries of page. rows are all its rows, in order. A row whose id is not
// its own belongs to no entry.
func (f *findings) notePage(page span, rows []row) {
	next := page.lo
	for i := range rows {
		if !rows[i].owned {
			continue
		}
		if rows[i].seq > next {
			f.noteAbsent(span{next, rows[i].seq - 1})
		}
		next = rows[i].seq + 1
	}
	if next <= page.hi {
		f.noteAbsent(span{next, page.hi})
	}
}

// farApart is the number of entries without a row between two rows from which on their fills are
// read separately.
const farApart = 4096

// keep removes the findings about entries above last, and reports whether any entry remains.
func (f *findings) keep(last uint64) bool {
	if f.hi = min(f.hi, last); f.hi < f.lo {
		return false
	}
	for n := len(f.absent); n > 0 && f.absent[n-1].hi > last; n-- {
		if f.absent[n-1].lo <= last {
			f.absent[n-1].hi = last
			break
		}
		f.absent = f.absent[:n-1]
	}
	for n := len(f.differs); n > 0 && f.differs[n-1].seq > last; n-- {
		f.differs = f.differs[:n-1]
	}
	return true
}

// runs splits the owned rows of a page where they are far apart, so that the
// fills of a wide range without rows are not read.
func runs(rows []row, each func(run []row) error) error {
	for len(rows) > 0 {
		end := 1
		for end < len(rows) && rows[end].seq-rows[end-1].seq <= farApart {
			end++
		}
		if err := each(rows[:end]); err != nil {
			return err
		}
		rows = rows[end:]
	}
	return nil
}

// merge compares rows with the fills of the same entries. The fills come in order and without a
// hole. Their source chooses the number of calls of take.
type merge struct {
	rows   []row
	ticker func(securityID uint32) string
	book   *rulebook
	out    *findings
}

func (m *merge) take(fills []matcher.Fill) error {
	for i := range fills {
		for len(m.rows) > 0 && m.rows[0].seq < fills[i].TradeSeq {
			m.rows = m.rows[1:]
		}
		if len(m.rows) == 0 {
			break
		}
		if at := &m.rows[0]; at.seq == fills[i].TradeSeq && at.owned {
			want := tradeOfFill(&fills[i], m.ticker(fills[i].SecurityID))
			if s := differing(&at.trade, &want) | at.differing(&fills[i], m.book); s != 0 {
				m.out.differs = append(m.out.differs, mismatch{seq: at.seq, fields: s, row: at.trade})
			}
		}
	}
	return nil
}

// overlap counts the numbers that are in both of two lists of ascending, disjoint spans.
func overlap(a, b []span) (count uint64) {
	for len(a) > 0 && len(b) > 0 {
		if lo, hi := max(a[0].lo, b[0].lo), min(a[0].hi, b[0].hi); lo <= hi {
			count += hi - lo + 1
		}
		if a[0].hi < b[0].hi {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return count
}

// total counts the numbers in disjoint spans.
func total(spans []span) (count uint64) {
	for _, s := range spans {
		count += s.count()
	}
	return count
}

// ascending sorts disjoint spans.
func ascending(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.lo < b.lo {
			return -1
		}
		return 1
	})
	return spans
}
