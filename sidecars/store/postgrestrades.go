package store

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	copyTrades = "copy trades (" + tradeColumns + ") from stdin (format binary)"

	// mergeTrades adds the rows of fourteen arrays one by one. On a conflict with the table or with an
	// earlier row, the existing row stays.
	mergeTrades = "insert into trades (" + tradeColumns + ") " +
		"select a, b, c, d, e, f, g, h, date '1970-01-01' + i, j, k, l, nullif(m, ''), nullif(n, 0) " +
		"from unnest(" +
		"$1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], " +
		"$8::text[], " +
		"$9::int[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::bigint[]) " +
		"as row (a, b, c, d, e, f, g, h, i, j, k, l, m, n) on conflict do nothing"

	// copyFrom is the number of rows from which a COPY is cheaper than a merge. A COPY needs a
	// savepoint and a query of the range first.
	copyFrom = 64

	uniqueViolation = "23505"
)

// insertTrades copies rows into the table. COPY has no "on conflict": it runs under a savepoint,
// and when a row exists already the batch is merged instead. A query of the range comes first,
// because the rows of a failed COPY stay in the table's file until a vacuum.
//
// rows has been checked and is not empty. The limit of statement covers all steps together.
func (c *pgConn) insertTrades(ctx context.Context, rows []Trade) (inserted int, err error) {
	err = c.statement(ctx, func(ctx context.Context) (err error) {
		inserted, err = c.insert(ctx, rows)
		return err
	})
	return inserted, err
}

// insertSome inserts all rows: a server's other sessions write at the same time.
func (c *pgConn) insertSome(ctx context.Context, rows []Trade) (done, inserted int, err error) {
	inserted, err = c.insertTrades(ctx, rows)
	return len(rows), inserted, err
}

// insert chooses the way: a merge for few rows or a range that has rows already, else a COPY. The
// savepoint keeps the transaction alive when another session has inserted a row of the range since
// the query.
func (c *pgConn) insert(ctx context.Context, rows []Trade) (int, error) {
	if len(rows) < copyFrom {
		return c.merge(ctx, rows)
	}
	if some, err := c.anyBetween(ctx, rows); err != nil {
		return 0, c.mark(err)
	} else if some {
		return c.merge(ctx, rows)
	}
	if _, err := c.raw.Exec(ctx, "savepoint insert_trades"); err != nil {
		return 0, c.mark(err)
	}
	inserted, err := c.copier.run(ctx, c.raw.PgConn(), rows)
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation {
		if _, err := c.raw.Exec(ctx, "rollback to savepoint insert_trades"); err != nil {
			return 0, c.mark(err)
		}
		return c.merge(ctx, rows)
	}
	if err == nil {
		_, err = c.raw.Exec(ctx, "release savepoint insert_trades")
	}
	return inserted, c.mark(err)
}

// anyBetween reports whether the table has a row in the range of rows' trade sequences.
func (c *pgConn) anyBetween(ctx context.Context, rows []Trade) (some bool, err error) {
	lo, hi := rows[0].Seq, rows[0].Seq
	for i := range rows {
		lo, hi = min(lo, rows[i].Seq), max(hi, rows[i].Seq)
	}
	err = c.raw.QueryRow(ctx, "select exists (select from trades where trade_seq between $1 and $2)",
		int64(lo), int64(hi)).Scan(&some)
	return some, err
}

// merge inserts the rows that are missing, in one statement.
//
// It costs the columns as fourteen arrays in memory, and one walk over the indexes for each row.
// The placeholders take the columns in the order of tradeColumns; an empty order id and a sequence
// of 0 become NULL in the statement.
func (c *pgConn) merge(ctx context.Context, rows []Trade) (int, error) {
	text, number := make([][]string, 5), make([][]int64, 8)
	for i := range text {
		text[i] = make([]string, len(rows))
	}
	for i := range number {
		number[i] = make([]int64, len(rows))
	}
	days := make([]int32, len(rows))
	for i := range rows {
		t := &rows[i]
		side, _ := sideText(t.Side)
		for k, v := range [...]string{t.ID, t.Security, side, t.Status.String(), t.OrderID} {
			text[k][i] = v
		}
		for k, v := range [...]int64{int64(t.Seq), int64(t.AccountID), t.Quantity, t.Price,
			t.ExecutedAt, t.BookedAt, t.UpdatedAt, int64(t.Sequence)} {
			number[k][i] = v
		}
		days[i] = int32(t.SettlementDate)
	}
	tag, err := c.raw.Exec(ctx, mergeTrades, text[0], number[0], number[1], text[1], text[2],
		number[2], number[3], text[3], days, number[4], number[5], number[6], text[4], number[7])
	return int(tag.RowsAffected()), c.mark(err)
}

