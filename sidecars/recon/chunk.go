package recon

import (
	"context"
	"errors"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// bounds keep a chunk small: its transaction and the memory that it takes. A chunk ends after the
// page of entries that reaches one of them.
type bounds struct {
	page     uint64 // entries whose rows are read in one query
	rows     int    // compared rows
	findings int    // runs of absent entries, and mismatches
	rechecks int    // open ranges that one sweep checks again
	orphans  int    // orphans that one sweep checks again
	near     uint64 // open entries at most this far apart are checked as one range; at least 1
}

// defaultBounds: a page is about 4 MB of rows, a chunk about a quarter of a second.
var defaultBounds = bounds{
	page: 16384, rows: 131072, findings: 4096, rechecks: 1024, orphans: 4096, near: 64,
}

// walk is one way through the entries: the history it compares with, and the cursor it moves.
type walk struct {
	name    string
	fills   reader
	maxRows int
	sweeps  bool // adds entries above the last swept one to the books

	// plan returns the entries to compare next, ascending and disjoint. None of them is below an entry
	// of an earlier plan's result. It is called in the snapshot.
	plan func(tx *store.Tx, b *books) ([]span, error)
	// moved records in the books that the entries up to done have been compared.
	moved func(b *books, done uint64)
	// rows and stray may be nil. rows receives the number of rows of a compared page, including rows
	// of entries above the last swept one. stray receives each row that no fill gives.
	rows  func(n int)
	stray func(t *store.Trade)
	// adds may be nil. It returns the function that adds to the transaction what follows from the
	// compared rows; nil for nothing.
	adds func() func(tx *store.Tx, b *books) error
}

// progress is the result of a chunk.
type progress struct {
	done uint64 // the last entry compared; 0: none
	all  bool   // all planned entries have been compared
	rows int
}

// chunk does one unit of work of a walk: it compares planned entries in one snapshot, and writes
// the result in one transaction.
func (r *Recon) chunk(ctx context.Context, w *walk, c clock) (progress, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var (
		was   books
		found []verdict
		p     progress
	)
	err := r.o.DB.Read(ctx, func(tx *store.Tx) (err error) {
		if was, err = readBooks(tx); err != nil {
			return err
		}
		found, p, err = r.compare(ctx, tx, w, &was, c)
		return err
	})
	if err != nil {
		return p, fmt.Errorf("recon: %s read: %w", w.name, err)
	}
	r.publish(&was)
	is := was
	var sum change
	for i := range found {
		sum.add(found[i].change)
	}
	is.apply(sum)
	if p.done > 0 && w.moved != nil {
		w.moved(&is, p.done)
	}
	var add func(tx *store.Tx, b *books) error
	if w.adds != nil {
		add = w.adds()
	}
	if is == was && sum == (change{}) && !anyEdit(found) && add == nil {
		return p, nil
	}
	if err := r.commit(ctx, was, &is, func(tx *store.Tx, b *books) error {
		for i := range found {
			if err := writeExceptions(tx, found[i].was, found[i].is); err != nil {
				return err
			}
		}
		if add == nil {
			return nil
		}
		return add(tx, b)
	}); err != nil {
		return progress{}, fmt.Errorf("recon: %s write: %w", w.name, err)
	}
	r.counters.matched.Add(sum.nowMatched)
	r.counters.missing.Add(sum.nowMissing)
	r.counters.mismatch.Add(sum.nowDiffers)
	return p, nil
}

// commit replaces was by is, together with the writes of write, and shows the result to Metrics.
// write may change the books; it starts from is each time it runs.
func (r *Recon) commit(ctx context.Context, was books, is *books,
	write func(tx *store.Tx, b *books) error) error {
	var written books
	err := r.o.DB.Write(ctx, func(tx *store.Tx) error {
		if err := claim(tx, was); err != nil {
			return err
		}
		written = *is
		written.sweptMillis = max(written.sweptMillis, r.lastSweep.Load())
		written.recheckedMillis = max(written.recheckedMillis, r.lastRound.Load())
		if err := write(tx, &written); err != nil {
			return err
		}
		return writeBooks(tx, was, written)
	})
	if err != nil {
		return err
	}
	if written.orphans > was.orphans { // one transaction either adds orphans or closes some
		r.counters.orphan.Add(written.orphans - was.orphans)
	}
	*is = written
	r.publish(is)
	return nil
}

// again runs work, and once more when another transaction changed the books meanwhile.
func again(work func() (progress, error)) (progress, error) {
	p, err := work()
	if errors.Is(err, errMoved) {
		p, err = work()
	}
	return p, err
}

// verdict is the judgement of one span.
type verdict struct {
	was, is exceptions
	change  change
}

func anyEdit(found []verdict) bool {
	for i := range found {
		oldGaps, newGaps := middle(found[i].was.gaps, found[i].is.gaps)
		oldOnes, newOnes := middle(found[i].was.mismatches, found[i].is.mismatches)
		if len(oldGaps)+len(newGaps)+len(oldOnes)+len(newOnes) > 0 {
			return true
		}
	}
	return false
}

// compare compares the planned entries, as many as a chunk may, and judges them.
func (r *Recon) compare(ctx context.Context, tx *store.Tx, w *walk, b *books, c clock) (
	found []verdict, p progress, err error) {
	spans, err := w.plan(tx, b)
	if err != nil {
		return nil, p, err
	}
	book, err := r.readRules(tx)
	if err != nil {
		return nil, p, err
	}
	size := 0
	for _, s := range spans {
		f := findings{span: s}
		if err := r.compareSpan(ctx, tx, w, &book, &f, &p, size); err != nil {
			return nil, p, err
		}
		p.done = f.hi
		size += f.size()
		whole := f.hi == s.hi
		if w.sweeps || f.keep(b.swept) {
			v := verdict{}
			if v.was, err = readExceptions(tx, f.span); err != nil {
				return nil, p, err
			}
			v.is, v.change = judge(v.was, &f, b.swept, c)
			found = append(found, v)
		}
		if !whole || r.full(w, &p, size) && s != spans[len(spans)-1] {
			return found, p, nil
		}
	}
	p.all = true
	return found, p, nil
}

func (r *Recon) full(w *walk, p *progress, size int) bool {
	return p.rows >= w.maxRows || size >= r.bounds.findings
}

// compareSpan compares the entries of f's span page by page. When the chunk is full it shortens the
// span to the entries that it has compared.
func (r *Recon) compareSpan(ctx context.Context, tx *store.Tx, w *walk, book *rulebook,
	f *findings, p *progress,
	size int) error {
	hi := f.hi
	for next := f.lo; next <= hi; {
		if err := ctx.Err(); err != nil {
			return err
		}
		page := span{next, min(hi, next+r.bounds.page-1)}
		if err := r.readRows(tx, w, page); err != nil {
			return err
		}
		if len(r.rows) == 0 && page.hi < hi {
			// A range without rows may be as long as the projection is behind, so find its end.
			first, err := firstRow(tx, page.hi+1, hi)
			if err != nil {
				return err
			}
			page.hi = first - 1
		}
		f.hi = page.hi
		f.notePage(page, r.rows)
		if err := book.readPage(tx, page); err != nil {
			return err
		}
		m := merge{rows: r.rows, ticker: r.ticker, book: book, out: f}
		if err := runs(r.rows, func(run []row) error {
			return w.fills(run[0].seq, run[len(run)-1].seq, m.take)
		}); err != nil {
			return err
		}
		p.rows += len(r.rows)
		next = page.hi + 1
		if r.full(w, p, size+f.size()) {
			break
		}
	}
	return nil
}

// selectRows reads only the columns that are compared: half the cost of whole rows. Ids are
// compared here, because that costs less than having the database build the expected id.
const selectRows = "select trade_seq, account_id, security, side = 'Sell', quantity, price, " +
	"executed_at, id, " +
	selectSettled + " from trades where trade_seq between $1 and $2 order by trade_seq"

// readRows reads the rows of a page into r.rows.
func (r *Recon) readRows(tx *store.Tx, w *walk, page span) error {
	r.rows = r.rows[:0]
	strays := false
	var room [idBytes]byte
	err := tx.Query(selectRows, func(cells *store.Row) error {
		seq := uint64(cells.Int64(0))
		at := row{
			seq: seq, owned: cells.Is(7, appendID(room[:0], seq)),
			trade: Trade{
				AccountID: uint32(cells.Int64(1)), Security: cells.Word(2, r.words), Quantity: cells.Int64(4),
				Price: cells.Int64(5), TimeMillis: cells.Int64(6),
			},
			settled: scanSettled(cells, 8),
		}
		if cells.Bool(3) {
			at.trade.Side = matcher.Sell
		}
		strays = strays || !at.owned
		r.rows = append(r.rows, at)
		return nil
	}, page.lo, page.hi)
	if err != nil || w.rows == nil {
		return err
	}
	w.rows(len(r.rows))
	if !strays {
		return nil
	}
	return tx.TradesBySeq(page.lo, page.hi, func(t *store.Trade) error {
		if !ownID(t.ID, t.Seq) {
			w.stray(t)
		}
		return nil
	})
}

// firstRow returns the lowest trade_seq of a row in lo..hi, hi+1 when there is none.
func firstRow(tx *store.Tx, lo, hi uint64) (first uint64, err error) {
	first = hi + 1
	err = tx.Query("select min(trade_seq) from trades where trade_seq >= $1 and trade_seq <= $2",
		func(row *store.Row) error {
			if !row.Null(0) {
				first = uint64(row.Int64(0))
			}
			return nil
		}, lo, hi)
	return first, err
}
