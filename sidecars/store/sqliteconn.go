package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"

	"posttrade/ring"
)

// sqliteConn is one connection and its prepared statements. One goroutine at a time.
type sqliteConn struct {
	db   *sqlite.Conn
	busy time.Duration // how long to wait for another connection's lock
	// waiting is how many callers wait for the connection that writes.
	waiting *atomic.Int32
	// stmts grows with the number of different texts. Callers build texts from a fixed set of
	// conditions and pass values as arguments, so the set is small.
	stmts map[string]*sqliteStmt

	day      Date // the settlement date rendered last: rows come in runs of one date
	dayText  string
	textRoom []byte        // room for a column that no caller keeps
	breath   ring.Breather // of the statement under way
}

// detach frees the connection from the call that used it.
//
// Without it the end of that call's context would interrupt the statements of the next one.
func (c *sqliteConn) detach() {
	if c != nil {
		c.db.SetInterrupt(nil)
	}
}

func (c *sqliteConn) close() error {
	if c == nil {
		return nil
	}
	if err := c.db.Close(); err != nil {
		return fmt.Errorf("store: close: %w", err)
	}
	return nil
}

// transact runs fn between begin and commit.
//
// A commit can meet the lock of another process as well, so it waits too. When ctx ends before the
// commit begins, everything is rolled back.
func (c *sqliteConn) transact(ctx context.Context, begin string, fn func(*Tx) error) (err error) {
	if err := c.patiently(ctx, func() error { return c.run(begin) }); err != nil {
		return fmt.Errorf("store: %s: %w", begin, err)
	}
	committed := false
	defer func() { // also when fn panics
		if !committed {
			c.db.SetInterrupt(nil)
			// The error of the rollback says nothing new: SQLite has already rolled back by itself.
			_ = c.run("rollback")
		}
	}()
	tx := &Tx{ctx: ctx, conn: c}
	if err := tx.finish(fn(tx)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	c.db.SetInterrupt(nil) // a commit that has begun runs to its end, so that its outcome is known
	if err := c.patiently(context.WithoutCancel(ctx), func() error {
		return c.run("commit")
	}); err != nil {
		return fmt.Errorf("store: commit: %w", err)
	}
	committed = true
	return nil
}

// patiently repeats a statement that another connection's lock refuses, until the busy timeout.
// SQLite's own busy handler would sleep past the end of the context.
//
// The pauses double from 1 ms to 25 ms. Only SQLITE_BUSY is repeated. The statement has changed
// nothing then, so a repetition is safe.
func (c *sqliteConn) patiently(ctx context.Context, try func() error) error {
	err := try()
	if err != nil && ctx.Err() != nil {
		return ended(ctx)
	}
	if !isBusy(err) {
		return sqliteError(err)
	}
	const longest = 25 * time.Millisecond
	deadline := time.NewTimer(c.busy)
	defer deadline.Stop()
	for wait := time.Millisecond; isBusy(err); wait = min(2*wait, longest) {
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
			if err = try(); err != nil && ctx.Err() != nil {
				pause.Stop()
				return ended(ctx) // the context ended during the attempt
			}
		case <-deadline.C:
			pause.Stop()
			return sqliteError(err)
		case <-ctx.Done():
			pause.Stop()
			return ended(ctx)
		}
	}
	return sqliteError(err)
}

func isBusy(err error) bool { return sqlite.ErrCode(err).ToPrimary() == sqlite.ResultBusy }

// sqliteError marks errors that may go away by themselves: a lock, a full or failing disk, a file
// that was moved.
//
// Any other error, such as a violated check, is returned as it is: the statement is at fault.
func sqliteError(err error) error {
	if err == nil {
		return nil
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultBusy, sqlite.ResultLocked:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrLocked, err)
	case sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultCantOpen,
		sqlite.ResultReadOnly, sqlite.ResultNoMem, sqlite.ResultProtocol, sqlite.ResultPerm:
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB:
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, ErrDamaged, err)
	}
	return err
}

// run executes a statement that has no parameters, and ignores its rows.
func (c *sqliteConn) run(sql string) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	for more := true; more && err == nil; {
		more, err = s.Step()
	}
	return errors.Join(err, quiet(s.Reset(), err))
}

// quiet drops the error of a reset when it repeats the error of the step before it.
func quiet(reset, step error) error {
	if step != nil {
		return nil
	}
	return reset
}

// exec runs a statement to its end. The context is that of the connection (with), which interrupts
// the step.
func (c *sqliteConn) exec(_ context.Context, sql string, args []any) (int64, error) {
	s, err := c.bound(sql, args)
	if err != nil {
		return 0, sqliteError(err)
	}
	for more := true; more && err == nil; {
		more, err = s.Step()
	}
	affected := int64(c.db.Changes())
	if err = errors.Join(err, quiet(s.Reset(), err)); err != nil {
		return 0, sqliteError(err)
	}
	return affected, nil
}

// query walks the rows. The statement's reset ends the walk, also when each stopped early: until
// then it would hold its snapshot.
func (c *sqliteConn) query(_ context.Context, sql string, each func(*Row) error, args []any) error {
	s, err := c.bound(sql, args)
	if err != nil {
		return sqliteError(err)
	}
	defer s.Reset() // also when each panics; its error would repeat the error of the step
	c.breath = ring.NewBreather()
	row := &Row{cells: sqliteCells{s.Stmt, c}}
	for {
		c.breath.Step(rowsPerBreath)
		more, err := s.Step()
		if err != nil || !more {
			return sqliteError(err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// rowsPerBreath is how many rows are read between two breaths: some ten microseconds.
const rowsPerBreath = 16

// unlimited does nothing: no limit ends a statement.
func (c *sqliteConn) unlimited(context.Context) error { return nil }

// script runs the statements of a migration, which must not end in a comment.
//
// They are not kept in the cache, because they never run again.
func (c *sqliteConn) script(_ context.Context, sql string) error {
	for {
		if sql = strings.TrimSpace(sql); sql == "" {
			return nil
		}
		stmt, rest, err := c.db.PrepareTransient(sql)
		if err != nil {
			return sqliteError(err)
		}
		for more := true; more && err == nil; {
			more, err = stmt.Step()
		}
		if err = errors.Join(err, quiet(stmt.Finalize(), err)); err != nil {
			return sqliteError(err)
		}
		sql = sql[len(sql)-rest:]
	}
}
