package projection

import (
	"context"
	"errors"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// errEnough ends a reading of fills that has what it needs.
var errEnough = errors.New("enough fills")

// maxMoves bounds how often one Step starts again because another process moved the cursor.
//
// Two processes that move in turns would otherwise keep one Step busy for ever.
const maxMoves = 4

// Step projects one batch and returns the number of fills by which it moved the cursor, 0 when
// there are none.
//
//   - Errors: ErrSequence and ErrForeign are final; after any other error the caller may call
//     again. After any error the next call starts from the cursor in the database.
//   - Cost: one read of the head when there is nothing to do, else one transaction. It blocks;
//     calls exclude one another.
func (p *Projection) Step(ctx context.Context) (rows int, err error) {
	p.stepping.Lock()
	defer p.stepping.Unlock()
	rows, err = p.step(ctx)
	if err != nil {
		p.known = false // the outcome of the transaction is unknown
		if ctx.Err() != nil {
			return rows, err // the end of ctx is no failure
		}
		p.failed.Add(1)
	}
	p.note(err)
	return rows, err
}

// step is Step without the counters and the log. When the head has no new trade, it moves only the
// input sequence, in memory.
func (p *Projection) step(ctx context.Context) (rows int, err error) {
	for range maxMoves {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		inputHead, tradeHead := p.o.Journal.Head()
		head := position{trade: tradeHead, input: inputHead}
		if !p.known {
			if err := p.resume(ctx, head); err != nil {
				return 0, err
			}
		}
		if p.at.trade >= head.trade {
			p.advance(position{trade: p.at.trade, input: max(p.at.input, head.input)})
			return 0, nil
		}
		if err := p.gather(ctx, head); err != nil {
			return 0, err
		}
		rows, inserted, err := p.commit(ctx, head)
		if err != nil {
			return 0, err
		}
		if rows == 0 {
			p.known = false
			continue
		}
		p.booked.Add(uint64(inserted))
		p.duplicates.Add(uint64(rows - inserted))
		p.batches.Add(1)
		p.input = p.batch.fills[rows-1].InputSeq
		p.advance(p.reached(rows, head))
		return rows, nil
	}
	return 0, nil // another projection is at work: leave the work to it
}

// advance sets the position to at.
//
// The lock stepping is held.
func (p *Projection) advance(at position) {
	p.at = at
	p.mu.Lock()
	p.shown = at
	p.mu.Unlock()
}

// resume takes the position from the database, after it has checked it against the journal.
//
// It notes and reads the settlement rules first, because rows are dated by them. ErrAhead leaves
// known false: the next Step looks again.
func (p *Projection) resume(ctx context.Context, head position) error {
	if err := p.noteRules(ctx); err != nil {
		return err
	}
	if err := p.readEras(ctx); err != nil {
		return err
	}
	var at position
	var mark uint64
	err := p.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		if at.trade, err = tx.Cursor(cursorTrades); err != nil {
			return err
		}
		if at.input, err = tx.Cursor(cursorInput); err != nil {
			return err
		}
		if mark, err = tx.Cursor(cursorMark); err != nil {
			return err
		}
		p.forced, err = tx.LastForce()
		return err
	})
	if err != nil {
		return fmt.Errorf("projection: read cursors: %w", err)
	}
	p.input = 0
	switch {
	case at.trade > head.trade:
		return fmt.Errorf("projection: cursor=%d head=%d: %w", at.trade, head.trade, ErrAhead)
	case at.trade == 0:
		at.input = 0
	default:
		f, err := p.fill(at.trade)
		if err != nil {
			return err
		}
		p.input = f.InputSeq
		switch marked := marks(mark, at.trade); {
		case marked && markOf(&f) != mark:
			return fmt.Errorf("projection: cursor=%d: the fill there is not the one that was booked: %w",
				at.trade, ErrForeign)
		case !marked: // the cursor was set by hand, and the input sequence belongs to another one
			at.input = f.InputSeq - 1
		}
	}
	p.known = true
	p.advance(position{trade: at.trade, input: min(at.input, head.input)})
	return nil
}

