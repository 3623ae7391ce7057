package recon

import (
	"context"
	"fmt"

	"posttrade/sidecars/store"
)

// recheck is where the re-check of open entries continues. It is not durable: a new process begins
// a new round.
type recheck struct {
	after       uint64 // the last entry checked; 0 at the start of a round
	begun       int64  // when the round began, epoch millis
	orphanAfter string // the last orphan checked
}

// Sweep checks the open entries again and compares all entries that have become durable since the
// last sweep. It returns when it has reached the durable head as it was at its start. While there
// is no database it returns an error that wraps store.ErrUnavailable; work that was done before
// stays done.
//
// Two calls at once run one after the other. Bounds on the re-check keep a sweep short however many
// breaks are open; the new entries have no such bound.
func (r *Recon) Sweep(ctx context.Context) error {
	r.sweep.Lock()
	defer r.sweep.Unlock()
	c := clock{r.nowMillis(), r.o.Grace.Milliseconds()}
	_, head := r.o.Journal.Head()
	b, err := r.readBooks(ctx)
	if err != nil {
		return fmt.Errorf("recon: sweep read: %w", err)
	}
	if b.swept > head {
		if err := r.forget(ctx, head); err != nil {
			return fmt.Errorf("recon: forget entries after tradeSeq=%d: %w", head, err)
		}
	}
	if b.missing+b.pending+b.mismatches > 0 {
		if err := r.recheckEntries(ctx, c); err != nil {
			return err
		}
	} else {
		r.recheck.after = 0
		r.lastRound.Store(c.now)
	}
	if b.swept < head {
		if err := r.sweepNew(ctx, c, head); err != nil {
			return err
		}
	}
	if b.orphans > 0 {
		if err := r.recheckOrphans(ctx, head); err != nil {
			return fmt.Errorf("recon: re-check orphans: %w", err)
		}
	}
	r.lastSweep.Store(c.now)
	return nil
}

// readBooks reads the books in a snapshot of their own and copies them to Metrics.
func (r *Recon) readBooks(ctx context.Context) (b books, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		b, err = readBooks(tx)
		return err
	})
	if err == nil {
		r.publish(&b)
	}
	return b, err
}

// sweepNew adds the entries from the cursor to head to the books.
//
// Each chunk is committed by itself, with the cursor, so a sweep that ends early has lost nothing.
func (r *Recon) sweepNew(ctx context.Context, c clock, head uint64) error {
	w := walk{
		name: "sweep", fills: r.entries.fromBlotter, maxRows: r.bounds.rows, sweeps: true,
		plan: func(_ *store.Tx, b *books) ([]span, error) {
			if b.swept >= head {
				return nil, nil
			}
			return []span{{b.swept + 1, head}}, nil
		},
		moved: func(b *books, done uint64) { b.swept = done },
	}
	for {
		p, err := again(func() (progress, error) { return r.chunk(ctx, &w, c) })
		if err != nil || p.all {
			return err
		}
	}
}

// recheckEntries checks open entries again, from where it stopped the last time.
//
// Only a complete round sets lastRound. An entry that became open behind the place where the round
// is waits for the next one.
func (r *Recon) recheckEntries(ctx context.Context, c clock) error {
	if r.recheck.after == 0 {
		r.recheck.begun = c.now
	}
	var (
		spans []span
		last  bool
	)
	w := walk{
		name: "re-check", fills: r.entries.fromBlotter, maxRows: r.bounds.rows,
		plan: func(tx *store.Tx, _ *books) (_ []span, err error) {
			spans, last, err = nextOpen(tx, r.recheck.after, r.bounds.rechecks, r.bounds.near)
			return spans, err
		},
	}
	for budget := r.bounds.rechecks; budget > 0; budget -= max(len(spans), 1) {
		p, err := again(func() (progress, error) { return r.chunk(ctx, &w, c) })
		switch {
		case err != nil:
			return err
		case p.all && last:
			r.recheck.after = 0
			r.lastRound.Store(r.recheck.begun)
			return nil
		default:
			r.recheck.after = p.done
		}
	}
	return nil
}

// forget removes every entry above head from the books: a journal that lost a suffix will issue
// those trade sequences again.
func (r *Recon) forget(ctx context.Context, head uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var was, is books
	err := r.o.DB.Write(ctx, func(tx *store.Tx) (err error) {
		was, is, err = setBack(tx, head)
		return err
	})
	if err != nil {
		return err
	}
	r.recheck = recheck{}
	r.publish(&is)
	r.o.Logger.Warn("recon: the journal is shorter than what was reconciled", "swept", was.swept,
		"head", head)
	return nil
}

// setBack removes every entry above head from the books, and returns the books before and after.
//
// errMoved when another transaction has changed the books since this one began.
func setBack(tx *store.Tx, head uint64) (was, is books, err error) {
	if was, err = readBooks(tx); err != nil {
		return was, is, err
	}
	if err := claim(tx, was); err != nil {
		return was, is, err
	}
	is = was
	is.swept, is.verified = min(is.swept, head), min(is.verified, head)
	if err := forgetGaps(tx, &is, head); err != nil {
		return was, is, err
	}
	n, err := tx.Exec("delete from recon_mismatches where trade_seq > $1", head)
	if err != nil {
		return was, is, err
	}
	is.mismatches -= uint64(n)
	return was, is, writeBooks(tx, was, is)
}

// forgetGaps cuts off the parts of gaps above head.
//
// It takes the lost entries out of the tallies of b, by class.
func forgetGaps(tx *store.Tx, b *books, head uint64) error {
	err := tx.Query(selectGaps+" order by lo", func(row *store.Row) error {
		g := scanGap(row)
		lost := span{max(g.lo, head+1), g.hi}.count()
		if g.counted {
			b.missing -= lost
		} else {
			b.pending -= lost
		}
		return nil
	}, head+1)
	if err != nil {
		return err
	}
	if _, err := tx.Exec("delete from recon_gaps where lo > $1", head); err != nil {
		return err
	}
	_, err = tx.Exec("update recon_gaps set hi = $1 where hi > $1", head)
	return err
}
