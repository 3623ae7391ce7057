package projection

import (
	"fmt"

	"posttrade/sidecars/store"
)

// agreeRows is how many of the newest rows are compared when the cursor was set by hand. They
// decide whether a database without a mark belongs to this journal.
const agreeRows = 64

// Origin returns the digest of trade 1, by which the database recognises this history; 0 while
// there is no trade. Any goroutine may call it.
//
// The first call after trade 1 reads the journal; the value then never changes, and later calls
// cost an atomic load. Two goroutines that read at once store the same value.
func (p *Projection) Origin() (uint64, error) {
	if origin := p.origin.Load(); origin != 0 {
		return origin, nil
	}
	if _, head := p.o.Journal.Head(); head == 0 {
		return 0, nil
	}
	f, err := p.fill(1)
	if err != nil {
		return 0, err
	}
	p.origin.Store(markOf(&f))
	return p.origin.Load(), nil
}

// Foreign reports whether a step has found that the rows belong to another history. A copy of the
// journal that went on elsewhere has the genesis record and the first trade of this one, and
// differs later. The value stays true until the process ends, because Run has ended. Any goroutine
// may call it.
func (p *Projection) Foreign() bool { return p.foreign.Load() }

// Agrees checks whether the content of a database can come from this history: its cursor is not
// ahead of the journal, and the fill at the cursor is the one that was booked there. Where the
// cursor does not identify that fill the newest rows decide. The error is ErrAhead or ErrForeign
// when the check fails.
//
// store.HistoryBinding.Agrees calls it, in the transaction that would mark the database. An empty
// database agrees with every journal. Any goroutine.
func (p *Projection) Agrees(tx *store.Tx) error {
	at, err := tx.Cursor(cursorTrades)
	if err != nil {
		return err
	}
	mark, err := tx.Cursor(cursorMark)
	if err != nil {
		return err
	}
	if at == 0 {
		return nil
	}
	_, head := p.o.Journal.Head()
	if at > head {
		return fmt.Errorf("projection: cursor=%d head=%d: %w", at, head, ErrAhead)
	}
	f, err := p.fill(at)
	if err != nil {
		return err
	}
	if marks(mark, at) {
		if markOf(&f) != mark {
			return fmt.Errorf("projection: the fill at cursor=%d is not the one that was booked: %w",
				at, ErrForeign)
		}
		return nil
	}
	return p.newestAgree(tx, at)
}

// newestAgree compares the newest rows up to at with their fills. An operator may have edited some
// rows, which is for reconciliation to report: the majority decides.
//
// It reads at most agreeRows rows and as many fills. Without a row of that range nothing speaks
// against the database.
func (p *Projection) newestAgree(tx *store.Tx, at uint64) error {
	same, other := 0, 0
	err := tx.TradesBySeq(at-min(at, agreeRows)+1, at, func(row *store.Trade) error {
		f, err := p.fill(row.Seq)
		if err != nil {
			return err
		}
		if row.AccountID == f.AccountID && row.Quantity == int64(f.Qty) && row.Price == f.Px &&
			row.ExecutedAt == f.TimeMillis {
			same++
		} else {
			other++
		}
		return nil
	})
	if err == nil && other > same {
		err = fmt.Errorf(
			"projection: of the newest rows %d are those of the journal's fills, %d are not: %w",
			same, other, ErrForeign)
	}
	return err
}
