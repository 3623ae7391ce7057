package recon

import (
	"context"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// compare compares the planned entries, as many as a chunk may, and judges them.
//
// It reads the database and the history, and writes nothing. Entries above the last swept one are
// judged only by a walk that sweeps: no other may put them into the books.
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

// full reports whether the chunk has reached one of its bounds.
func (r *Recon) full(w *walk, p *progress, size int) bool {
	return p.rows >= w.maxRows || size >= r.bounds.findings
}

// compareSpan compares the entries of f's span page by page. When the chunk is full it shortens the
// span to the entries that it has compared.
//
// A range without rows costs two queries, however long it is, and no fill is read for it.
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
//
// Rows of strays are read a second time, whole, and only when there are any: that is rare.
func (r *Recon) readRows(tx *store.Tx, w *walk, page span) error {
	r.rows = r.rows[:0]
	strays := false
	var room [idBytes]byte
	err := tx.Query(selectRows, func(cells *store.Row) error {
		seq := uint64(cells.Int64(0))
		at := row{
			seq: seq, owned: cells.Is(7, matcher.AppendTradeID(room[:0], seq)),
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