// tradeCopier writes trades in the binary form of COPY, from one buffer.
//
// The bytes, as PostgreSQL's documentation of COPY defines them: a header of 19, the rows, and a
// trailer of two bytes 0xff. Memory is one buffer of some 60 KiB, kept for the next copy.
type tradeCopier struct {
	mu   sync.Mutex // the driver reads on a goroutine that may outlive a broken connection
	rows []Trade    // the rows still to be written; nil when the copy is over
	room []byte
	rest []byte // the part of room that is not read yet
	last bool   // the trailer is in room
}

const (
	// copyHeader is the signature of 11 bytes, no flags, and a header extension of no bytes.
	copyHeader  = "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	copyColumns = 14
)

// run copies rows and returns how many the server took.
//
// It lets go of rows before it returns: a driver's goroutine that is late reads the end of the copy
// and never a row that the caller has changed since.
func (p *tradeCopier) run(ctx context.Context, conn *pgconn.PgConn, rows []Trade) (int, error) {
	p.begin(rows)
	defer p.begin(nil)
	tag, err := conn.CopyFrom(ctx, p, copyTrades)
	return int(tag.RowsAffected()), err
}

// begin starts a copy of rows, or ends every read with io.EOF when rows is nil.
func (p *tradeCopier) begin(rows []Trade) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows, p.last = rows, rows == nil
	p.room = append(p.room[:0], copyHeader...)
	p.rest = p.room
	if rows == nil {
		p.rest = nil
	}
}

// Read returns the next bytes to the driver.
//
// It fills the buffer with as many rows as fit in about 60 KiB, and hands it out over as many calls
// as the driver makes.
func (p *tradeCopier) Read(b []byte) (n int, err error) {
	const enough = 60 << 10
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) == 0 {
		p.room = p.room[:0]
		for len(p.rows) > 0 && len(p.room) < enough {
			p.room = appendCopy(p.room, &p.rows[0])
			p.rows = p.rows[1:]
		}
		if len(p.rows) == 0 && !p.last {
			p.room = append(p.room, 0xff, 0xff)
			p.last = true
		}
		p.rest = p.room
	}
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n = copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// appendCopy appends one row: the number of columns, then each column with its length before it.
//
// The columns are in the order of tradeColumns. Numbers are big-endian, a date is 32 bits of days
// since pgEpoch, and NULL is a length of -1 without a value.
func appendCopy(b []byte, t *Trade) []byte {
	side, _ := sideText(t.Side)
	b = binary.BigEndian.AppendUint16(b, copyColumns)
	b = appendText(b, t.ID)
	b = appendInt64(b, int64(t.Seq))
	b = appendInt64(b, int64(t.AccountID))
	b = appendText(b, t.Security)
	b = appendText(b, side)
	b = appendInt64(b, t.Quantity)
	b = appendInt64(b, t.Price)
	b = appendText(b, t.Status.String())
	b = binary.BigEndian.AppendUint32(b, 4)
	b = binary.BigEndian.AppendUint32(b, uint32(t.SettlementDate-pgEpoch))
	b = appendInt64(b, t.ExecutedAt)
	b = appendInt64(b, t.BookedAt)
	b = appendInt64(b, t.UpdatedAt)
	if t.OrderID == "" {
		b = appendNull(b)
	} else {
		b = appendText(b, t.OrderID)
	}
	if t.Sequence == 0 {
		return appendNull(b)
	}
	return appendInt64(b, int64(t.Sequence))
}

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendInt64(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n))
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }
