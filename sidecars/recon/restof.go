package recon

import (
	"slices"
	"strconv"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// hasFill reports whether the break is of an entry of the journal.
func (b *Break) hasFill() bool { return b.Class == MissingInProjection || b.Class == FieldMismatch }

// restOf is the part of a row that a Trade does not hold.
func restOf(t *store.Trade) *Rest {
	return &Rest{Status: t.Status.String(), SettlementDate: t.SettlementDate, OrderID: t.OrderID,
		Sequence: t.Sequence, BookedMillis: t.BookedAt, UpdatedMillis: t.UpdatedAt}
}

// expectation is what the database's own records say of the row of an entry.
type expectation struct {
	eras   []era
	booked int64 // 0: not known
}

// of returns what the row of a fill should hold beside the trade. Its status is known where it was
// compared: the two statuses are each other's opposite.
func (e expectation) of(f *matcher.Fill, b *Break) *Rest {
	rest := &Rest{SettlementDate: store.NoDate, OrderID: orderIDOf(f), Sequence: f.InputSeq,
		BookedMillis: e.booked}
	book := rulebook{eras: e.eras}
	if day, known := book.due(f, e.booked); known {
		rest.SettlementDate = day
	}
	if b.ProjectionRest == nil {
		return rest
	}
	rest.Status = b.ProjectionRest.Status
	if slices.Contains(b.Fields, fieldStatus.names()[0]) {
		if rest.Status = store.Settled.String(); rest.Status == b.ProjectionRest.Status {
			rest.Status = store.Processing.String()
		}
	}
	return rest
}

// orderIDOf is the id of a fill's order; "" for a trade without one.
func orderIDOf(f *matcher.Fill) string {
	if n := f.Order(); n != 0 {
		return "ord-" + strconv.FormatUint(n, 10)
	}
	return ""
}

// readRows adds the rows of the breaks as they are now, and what the database knows of the rows
// that the fills should have. Neighbouring ones are read together.
func (l *list) readRows(tx *store.Tx) error {
	book, err := l.r.readRules(tx)
	if err != nil {
		return err
	}
	for items := l.items; len(items) > 0; {
		if items[0].Class == OrphanInProjection {
			row, found, err := tx.Trade(items[0].TradeID)
			if err != nil {
				return err
			}
			if found {
				items[0].ProjectionRest = restOf(&row)
			}
		}
		n := 1
		if items[0].hasFill() {
			for n < len(items) && items[n].Class == items[0].Class &&
				items[n].TradeSeq-items[n-1].TradeSeq <= l.r.bounds.near {
				n++
			}
			if err := l.readRun(tx, &book, items[:n]); err != nil {
				return err
			}
		}
		items = items[n:]
	}
	return nil
}

// readRun does that for a run of entries of one class.
func (l *list) readRun(tx *store.Tx, book *rulebook, items []Break) error {
	run := span{items[0].TradeSeq, items[len(items)-1].TradeSeq}
	if err := book.readPage(tx, run); err != nil {
		return err
	}
	for i := range items {
		_, booked := book.booked(items[i].TradeSeq, 0)
		l.books[items[i].TradeSeq] = expectation{book.eras, booked}
	}
	if items[0].Class == MissingInProjection {
		return nil
	}
	rest := items
	return tx.TradesBySeq(run.lo, run.hi, func(t *store.Trade) error {
		for len(rest) > 0 && rest[0].TradeSeq < t.Seq {
			rest = rest[1:]
		}
		// A row that has changed since it was judged is shown as it was judged.
		if len(rest) > 0 && rest[0].TradeSeq == t.Seq && ownID(t.ID, t.Seq) &&
			*rest[0].Projection == tradeOf(t) {
			rest[0].ProjectionRest = restOf(t)
		}
		return nil
	})
}
