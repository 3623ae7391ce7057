package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"zombiezen.com/go/sqlite"

	"posttrade/ring"
)

// The comparator runs the bare statement; ours adds only what makes it idempotent.
const (
	bareInsert = "insert into trades (" + tradeColumns + ") " +
		"values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
	insertSQLite = bareInsert + " on conflict do nothing"
)

// insertTrades runs one prepared statement per row. "on conflict do nothing" without a target
// covers both unique columns.
//
// A row that changes nothing counts 0 in Changes.
func (c *sqliteConn) insertTrades(_ context.Context, rows []Trade) (inserted int, err error) {
	return c.insertEach(insertSQLite, rows)
}

// rowsPerTurn is how many rows of a batch are written before the write lock may go to another
// caller: some milliseconds of work.
const rowsPerTurn = 256

// insertSome looks after each turn whether another caller waits for the write lock. The thread may
// have a low priority: on busy cores a whole batch would hold the lock for most of a second.
func (c *sqliteConn) insertSome(ctx context.Context, rows []Trade) (done, inserted int, err error) {
	for done < len(rows) && (done == 0 || c.waiting.Load() == 0) {
		turn := rows[done:min(done+rowsPerTurn, len(rows))]
		n, err := c.insertTrades(ctx, turn)
		if err != nil {
			return 0, 0, err
		}
		done, inserted = done+len(turn), inserted+n
	}
	return done, inserted, nil
}

// insertEach runs an insert of tradeColumns once per row.
//
// It breathes before each row: the thread may have a low priority, and others wait for its core. An
// error leaves the rows before it in the transaction, which the caller rolls back.
func (c *sqliteConn) insertEach(sql string, rows []Trade) (inserted int, err error) {
	s, err := c.prepare(sql)
	if err != nil {
		return 0, sqliteError(err)
	}
	c.breath = ring.NewBreather()
	for i := range rows {
		c.breath.Breathe()
		c.bindTrade(s, &rows[i])
		if _, err := s.Step(); err != nil {
			return 0, sqliteError(fmt.Errorf("id=%q: %w", rows[i].ID, err))
		}
		if err := s.Reset(); err != nil {
			return 0, sqliteError(err)
		}
		inserted += c.db.Changes()
	}
	return inserted, nil
}

// bindTrade binds the columns of tradeColumns.
//
// The driver's typed calls take the place of Exec's arguments, which would allocate for each value.
// The text of the settlement date is kept: rows of one batch mostly have one date.
func (c *sqliteConn) bindTrade(s *sqliteStmt, t *Trade) {
	if c.dayText == "" || t.SettlementDate != c.day {
		c.day, c.dayText = t.SettlementDate, t.SettlementDate.String()
	}
	side, _ := sideText(t.Side)
	s.BindText(1, t.ID)
	s.BindInt64(2, int64(t.Seq))
	s.BindInt64(3, int64(t.AccountID))
	s.BindText(4, t.Security)
	s.BindText(5, side)
	s.BindInt64(6, t.Quantity)
	s.BindInt64(7, t.Price)
	s.BindText(8, t.Status.String())
	s.BindText(9, c.dayText)
	s.BindInt64(10, t.ExecutedAt)
	s.BindInt64(11, t.BookedAt)
	s.BindInt64(12, t.UpdatedAt)
	if t.OrderID == "" {
		s.BindNull(13)
	} else {
		s.BindText(13, t.OrderID)
	}
	if t.Sequence == 0 {
		s.BindNull(14)
	} else {
		s.BindInt64(14, int64(t.Sequence))
	}
}

// json renders the list for SQLite's json_each.
func (n numbers) json() string {
	b := []byte{'['}
	for i, v := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(v), 10)
	}
	return string(append(b, ']'))
}

// sqliteCells reads the current row of a statement.
//
// SQLite gives every value a type of its own. The tables are strict, so the values of a column have
// its type; only those of an expression may differ.
type sqliteCells struct {
	s *sqlite.Stmt
	c *sqliteConn
}

// errColumn says that a query has no such column.
var errColumn = errors.New("no such column")

// of checks that column i holds the wanted type; false for NULL.
func (r sqliteCells) of(i int, want sqlite.ColumnType) (bool, error) {
	if i < 0 || i >= r.s.ColumnCount() {
		return false, errColumn
	}
	switch got := r.s.ColumnType(i); got {
	case want:
		return true, nil
	case sqlite.TypeNull:
		return false, nil
	default:
		return false, fmt.Errorf("it holds %v", got)
	}
}

func (r sqliteCells) null(i int) bool {
	return i >= 0 && i < r.s.ColumnCount() && r.s.ColumnType(i) == sqlite.TypeNull
}

func (r sqliteCells) int64(i int) (int64, error) {
	if some, err := r.of(i, sqlite.TypeInteger); !some {
		return 0, err
	}
	return r.s.ColumnInt64(i), nil
}

func (r sqliteCells) text(i int) (string, error) {
	if some, err := r.of(i, sqlite.TypeText); !some {
		return "", err
	}
	return r.s.ColumnText(i), nil
}

// scratch copies into the connection's room, which the next call overwrites.
func (r sqliteCells) scratch(i int) ([]byte, error) {
	if some, err := r.of(i, sqlite.TypeText); !some {
		return nil, err
	}
	n := r.s.ColumnLen(i)
	if n > cap(r.c.textRoom) {
		r.c.textRoom = make([]byte, n)
	}
	b := r.c.textRoom[:n]
	r.s.ColumnBytes(i, b)
	return b, nil
}

func (r sqliteCells) bool(i int) (bool, error) {
	n, err := r.int64(i)
	if err == nil && n != 0 && n != 1 {
		err = fmt.Errorf("it holds %d", n)
	}
	return n == 1, err
}

// date keeps the last date and its text, in the fields that bindTrade uses as well: they are always
// a pair.
func (r sqliteCells) date(i int) (Date, error) {
	b, err := r.scratch(i)
	if b == nil || err != nil {
		return 0, err
	}
	if string(b) != r.c.dayText { // rows come in runs of one date
		day, err := ParseDate(string(b))
		if err != nil {
			return 0, err
		}
		r.c.day, r.c.dayText = day, string(b)
	}
	return r.c.day, nil
}

func (r sqliteCells) bytes(i int) ([]byte, error) {
	if some, err := r.of(i, sqlite.TypeBlob); !some {
		return nil, err
	}
	b := make([]byte, r.s.ColumnLen(i))
	r.s.ColumnBytes(i, b)
	return b, nil
}
