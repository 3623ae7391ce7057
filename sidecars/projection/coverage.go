package projection

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// Coverage is how much of the history a database holds, according to the cursors of this package.
// Rows are not read: reconciliation reports a row that was inserted by hand.
//
// mark is that of the fill at TradeSeq, 0 for none.
type Coverage struct {
	TradeSeq, InputSeq uint64
	mark               uint64
}

// ReadCoverage reads the Coverage of a database; it is zero when nothing was projected yet.
func ReadCoverage(tx *store.Tx) (s Coverage, err error) {
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

// Of reports whether f, the fill at TradeSeq, is the one that was booked. A cursor that was set by
// hand matches any history.
//
// The caller has read f at TradeSeq; another fill gives false.
func (s Coverage) Of(f *matcher.Fill) bool {
	return !marks(s.mark, s.TradeSeq) || markOf(f) == s.mark
}

// GiveUpResult is the result of GiveUp.
//
// Rows counts those of the table trades only, without what also changed.
type GiveUpResult struct {
	Kept uint64 // the last trade sequence that both the journal and the table have
	Rows int64  // rows moved aside
}

// GiveUp changes the table when an operator accepts an older journal, which ends at head. It moves
// the rows that the journal does not have aside: to ids of their own (void-<run>-trd-N) and to
// trade sequences above every history, where the orphan sweep reports them. The projection goes on
// after the last row that both have. The ids are then free for the trades that the journal will
// issue. What is noted about the former trades of these ids ends: settlements by hand are removed,
// because a note of one settles the row of its trade sequence, and all rules of settlement dates
// are in force from kept+1 on at the latest, of which the last one counts. also runs in the same
// transaction, for the records that other packages keep about the rows above kept. When journal and
// table have nothing in common, GiveUp returns ErrForeign and changes nothing, unless the journal
// is empty.
//
// GiveUp may be repeated after an error: it then finds what is left to move. Each run has names of
// its own, so rows of an earlier run stay apart.
func GiveUp(ctx context.Context, db *store.DB, j Journal, head uint64,
	also func(tx *store.Tx, kept uint64) error) (done GiveUpResult, err error) {
	var at Coverage
	err = db.Read(ctx, func(tx *store.Tx) (err error) { at, err = ReadCoverage(tx); return err })
	if err != nil {
		return done, err
	}
	kept, err := common(ctx, db, j, min(head, at.TradeSeq))
	if err != nil {
		return done, err
	}
	done.Kept = kept.TradeSeq
	err = db.Write(ctx, func(tx *store.Tx) error {
		if err := tx.Unlimited(); err != nil { // the rows may be many
			return err
		}
		if _, err := tx.HoldCursor(cursorTrades); err != nil {
			return err
		}
		base := int64(store.FirstVoid)
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
			"void-"+strconv.FormatInt(base-int64(store.FirstVoid), 10)+"-",
			kept.TradeSeq, base, kept.TradeSeq, int64(store.FirstVoid))
		if err != nil {
			return err
		}
		_, err = tx.Exec("delete from settlement_forces where trade_seq > $1 and trade_seq < $2",
			kept.TradeSeq, int64(store.FirstExternal))
		if err != nil {
			return err
		}
		_, err = tx.Exec("update settlement_rules set first_seq = $1 where first_seq > $1",
			kept.TradeSeq+1)
		if err != nil {
			return err
		}
		restored, err := tx.Cursor(store.CursorRestored)
		if err == nil && restored > kept.TradeSeq {
			err = tx.SetCursor(store.CursorRestored, kept.TradeSeq)
		}
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
		return GiveUpResult{}, fmt.Errorf("projection: give up rows behind tradeSeq=%d: %w",
			kept.TradeSeq, err)
	}
	return done, nil
}

// commonPage is how many rows are compared at a time, from the head downwards.
const commonPage = 1024

// common returns the last fill up to head that both table and journal have; TradeSeq is 0 when
// there is none.
//
// It walks down from head a page at a time, so it costs as much as the histories differ. Rows that
// are missing or edited in between are passed over; the first that agrees ends the walk.
func common(ctx context.Context, db *store.DB, j Journal, head uint64) (matcher.Fill, error) {
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
			if last, err = lastAgreed(j, rows, low, top); err != nil || last.TradeSeq > 0 {
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

// lastAgreed returns the last fill of a range whose row agrees with it.
//
// The range is low to top, both inclusive.
func lastAgreed(j Journal, rows map[uint64]store.Trade,
	low, top uint64) (last matcher.Fill, err error) {
	err = j.Fills(low, func(fills []matcher.Fill) error {
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

// says reports whether a row is that of a fill. A row that came as a message has no sequence.
//
// Security and order are left out: accounts, amounts and times of one fill are enough to know it.
func says(t *store.Trade, f *matcher.Fill) bool {
	return t.AccountID == f.AccountID && t.Side == f.Side && t.Quantity == int64(f.Qty) &&
		t.Price == f.Px && t.ExecutedAt == f.TimeMillis && (t.Sequence == 0 || t.Sequence == f.InputSeq)
}
