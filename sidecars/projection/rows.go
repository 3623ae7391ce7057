package projection

import (
	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// batch is the rows of one transaction. Its memory is reused; per batch only the text of the ids is
// new, in one allocation.
//
// It belongs to Step. The rows are valid until the next reset.
type batch struct {
	rows []store.Trade
	text []byte // the ids of the rows, one after the other, and their order ids
	// ends has two entries a row. 32 bits are enough: a row has at most some 40 bytes of text.
	ends  []uint32 // the index in text where each row's id and order id end
	date  datedMillis
	fills []matcher.Fill // of the rows
}

// datedMillis caches the last settlement date: fills of the same moment follow one another.
type datedMillis struct {
	millis int64
	by     *era // nil: nothing is cached
	date   store.Date
}

// reset forgets the rows and keeps their memory.
func (b *batch) reset() {
	b.rows, b.fills, b.text, b.ends = b.rows[:0], b.fills[:0], b.text[:0], b.ends[:0]
	b.date.by = nil // the calendar may have changed between two batches
}

// add appends the row of f, dated by an era. name sets the ids later.
//
// All rows of a batch have one bookedMillis, which is what store.Batch records.
func (b *batch) add(f *matcher.Fill, ticker string, by *era, bookedMillis int64) {
	if b.date.by != by || b.date.millis != f.TimeMillis {
		b.date = datedMillis{millis: f.TimeMillis, by: by, date: by.settles(f.TimeMillis)}
	}
	b.rows = append(b.rows, store.Trade{
		Seq: f.TradeSeq, AccountID: f.AccountID, Security: ticker, Side: f.Side,
		Quantity: int64(f.Qty), Price: f.Px, Status: store.Processing, SettlementDate: b.date.date,
		ExecutedAt: f.TimeMillis, BookedAt: bookedMillis, UpdatedAt: bookedMillis, Sequence: f.InputSeq,
	})
	b.text = matcher.AppendTradeID(b.text, f.TradeSeq)
	b.ends = append(b.ends, uint32(len(b.text)))
	if f.OrderRef != 0 { // a market trade has no order
		b.text = matcher.AppendOrderID(b.text, f.Order())
	}
	b.ends = append(b.ends, uint32(len(b.text)))
	b.fills = append(b.fills, *f)
}

// name sets the ids of the rows. They share one string.
//
// One long string is kept alive as long as any id of it, which is until the next batch.
func (b *batch) name() {
	text, from := string(b.text), uint32(0)
	for i := range b.rows {
		id, order := b.ends[2*i], b.ends[2*i+1]
		b.rows[i].ID, b.rows[i].OrderID = text[from:id], text[id:order]
		from = order
	}
}

// booked returns the record of the first rows of the batch, of which so many were new.
func (b *batch) booked(rows, inserted int) store.Batch {
	first, last := &b.rows[0], &b.rows[rows-1]
	return store.Batch{FirstSeq: first.Seq, LastSeq: last.Seq, BookedAt: first.BookedAt,
		Whole: inserted == rows}
}

// markOf is a digest of a fill that fits a cursor: 47 bits of FNV-1a over its
// fields, and below them the low 16 bits of its trade sequence.
//
// Every field counts, because two histories may differ in any of them. The top bit is clear, as a
// cursor's value is a signed number in the database.
func markOf(f *matcher.Fill) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, v := range [...]uint64{
		f.TradeSeq, f.InputSeq, uint64(f.TimeMillis), uint64(f.Px),
		uint64(f.OrderRef)<<32 | uint64(f.AccountID), uint64(f.SecurityID)<<32 | uint64(uint32(f.Qty)),
		uint64(f.CounterRef) | uint64(f.Era)<<32 | uint64(f.CounterEra)<<48,
		uint64(f.Side)<<16 | uint64(f.Flags),
	} {
		for range 8 {
			h = (h ^ v&0xff) * prime
			v >>= 8
		}
	}
	return h>>17<<16 | f.TradeSeq&0xffff
}

// marks reports whether a stored mark is that of a fill at tradeSeq.
//
// A cursor that was set by hand fails this with a chance of 65,535 in 65,536, and is then treated
// as one without a mark.
func marks(mark, tradeSeq uint64) bool {
	return mark != 0 && tradeSeq != 0 && mark&0xffff == tradeSeq&0xffff
}
