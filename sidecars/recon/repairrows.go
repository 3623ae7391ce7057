package recon

import (
	"strings"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// rowColumns are read whole, with the settlement date twice: as a text, which the record keeps even
// when it is no date, and as a date.
const (
	rowColumns = "id, trade_seq, account_id, security, side = 'Sell', quantity, price, " +
		"status = 'Settled', cast(settlement_date as text), executed_at, booked_at, updated_at, " +
		"order_id, sequence, settlement_date"
	selectBySeq = "select " + rowColumns + " from trades where trade_seq between $1 and $2 " +
		"order by trade_seq"

	putColumns = 14
	putRows    = "insert into trades (id, trade_seq, account_id, security, side, quantity, price, " +
		"status, settlement_date, executed_at, booked_at, updated_at, order_id, sequence) values "
	overRows = " on conflict (id) do update set trade_seq = excluded.trade_seq, " +
		"account_id = excluded.account_id, security = excluded.security, side = excluded.side, " +
		"quantity = excluded.quantity, price = excluded.price, status = excluded.status, " +
		"settlement_date = excluded.settlement_date, executed_at = excluded.executed_at, " +
		"booked_at = excluded.booked_at, updated_at = excluded.updated_at, " +
		"order_id = excluded.order_id, sequence = excluded.sequence"

	wasColumns = 18
	putWas     = "insert into recon_repaired_rows (repair, trade_seq, n, fields, id, row_seq, " +
		"account_id, security, side, quantity, price, status, settlement_date, executed_at, " +
		"booked_at, updated_at, order_id, sequence) values "
)

// readRows reads the rows of the chunk: those with its trade sequences, and those with the ids of
// its entries under another trade sequence.
//
// SQLite's transaction holds the database already, so hold matters on PostgreSQL only.
func (c *repairing) readRows(tx *store.Tx, page span, hold bool) error {
	c.bySeq, c.byID = make(map[uint64]*RepairedRow), make(map[string]*RepairedRow)
	lock := ""
	if hold && tx.Dialect() == store.Postgres {
		lock = " for update"
	}
	err := tx.Query(selectBySeq+lock, func(r *store.Row) error {
		row := scanRepaired(r)
		c.bySeq[row.Seq] = row
		return nil
	}, page.lo, page.hi)
	if err != nil {
		return err
	}
	var lost []string
	for seq := page.lo; seq <= page.hi; seq++ {
		id := matcher.TradeID(seq)
		if row := c.bySeq[seq]; row == nil || row.ID != id {
			lost = append(lost, id)
		}
	}
	for len(lost) > 0 {
		n := rowsPerInsert
		if len(lost) < n {
			n = 1
		}
		args := make([]any, n)
		for i := range args {
			args[i] = lost[i]
		}
		err := tx.Query("select "+rowColumns+" from trades where id in "+placeholders(n, 1)+lock,
			func(r *store.Row) error {
				row := scanRepaired(r)
				c.byID[row.ID] = row
				return nil
			}, args...)
		if err != nil {
			return err
		}
		lost = lost[n:]
	}
	return nil
}

// scanRepaired reads the columns of rowColumns. A settlement date that is none is kept as its text.
func scanRepaired(r *store.Row) *RepairedRow {
	row := &RepairedRow{Trade: store.Trade{
		ID: r.Text(0), Seq: uint64(r.Int64(1)), AccountID: uint32(r.Int64(2)), Security: r.Text(3),
		Quantity: r.Int64(5), Price: r.Int64(6), ExecutedAt: r.Int64(9), BookedAt: r.Int64(10),
		UpdatedAt: r.Int64(11), OrderID: r.Text(12), Sequence: uint64(r.Int64(13)),
		SettlementDate: store.NoDate,
	}, Date: r.Text(8)}
	if r.Bool(4) {
		row.Side = matcher.Sell
	}
	if r.Bool(7) {
		row.Status = store.Settled
	}
	if day, ok := r.Day(14); ok {
		row.SettlementDate = day
	}
	return row
}

// settledOf is scanSettled for a row that was read whole.
//
// The two must give the same result for the same row.
func settledOf(t *store.Trade) settled {
	s := settled{date: t.SettlementDate, at: untimely, booked: t.BookedAt, sequence: t.Sequence}
	switch {
	case t.Status == store.Processing && t.UpdatedAt == t.BookedAt:
		s.at = 0
	case t.Status == store.Settled && t.UpdatedAt >= t.BookedAt && t.UpdatedAt > 0:
		s.at = t.UpdatedAt
	case t.Status == store.Processing:
		s.at = touched
	}
	if t.OrderID != "" {
		var ok bool
		if s.order, ok = matcher.ParseOrderID(t.OrderID); !ok {
			s.order = noOrder
		}
	}
	return s
}

// restored is the row of a fill, with what is worth keeping of the row as it was: when it was
// booked, unless a batch of the projection says otherwise, its settlement date where some rules in
// force gave it, and its settlement.
//
// UpdatedAt is the moment of the settlement, or that of the booking. was is nil for an entry
// without a row.
func (c *repairing) restored(f *matcher.Fill, want *Trade, was *RepairedRow) store.Trade {
	now := c.r.nowMillis()
	t := store.Trade{
		ID: matcher.TradeID(f.TradeSeq), Seq: f.TradeSeq, AccountID: want.AccountID,
		Security: want.Security, Side: want.Side, Quantity: want.Quantity, Price: want.Price,
		ExecutedAt: want.TimeMillis, BookedAt: now, OrderID: orderIDOf(f), Sequence: f.InputSeq,
		SettlementDate: store.NoDate,
	}
	if known, booked := c.book.booked(f.TradeSeq, 0); known {
		t.BookedAt = booked
	} else if was != nil && 0 < was.BookedAt && was.BookedAt <= now {
		t.BookedAt = was.BookedAt
	}
	if was != nil {
		t.SettlementDate = was.SettlementDate
	}
	if s := (settled{date: t.SettlementDate, booked: t.BookedAt}); !c.book.dates(f, &s) {
		t.SettlementDate = c.dated(f, t.BookedAt)
	}
	t.UpdatedAt = t.BookedAt
	if at := c.settlement(f.TradeSeq, &t, was, now); at != 0 {
		t.Status, t.UpdatedAt = store.Settled, at
	}
	return t
}

// dated is the settlement date of a row that has lost it.
//
// store.NoDate when no rules are known: the row then cannot be made, and judge refuses it.
func (c *repairing) dated(f *matcher.Fill, booked int64) store.Date {
	if day, known := c.book.due(f, booked); known {
		return day
	}
	if c.r.o.SettlementDate != nil {
		return c.r.o.SettlementDate(f.TimeMillis)
	}
	return store.NoDate
}

// settlement is when a row was settled; 0: it is not. A row that was Settled stays so at its own
// time, or from now on, if that can be. A settlement by hand is final.
//
// The result is in epoch milliseconds.
func (c *repairing) settlement(tradeSeq uint64, t *store.Trade, was *RepairedRow, now int64) int64 {
	if was != nil && was.Status == store.Settled {
		for _, at := range [...]int64{was.UpdatedAt, now} {
			s := settled{date: t.SettlementDate, booked: t.BookedAt, at: at}
			if t.BookedAt <= at && at <= now && c.book.allows(tradeSeq, &s) {
				return at
			}
		}
	}
	if forced, is := c.book.forces[tradeSeq]; is {
		return max(forced, t.BookedAt)
	}
	return 0
}

// note adds an entry's rows to the record, and the rows that must leave its place.
//
// An entry without any row gets one line with nulls, so that the record has every repaired entry.
func (c *repairing) note(seq uint64, fields []string, at, named *RepairedRow) {
	line := wasRow{seq: seq, fields: strings.Join(fields, ",")}
	for _, row := range [...]*RepairedRow{at, named} {
		if row == nil {
			continue
		}
		line.row = row
		c.was = append(c.was, line)
		line.n++
		if row.Seq != seq || row.ID != matcher.TradeID(seq) {
			c.displaced = append(c.displaced, row)
		}
	}
	if line.n == 0 {
		c.was = append(c.was, line)
	}
}

// write replaces the rows and keeps those that they replace.
//
// The record comes first and the rows in the way go second: the insert must find no row with its
// trade sequence under another id.
func (c *repairing) write(tx *store.Tx) error {
	_, err := insertRows(tx, putWas, "", wasColumns, len(c.was), func(i int, args []any) []any {
		w := &c.was[i]
		args = append(args, c.number, w.seq, w.n, w.fields)
		if w.row == nil {
			return append(args, make([]any, wasColumns-4)...)
		}
		t := &w.row.Trade
		return append(append(args, t.ID, t.Seq), rowArgs(t, w.row.Date)...)
	})
	if err != nil {
		return err
	}
	for _, row := range c.displaced {
		if _, err := tx.Exec("delete from trades where id = $1", row.ID); err != nil {
			return err
		}
	}
	_, err = insertRows(tx, putRows, overRows, putColumns, len(c.items),
		func(i int, args []any) []any {
			t := &c.items[i].Now
			return append(append(args, t.ID, t.Seq), rowArgs(t, t.SettlementDate)...)
		})
	if err != nil {
		return err
	}
	_, err = tx.Exec("update recon_repairs set checked = checked + $1, repaired = repaired + $2 "+
		"where repair = $3", c.checked, len(c.items), c.number)
	return err
}

// rowArgs are the columns of a row behind its id and trade sequence.
//
// date is a store.Date for the table trades, a text for the record.
func rowArgs(t *store.Trade, date any) []any {
	side, order, sequence := "Buy", any(nil), any(nil)
	if t.Side == matcher.Sell {
		side = "Sell"
	}
	if t.OrderID != "" {
		order = t.OrderID
	}
	if t.Sequence != 0 {
		sequence = t.Sequence
	}
	return []any{t.AccountID, t.Security, side, t.Quantity, t.Price, t.Status.String(), date,
		t.ExecutedAt, t.BookedAt, t.UpdatedAt, order, sequence}
}
