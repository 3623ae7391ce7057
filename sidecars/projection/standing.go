package projection

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Standing is how far a database knows the history, by the cursors of this package.
// Rows are not asked: one that was inserted by hand is reconciliation's to report.
type Standing struct {
	TradeSeq, InputSeq uint64
	mark               uint64
}

// ReadStanding reads it, 0 for a database that nothing was projected into yet.
func ReadStanding(tx *store.Tx) (s Standing, err error) {
	for _, c := range []struct {
		name string
		into *uint64
	}{{cursorTrades, &s.TradeSeq}, {cursorInput, &s.InputSeq}, {cursorMark, &s.mark}} {
		if *c.into, err = tx.Cursor(c.name); err != nil {
			return s, fmt.Errorf("projection: read cursors: %w", err)
		}
	}
	if s.TradeSeq == 0 {
		s.InputSeq = 0
	}
	return s, nil
}

// Of reports whether f, the fill at TradeSeq, is the one that was booked. A cursor that
// was set by hand is of any history.
func (s Standing) Of(f *matcher.Fill) bool {
	return !marks(s.mark, s.TradeSeq) || markOf(f) == s.mark
}

// voidBase is the first trade sequence of rows that were given up: no history gets there.
const voidBase = 1<<62 + 1

// GivenUp says what GiveUp did.
type GivenUp struct {
	Kept uint64 // the last trade sequence that the journal and the table have in common
	Rows int64  // rows moved aside
}

// GiveUp is what an operator's acceptance of an older journal means for the table: the
// rows that the journal, which ends at head, does not have are moved aside, under ids of
// their own (void-<run>-trd-N) and trade sequences behind every history, where the orphan
// sweep reports them; and the projection goes on behind the last one that both have. The
// ids are then free for what the journal will issue. also does its part in the same
// transaction, for what others keep about the rows behind kept. With nothing in common it
// is ErrForeign, unless the journal is empty, and nothing is changed.
func GiveUp(ctx context.Context, db *store.DB, source Source, head uint64,
	also func(tx *store.Tx, kept uint64) error) (done GivenUp, err error) {
	var at Standing
	err = db.Read(ctx, func(tx *store.Tx) (err error) { at, err = ReadStanding(tx); return err })
	if err != nil {
		return done, err
	}
	kept, err := common(ctx, db, source, min(head, at.TradeSeq))
	if err != nil {
		return done, err
	}
	done.Kept = kept.TradeSeq
	err = db.Write(ctx, func(tx *store.Tx) error {
		if _, err := tx.HoldCursor(cursorTrades); err != nil {
			return err
		}
		base := int64(voidBase)
		last := "select coalesce(max(trade_seq), 0) from trades where id like 'void-%'"
		err := tx.Query(last, func(r *store.Row) error {
			base = max(base, r.Int64(0)+1)
			return nil
		})
		if err != nil {
			return err
		}
		done.Rows, err = tx.Exec("update trades set id = $1 || id, trade_seq = trade_seq - $2 + $3 "+
			"where trade_seq > $4 and trade_seq < $5 and id = 'trd-' || cast(trade_seq as text)",
			"void-"+strconv.FormatInt(base-voidBase, 10)+"-",
			kept.TradeSeq, base, kept.TradeSeq, int64(voidBase))
		if err != nil {
			return err
		}
		at := store.Cursor{Name: cursorMark}
		if kept.TradeSeq > 0 {
			at.Value = markOf(&kept)
		}
		err = tx.SetCursors(store.Cursor{Name: cursorTrades, Value: kept.TradeSeq},
			store.Cursor{Name: cursorInput, Value: max(kept.InputSeq, 1) - 1}, at)
		if err != nil {
			return err
		}
		return also(tx, kept.TradeSeq)
	})
	if err != nil {
		return GivenUp{}, fmt.Errorf("projection: give up rows behind tradeSeq=%d: %w",
			kept.TradeSeq, err)
	}
	return done, nil
}

// commonPage is how many rows are compared at a time, from the head downwards.
const commonPage = 1024

// common is the last fill up to head that table and journal have both; TradeSeq 0 when
// the journal has none.
func common(ctx context.Context, db *store.DB, source Source, head uint64) (matcher.Fill, error) {
	top, seen := head, false
	for top > 0 {
		rows := map[uint64]store.Trade{}
		low := top - min(top, commonPage) + 1
		err := db.Read(ctx, func(tx *store.Tx) error {
			clear(rows)
			page := store.TradeFilter{AfterSeq: low - 1, Limit: commonPage}
			return tx.Trades(page, func(t *store.Trade) error {
				if t.Seq <= top {
					rows[t.Seq] = *t
				}
				return nil
			})
		})
		if err != nil {
			return matcher.Fill{}, fmt.Errorf("projection: read rows from=%d: %w", low, err)
		}
		var last matcher.Fill
		if len(rows) > 0 {
			seen = true
			if last, err = lastAgreed(source, rows, low, top); err != nil || last.TradeSeq > 0 {
				return last, err
			}
		}
		top = low - 1
	}
	if head > 0 && seen {
		return matcher.Fill{}, fmt.Errorf("projection: no row up to tradeSeq=%d is of this journal: %w",
			head, ErrForeign)
	}
	return matcher.Fill{}, nil
}

// lastAgreed is the last fill of a range whose row says the same.
func lastAgreed(source Source, rows map[uint64]store.Trade,
	low, top uint64) (last matcher.Fill, err error) {
	err = source.Fills(low, func(fills []matcher.Fill) error {
		for i := range fills {
			f := &fills[i]
			if f.TradeSeq > top {
				return errEnough
			}
			if t, ok := rows[f.TradeSeq]; ok && says(&t, f) {
				last = *f
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return last, fmt.Errorf("projection: read fills from=%d: %w", low, err)
	}
	return last, nil
}

// says reports whether a row is of a fill. One that came as a message knows no sequence.
func says(t *store.Trade, f *matcher.Fill) bool {
	return t.AccountID == f.AccountID && t.Side == f.Side && t.Quantity == int64(f.Qty) &&
		t.Price == f.Px && t.ExecutedAt == f.TimeMillis && (t.Sequence == 0 || t.Sequence == f.InputSeq)
}
