package recon

import (
	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// fieldSet is the set of fields in which a row differs from its fill. It is stored, so the bits
// keep their meaning.
//
// The view breaks_v and the table recon_mismatches use the same bits: new ones go to the end.
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
//
// seq is its trade_seq, whether or not that is an entry of the history.
type row struct {
	seq   uint64
	owned bool // its id is that of its trade_seq
	trade Trade
	settled
}

// idBytes is room for the longest id of a trade sequence.
const idBytes = 24

// ownID reports whether id is the id of the trade sequence, without building one.
func ownID(id string, tradeSeq uint64) bool {
	var room [idBytes]byte
	return string(matcher.AppendTradeID(room[:0], tradeSeq)) == id
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
//
// It sets only the six bits of a Trade. The others come from settled.differing.
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

// mismatch is an entry whose row differs, with the row as it was read.
//
// fields is never empty. firstSeen and lastMillis are epoch milliseconds; lastMillis is the last
// time that the row or its fields were found changed.
type mismatch struct {
	seq                   uint64
	fields                fieldSet
	row                   Trade
	firstSeen, lastMillis int64
}

// findings are the result of comparing the entries of a span. An entry that is in neither list
// matched.
//
// They hold for the snapshot that was read. The span shrinks when a chunk ends early.
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

// merge compares rows with the fills of the same entries. The fills come in order and without a
// hole. Their source chooses the number of calls of take.
//
// rows and fills are both ascending, so one pass over each is enough. Rows that are not owned are
// passed over: they belong to no entry.
type merge struct {
	rows   []row
	ticker func(securityID uint32) string
	book   *rulebook
	out    *findings
}

// take is a reader's function. It returns nil always.
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