// fill reads one durable fill.
//
// ErrSequence when the journal has another fill there, or none.
func (p *Projection) fill(tradeSeq uint64) (f matcher.Fill, err error) {
	err = p.o.Journal.Fills(tradeSeq, func(fills []matcher.Fill) error {
		if len(fills) > 0 {
			f = fills[0]
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return f, fmt.Errorf("projection: read fill tradeSeq=%d: %w", tradeSeq, err)
	}
	if f.TradeSeq != tradeSeq || f.InputSeq == 0 {
		return f, fmt.Errorf("projection: read fill tradeSeq=%d: got tradeSeq=%d inputSeq=%d: %w",
			tradeSeq, f.TradeSeq, f.InputSeq, ErrSequence)
	}
	return f, nil
}

// gather makes the rows of the fills after the position, at most a batch and none beyond head.
//
// It holds nothing of the database while it reads the journal. All fills of a command have one
// input sequence, and the sequences do not fall; anything else is ErrSequence.
func (p *Projection) gather(ctx context.Context, head position) error {
	p.batch.reset()
	next, input := p.at.trade+1, p.input
	booked := p.o.Now().UnixMilli()
	err := p.o.Journal.Fills(next, func(fills []matcher.Fill) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range fills {
			f := &fills[i]
			if f.TradeSeq != next || f.InputSeq < max(input, 1) || f.InputSeq > head.input {
				return fmt.Errorf("got tradeSeq=%d inputSeq=%d, want tradeSeq=%d inputSeq=%d..%d: %w",
					f.TradeSeq, f.InputSeq, next, max(input, 1), head.input, ErrSequence)
			}
			ticker := p.o.Ticker(f.SecurityID)
			if ticker == "" {
				return fmt.Errorf("tradeSeq=%d security=%d: %w", f.TradeSeq, f.SecurityID, errTicker)
			}
			p.batch.add(f, ticker, p.eraOf(next), booked)
			next, input = next+1, f.InputSeq
			if next > head.trade || len(p.batch.rows) == p.o.BatchRows {
				return errEnough
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
	case err != nil:
		return fmt.Errorf("projection: read fills from=%d: %w", p.at.trade+1, err)
	default:
		return fmt.Errorf("projection: fills end at tradeSeq=%d, head is %d: %w", next-1, head.trade,
			ErrSequence)
	}
	p.batch.name()
	return nil
}

// reached is the position behind the first rows of the batch. The last command may have more fills
// than these, so it does not count as complete below the head.
func (p *Projection) reached(rows int, head position) position {
	last := &p.batch.fills[rows-1]
	if last.TradeSeq == head.trade {
		return head
	}
	return position{trade: last.TradeSeq, input: max(p.at.input, last.InputSeq-1)}
}

// commit books the first rows of the batch and moves the cursors behind them, all or nothing: the
// whole batch, unless another writer waits for the database. No rows: another process had moved the
// cursor, and nothing was done.
//
// The origin is read before the transaction: reading the journal must not hold SQLite's one writer.
func (p *Projection) commit(ctx context.Context, head position) (rows, inserted int, err error) {
	origin, err := p.Origin()
	if err != nil {
		return 0, 0, err
	}
	err = p.o.DB.Write(ctx, func(tx *store.Tx) error {
		rows, inserted = 0, 0 // this may be a second attempt
		// From here to the end of the transaction no other projection can move the cursor.
		found, err := tx.HoldCursor(cursorTrades)
		if err != nil {
			return err
		}
		if found != p.at.trade {
			return nil
		}
		if found == 0 {
			if err := tx.MarkOrigin(origin); err != nil {
				return err
			}
		}
		if rows, inserted, err = tx.InsertSome(p.batch.rows); err != nil {
			return err
		}
		if err := tx.NoteBatch(p.batch.booked(rows, inserted)); err != nil {
			return err
		}
		reached := p.reached(rows, head)
		if first := p.at.trade + 1; first <= p.forced {
			last := min(p.forced, reached.trade)
			if _, err := tx.SettleForced(first, last, p.o.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return tx.SetCursors(store.Cursor{Name: cursorTrades, Value: reached.trade},
			store.Cursor{Name: cursorInput, Value: reached.input},
			store.Cursor{Name: cursorMark, Value: markOf(&p.batch.fills[rows-1])})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("projection: book tradeSeq=%d..%d: %w", p.at.trade+1,
			p.at.trade+uint64(len(p.batch.rows)), err)
	}
	return rows, inserted, nil
}
