package recon

import (
	"slices"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// hasFill reports whether the break is of an entry of the journal.
func (b *Break) hasFill() bool { return b.Class == MissingInProjection || b.Class == FieldMismatch }

// detailsOf is the part of a row that a Trade does not hold.
func detailsOf(t *store.Trade) *Details {
	return &Details{Status: t.Status.String(), SettlementDate: t.SettlementDate, OrderID: t.OrderID,
		Sequence: t.Sequence, BookedMillis: t.BookedAt, UpdatedMillis: t.UpdatedAt}
}

// expectation is what the database's own records say of the row of an entry.
//
// It is kept for each break of a page, because the page of the rulebook is gone when the fills are
// read.
type expectation struct {
	eras   []era
	booked int64 // 0: not known
}

// of returns what the row of a fill should hold beside the trade. Its status is known where it was
// compared: the two statuses are each other's opposite.
//
// UpdatedMillis stays 0: no record but the row says when a trade was settled.
func (e expectation) of(f *matcher.Fill, b *Break) *Details {
	details := &Details{SettlementDate: store.NoDate, OrderID: orderIDOf(f), Sequence: f.InputSeq,
		BookedMillis: e.booked}
	book := rulebook{eras: e.eras}
	if day, known := book.due(f, e.booked); known {
		details.SettlementDate = day
	}
	if b.ProjectionDetails == nil {
		return details
	}
	details.Status = b.ProjectionDetails.Status
	if slices.Contains(b.Fields, fieldStatus.names()[0]) {
		if details.Status = store.Settled.String(); details.Status == b.ProjectionDetails.Status {
			details.Status = store.Processing.String()
		}
	}
	return details
}

// orderIDOf is the id of a fill's order; "" for a trade without one.
func orderIDOf(f *matcher.Fill) string {
	if n := f.Order(); n != 0 {
		return matcher.OrderID(n)
	}
	return ""
}

// readRows adds the rows of the breaks as they are now, and what the database knows of the rows
// that the fills should have. Neighbouring ones are read together.
//
// A booking from outside has no more than what its break already shows.
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
				items[0].ProjectionDetails = detailsOf(&row)
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
	left := items
	return tx.TradesBySeq(run.lo, run.hi, func(t *store.Trade) error {
		for len(left) > 0 && left[0].TradeSeq < t.Seq {
			left = left[1:]
		}
		// A row that has changed since it was judged is shown as it was judged.
		if len(left) > 0 && left[0].TradeSeq == t.Seq && ownID(t.ID, t.Seq) &&
			*left[0].Projection == tradeOf(t) {
			left[0].ProjectionDetails = detailsOf(t)
		}
		return nil
	})
}
