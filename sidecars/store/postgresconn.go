package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// pgConn is one connection. One goroutine at a time.
//
// A connection is in one of three states: idle in the pool, in the hands of one transaction, or
// closed. The limits and forms of its session are set once, by dial.
type pgConn struct {
	raw    *pgx.Conn
	limits *pgLimits // the pool's
	// endless is set while the transaction has called unlimited.
	endless bool
	// cells and copier are kept between statements for their room.
	cells  pgCells
	copier tradeCopier
}

// errStalled is the cause of a statement that this process gave up.
var errStalled = errors.New("the server does not answer")

// close ends the session in order when the server still answers.
//
// It takes a second at most.
func (c *pgConn) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// A connection that cannot be closed in order is gone as well, which is enough here.
	_ = c.raw.Close(ctx)
}

// mark classifies an error: one of the server by its code, any other by what it did to the
// connection. An argument that cannot be encoded leaves the connection open, a dead network does
// not.
//
// A closed connection makes any error ErrUnavailable: the statement may or may not have run.
func (c *pgConn) mark(err error) error {
	if err == nil {
		return nil
	}
	var refused *pgconn.PgError
	away := c.raw.IsClosed()
	if errors.As(err, &refused) {
		away = away || isAway(refused.Code)
		if refused.Code == lockNotHad {
			err = fmt.Errorf("%w: %w", ErrLocked, err)
		}
	}
	if away {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}

// timed runs one exchange with the server and gives it up after limit.
//
// When the limit ends it, the driver closes the connection, and the transaction is lost with it.
// The end of the caller's own context is left to Tx.fail, which names its cause.
func (c *pgConn) timed(ctx context.Context, limit time.Duration,
	fn func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := fn(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: %w for %v", ErrUnavailable, errStalled, limit)
	}
	return err
}

// statement is timed with limits.stalled, or without a limit in a transaction that is unlimited.
func (c *pgConn) statement(ctx context.Context, fn func(context.Context) error) error {
	if c.endless {
		return fn(ctx)
	}
	return c.timed(ctx, c.limits.stalled, fn)
}

// unlimited lifts the limits of server and process until the transaction ends.
func (c *pgConn) unlimited(ctx context.Context) error {
	err := c.control(ctx, "set local statement_timeout = 0; "+
		"set local idle_in_transaction_session_timeout = 0")
	c.endless = err == nil
	return err
}

// control runs begin, commit, rollback or what sets the limits of a transaction. A commit that the
// server turned into a rollback is an error.
//
// The server answers ROLLBACK to the commit of a transaction in which a statement has failed, and
// reports no error.
func (c *pgConn) control(ctx context.Context, sql string) error {
	return c.timed(ctx, c.limits.control, func(ctx context.Context) error {
		tag, err := c.raw.Exec(ctx, sql)
		if err == nil && sql == "commit" && tag.String() != "COMMIT" {
			err = fmt.Errorf("the server answered %q", tag.String())
		}
		return c.mark(err)
	})
}

// exec runs one statement and returns how many rows it touched.
func (c *pgConn) exec(ctx context.Context, sql string, args []any) (int64, error) {
	args, err := pgArgs(args)
	if err != nil {
		return 0, err
	}
	var tag pgconn.CommandTag
	err = c.statement(ctx, func(ctx context.Context) (err error) {
		tag, err = c.raw.Exec(ctx, sql, args...)
		return c.mark(err)
	})
	return tag.RowsAffected(), err
}

// script runs the statements of a migration, which have no arguments.
func (c *pgConn) script(ctx context.Context, sql string) error {
	_, err := c.exec(ctx, sql, nil)
	return err
}

// query runs each for the rows. The limit of statement covers the whole walk, the time in each
// included.
func (c *pgConn) query(ctx context.Context, sql string, each func(*Row) error, args []any) error {
	args, err := pgArgs(args)
	if err != nil {
		return err
	}
	return c.statement(ctx, func(ctx context.Context) error {
		return c.walk(ctx, sql, each, args)
	})
}

// walk reads the rows as they arrive and keeps one at a time. Rows that each did not want are read
// and dropped when it returns an error: the connection must be free for the next statement.
func (c *pgConn) walk(ctx context.Context, sql string, each func(*Row) error, args []any) error {
	rows, err := c.raw.Query(ctx, sql, args...)
	if err != nil {
		return c.mark(err)
	}
	defer rows.Close() // also when each panics
	c.cells = pgCells{fields: rows.FieldDescriptions(), types: c.raw.TypeMap()}
	row := &Row{cells: &c.cells}
	for rows.Next() {
		c.cells.values = rows.RawValues()
		if err := each(row); err != nil {
			return err
		}
	}
	return c.mark(rows.Err())
}

// pgArgs converts the arguments of types that pgx does not know.
//
// It copies the slice: the caller may use its own again, also for a second try of the transaction.
// A nil []byte becomes NULL, as in SQLite.
func pgArgs(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, arg := range args {
		if n, ok, err := integer(arg); ok {
			if err != nil {
				return nil, fmt.Errorf("$%d: %w", i+1, err)
			}
			out[i] = n
			continue
		}
		switch a := arg.(type) {
		case nil, string, bool:
			out[i] = a
		case []byte:
			if a != nil {
				out[i] = a
			}
		case Date:
			out[i] = pgtype.Date{Time: a.Time(), Valid: true}
		case numbers:
			list := make([]int64, len(a))
			for i, v := range a {
				list[i] = int64(v)
			}
			out[i] = list
		default:
			return nil, fmt.Errorf("$%d: argument of type %T", i+1, arg)
		}
	}
	return out, nil
}
