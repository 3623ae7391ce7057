package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Tx is one transaction or one snapshot. It belongs to the function that received it.
//
// One goroutine uses it, inside of the function. After the return of that function it must not be
// used.
type Tx struct {
	ctx     context.Context
	dialect Dialect
	conn    conn
	failed  error // the first statement that failed; it dooms the transaction
	walking bool  // a query's rows are being walked
}

// conn is a connection inside of a transaction. Its errors are classified already.
//
// The callers are the methods of Tx, which wrap the errors with the statement and doom the
// transaction.
type conn interface {
	// exec and query take arguments of the types that Exec lists.
	exec(ctx context.Context, sql string, args []any) (affected int64, err error)
	query(ctx context.Context, sql string, each func(*Row) error, args []any) error
	// script runs several statements, without arguments; insertTrades takes rows that are checked.
	script(ctx context.Context, sql string) error
	// unlimited does what Tx.Unlimited promises.
	unlimited(ctx context.Context) error
	insertTrades(ctx context.Context, rows []Trade) (inserted int, err error)
	// insertSome inserts the first rows: fewer than all while another caller waits for a write lock.
	insertSome(ctx context.Context, rows []Trade) (done, inserted int, err error)
}

// errWalking is the error of using a Tx inside of a query's each.
var errWalking = errors.New("a statement while the rows of a query are being walked")

// Dialect returns the kind of database of this transaction.
func (t *Tx) Dialect() Dialect { return t.dialect }

// Exec runs one statement and returns how many rows it touched. Placeholders are $1..$n in
// order of first appearance; arguments are int, int64, uint32, uint64 up to MaxInt64, string,
// bool, []byte, Date and nil.
//
// sql must come from a fixed set of texts, because each dialect keeps prepared statements; values
// go into args. An argument of any other type, or too many arguments, is an error that dooms the
// transaction, like every error of the database.
func (t *Tx) Exec(sql string, args ...any) (affected int64, err error) {
	if err := t.usable(sql); err != nil {
		return 0, err
	}
	affected, err = t.conn.exec(t.ctx, sql, args)
	return affected, t.fail("exec", sql, err)
}

// Query runs one statement and calls each for its rows, in order. The Row is valid during the call
// only. An error of each ends the query and is returned as it is.
//
// An error of each does not doom the transaction: when the function returns nil all the same, what
// it wrote is committed. A statement inside of each is errWalking, which does.
func (t *Tx) Query(sql string, each func(*Row) error, args ...any) error {
	if err := t.usable(sql); err != nil {
		return err
	}
	t.walking = true
	defer func() { t.walking = false }()
	var stopped error
	err := t.conn.query(t.ctx, sql, func(r *Row) error {
		stopped = each(r)
		if stopped == nil {
			return r.err
		}
		return stopped
	}, args)
	if stopped != nil {
		return stopped
	}
	return t.fail("query", sql, err)
}

// Unlimited lets each statement from here to the end of the transaction take any time, and its
// caller any time between two statements: for one whose work grows with the table, or whose rows go
// to a client that may be slow.
//
// PostgreSQL has such limits, also those that the URL sets; SQLite has none. A wait for a lock
// stays limited. The end of the context ends a statement as before, and so does a connection that
// the network has lost.
func (t *Tx) Unlimited() error {
	if err := t.usable("unlimited"); err != nil {
		return err
	}
	return t.fail("set", "unlimited", t.conn.unlimited(t.ctx))
}

// Cursor returns the position of the named follower: 0 when it has not begun.
func (t *Tx) Cursor(name string) (value uint64, err error) {
	err = t.Query("select value from cursors where name = $1", func(r *Row) error {
		value = uint64(r.Int64(0))
		return nil
	}, name)
	return value, err
}

// HoldCursor returns the position of the named follower, as Cursor does. Until this transaction
// ends no other transaction can move it, on PostgreSQL too: the statement inserts the row, or
// overwrites it with its own value, and so locks it.
//
// It needs a write transaction. A cursor that does not exist is made with the value 0.
func (t *Tx) HoldCursor(name string) (value uint64, err error) {
	err = t.Query("insert into cursors (name, value) values ($1, 0) "+
		"on conflict (name) do update set value = cursors.value returning value", func(r *Row) error {
		value = uint64(r.Int64(0))
		return nil
	}, name)
	return value, err
}

// SetCursor notes the position of the named follower, in this transaction.
//
// It takes any value, also a lower one: going back is how a follower books a range again.
func (t *Tx) SetCursor(name string, value uint64) error {
	return t.SetCursors(Cursor{name, value})
}

// Cursor is the position of the named follower.
//
// What a value counts is decided by the follower that owns the name; at most MaxInt64.
type Cursor struct {
	Name  string
	Value uint64
}

// SetCursors notes several cursors of different names, in this transaction and in one statement.
func (t *Tx) SetCursors(cursors ...Cursor) error {
	if len(cursors) == 0 {
		return nil
	}
	var sql strings.Builder
	args := make([]any, 0, 2*len(cursors))
	sql.WriteString("insert into cursors (name, value) values ")
	for i, c := range cursors {
		if i > 0 {
			sql.WriteString(", ")
		}
		fmt.Fprintf(&sql, "($%d, $%d)", 2*i+1, 2*i+2)
		args = append(args, c.Name, c.Value)
	}
	sql.WriteString(" on conflict (name) do update set value = excluded.value")
	_, err := t.Exec(sql.String(), args...)
	return err
}

// usable refuses a statement on a transaction that cannot run one.
func (t *Tx) usable(sql string) error {
	if t.failed != nil {
		return t.failed
	}
	if t.walking {
		return t.fail("exec", sql, errWalking)
	}
	return nil
}

// fail wraps the error of a statement and dooms the transaction with it.
//
// When the transaction's context has ended, that is the error, whatever the statement said about
// it. The text of sql is shortened; arguments are never part of an error.
func (t *Tx) fail(verb, sql string, err error) error {
	if err == nil {
		return nil
	}
	if t.ctx.Err() != nil {
		err = ended(t.ctx)
	} else {
		err = fmt.Errorf("store: %s %q: %w", verb, brief(sql), err)
	}
	if t.failed == nil {
		t.failed = err
	}
	return err
}

// finish returns the result of a transaction, given what its function returned: a failed statement
// is an error even when the function ignored it.
func (t *Tx) finish(err error) error {
	if err == nil {
		return t.failed
	}
	return err
}

// brief returns enough of a statement to recognise it by.
func brief(sql string) string {
	const most = 60
	sql = strings.Join(strings.Fields(sql), " ")
	if len(sql) > most {
		sql = sql[:most] + "..."
	}
	return sql
}

// integer returns the value of an argument that is a whole number.
//
// ok is false for an argument of another type. A uint64 above MaxInt64 is an error, because both
// databases store signed numbers.
func integer(arg any) (n int64, ok bool, err error) {
	switch a := arg.(type) {
	case int:
		return int64(a), true, nil
	case int64:
		return a, true, nil
	case uint32:
		return int64(a), true, nil
	case uint64:
		if a > math.MaxInt64 {
			return 0, true, fmt.Errorf("argument %d is above %d", a, int64(math.MaxInt64))
		}
		return int64(a), true, nil
	}
	return 0, false, nil
}
