package recon

import (
	"context"
	"fmt"

	"posttrade/sidecars/store"
)

// orphan is a row that no fill gives.
type orphan struct {
	id  string
	seq uint64
	row Trade
}

func orphanOf(t *store.Trade) orphan { return orphan{t.ID, t.Seq, tradeOf(t)} }

// scan is one orphan sweep under way. Its walks run one after the other.
//
// It belongs to the goroutine of OrphanSweep. Each chunk takes mu for itself, so the fast sweep
// goes on in between.
type scan struct {
	r      *Recon
	number uint64 // of this sweep; separates its orphans from those of older sweeps
	last   uint64 // the index's last trade sequence
	local  uint64 // rows judged

	chunkLocal uint64   // those of the chunk under way
	strays     []orphan // the orphans of that chunk
}

// OrphanSweep brings the full-history index up to date and compares every local row with it.
// Errors: ErrBusy while another one runs; errors of Reindex and of the database. A sweep that fails
// leaves what it has found so far as open breaks, and keeps the result of the last complete one.
//
// It takes as long as reading the history and the table once. Memory does not grow with either,
// except for the ids of the orphans.
func (r *Recon) OrphanSweep(ctx context.Context) (SweepResult, error) {
	if !r.orphanSweep.TryLock() {
		return SweepResult{}, ErrBusy
	}
	defer r.orphanSweep.Unlock()
	if err := r.o.DB.Mine(ctx); err != nil {
		return SweepResult{}, fmt.Errorf("recon: orphan sweep: %w", err)
	}
	result, err := r.sweepOrphans(ctx)
	if err != nil {
		return SweepResult{}, fmt.Errorf("recon: orphan sweep: %w", err)
	}
	return result, nil
}

// sweepOrphans runs the steps in their order: the index first, so that a row is judged by a history
// that is newer than the beginning of the sweep; the closing of old orphans last, when every row
// has been judged.
func (r *Recon) sweepOrphans(ctx context.Context) (SweepResult, error) {
	info, err := r.o.History.Reindex(ctx)
	if err != nil {
		return SweepResult{}, err
	}
	s := scan{r: r, last: info.LastTradeSeq}
	if err := s.begin(ctx); err != nil {
		return SweepResult{}, err
	}
	if err := s.walkIndex(ctx); err != nil {
		return SweepResult{}, err
	}
	if err := s.walkBeyond(ctx); err != nil {
		return SweepResult{}, err
	}
	if err := s.closeOthers(ctx); err != nil {
		return SweepResult{}, err
	}
	return s.end(ctx, info.IndexedTrades)
}

// begin takes the next number. A failed sweep uses its number up too, so that the orphans of two
// sweeps can always be told apart.
func (s *scan) begin(ctx context.Context) error {
	return s.r.amend(ctx, nil, func(_ *store.Tx, b *books) error {
		b.orphanSweeps++
		s.number = b.orphanSweeps
		return nil
	})
}

// walkIndex compares the rows up to the index's last trade sequence with it. Its findings about
// swept entries also go into the books.
//
// A chunk that runs again begins with empty strays (plan), so none is written twice.
func (s *scan) walkIndex(ctx context.Context) error {
	next := uint64(1)
	w := walk{
		name: "orphans", fills: s.r.entries.fromHistory, maxRows: 1,
		plan: func(*store.Tx, *books) ([]span, error) {
			s.chunkLocal, s.strays = 0, s.strays[:0]
			if next > s.last {
				return nil, nil
			}
			return []span{{next, s.last}}, nil
		},
		rows:  func(n int) { s.chunkLocal += uint64(n) },
		stray: func(t *store.Trade) { s.strays = append(s.strays, orphanOf(t)) },
		adds: func() func(*store.Tx, *books) error {
			if len(s.strays) == 0 {
				return nil
			}
			return s.note
		},
	}
	for {
		c := clock{s.r.nowMillis(), s.r.o.Grace.Milliseconds()}
		p, err := again(func() (progress, error) { return s.r.chunk(ctx, &w, c) })
		if err != nil {
			return err
		}
		s.local += s.chunkLocal
		if p.all {
			return nil
		}
		next = p.done + 1
	}
}

// walkBeyond judges the rows above the index by the durable head, read after the rows: a row at or
// below it may have a fill that is newer than the index.
//
// It costs one query when no row lies above the index.
func (s *scan) walkBeyond(ctx context.Context) error {
	after, limit := s.last, int(s.r.bounds.page)
	for {
		read, last, strays := 0, after, []orphan(nil)
		err := s.r.o.DB.Read(ctx, func(tx *store.Tx) error {
			read, last, strays = 0, after, nil
			return tx.Trades(store.TradeFilter{AfterSeq: after, Limit: limit}, func(t *store.Trade) error {
				if read, last = read+1, t.Seq; !t.External() {
					strays = append(strays, orphanOf(t))
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		_, head := s.r.o.Journal.Head()
		s.strays = s.strays[:0]
		for _, o := range strays {
			if o.seq > head || !ownID(o.id, o.seq) {
				s.strays = append(s.strays, o)
			}
		}
		s.local += uint64(len(s.strays))
		if len(s.strays) > 0 {
			if err := s.r.amend(ctx, nil, s.note); err != nil {
				return err
			}
		}
		if read < limit {
			return nil
		}
		after = last
	}
}

// closeOthers closes the orphans of earlier sweeps that this one did not find.
//
// It deletes in parts, so that no transaction holds the books for long.
func (s *scan) closeOthers(ctx context.Context) error {
	for {
		var closed int64
		err := s.r.amend(ctx, nil, func(tx *store.Tx, b *books) (err error) {
			closed, err = tx.Exec("delete from recon_orphans where id in "+
				"(select id from recon_orphans where sweep < $1 limit $2)", s.number, s.r.bounds.orphans)
			b.orphans -= uint64(closed)
			return err
		})
		if err != nil || closed == 0 {
			return err
		}
	}
}
