package recon

import (
	"context"
	"fmt"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// repairing is one chunk of a repair: the entries of a span.
//
// compare sets everything behind number, so that a transaction may run again.
type repairing struct {
	span
	r      *Recon
	number uint64

	book rulebook
	// bySeq and byID are the rows in the place of the entries: by their trade sequence, and by their
	// id where the row of that sequence has another one.
	bySeq            map[uint64]*RepairedRow
	byID             map[string]*RepairedRow
	checked, pending uint64
	items            []RepairItem
	displaced        []*RepairedRow // rows in the place of an entry under another id or trade_seq
	was              []wasRow
}

// wasRow is a line of the record: a row as it was, nil for none, of an entry.
type wasRow struct {
	seq    uint64
	n      int
	fields string
	row    *RepairedRow
}

// run compares and repairs the chunk in one transaction, or compares it in a snapshot.
//
// The cursor that is held is the projection's: it waits for the chunk, and the chunk for it.
func (c *repairing) run(ctx context.Context, dry bool) error {
	if dry {
		return c.r.o.DB.Read(ctx, func(tx *store.Tx) error {
			head, err := tx.Cursor(cursorProjection)
			if err != nil {
				return err
			}
			return c.compare(tx, head, false)
		})
	}
	return c.r.o.DB.Write(ctx, func(tx *store.Tx) error {
		// The projection must not write rows of this chunk meanwhile, for example when an operator has
		// set its cursor back.
		head, err := tx.HoldCursor(cursorProjection)
		if err != nil {
			return err
		}
		if err := c.compare(tx, head, true); err != nil {
			return err
		}
		return c.write(tx)
	})
}

// compare finds the entries whose row must be made again. hold locks the rows, so that a settlement
// of one of them waits and then finds the repaired row.
//
// projected is the cursor of the projection. Entries behind it count as pending and are left alone.
func (c *repairing) compare(tx *store.Tx, projected uint64, hold bool) (err error) {
	*c = repairing{r: c.r, span: c.span, number: c.number}
	last := min(c.hi, projected)
	c.pending = c.hi - max(last, c.lo-1)
	if last < c.lo {
		return nil
	}
	c.checked = last - c.lo + 1
	if c.book, err = c.r.readRules(tx); err != nil {
		return err
	}
	// The rows come first: a settlement by hand changes its row and notes itself in one transaction,
	// so its note is there for every row that is locked.
	if err := c.readRows(tx, span{c.lo, last}, hold); err != nil {
		return err
	}
	if err := c.book.readPage(tx, span{c.lo, last}); err != nil {
		return err
	}
	e := entries{journal: c.r.o.Journal}
	return e.fromJournal(c.lo, last, func(fills []matcher.Fill) error {
		for i := range fills {
			if err := c.judge(&fills[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// judge compares the row of a fill, and makes it again when it is missing or differs.
//
// The made row is compared like any other before it is written: a repair that would leave a break
// is errNotRestored and changes nothing of the chunk.
func (c *repairing) judge(f *matcher.Fill) error {
	id := matcher.TradeID(f.TradeSeq)
	ticker := c.r.o.Ticker(f.SecurityID)
	if ticker == "" {
		return fmt.Errorf("tradeSeq=%d security=%d: no name is known", f.TradeSeq, f.SecurityID)
	}
	want := tradeOfFill(f, ticker)
	at, named := c.bySeq[f.TradeSeq], c.byID[id]
	var fields []string
	switch {
	case at != nil && at.ID == id:
		named = nil
		if fields = c.differing(f, &want, at).names(); len(fields) == 0 {
			return nil
		}
	case at == nil && named == nil:
		fields = []string{"missing"}
	case at == nil:
		fields = []string{"tradeSeq"}
	default:
		fields = []string{"id"}
	}
	was := at
	if named != nil {
		was = named // its id says which trade it is
	}
	made := c.restored(f, &want, was)
	if d := c.differing(f, &want, &RepairedRow{Trade: made}); d != 0 {
		return fmt.Errorf("%s in %v: %w", id, d.names(), errNotRestored)
	}
	c.items = append(c.items, RepairItem{TradeID: id, Fields: fields, Was: was, Now: made})
	c.note(f.TradeSeq, fields, at, named)
	return nil
}

// differing returns the columns in which a row with the right id differs from its fill.
func (c *repairing) differing(f *matcher.Fill, want *Trade, row *RepairedRow) fieldSet {
	s := settledOf(&row.Trade)
	have := tradeOf(&row.Trade)
	return differing(&have, want) | s.differing(f, &c.book)
}
