package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Bare is a database that has only the table of trades. It writes without idempotency, cursors and
// reported errors, and is what other ways to write are compared with. One goroutine at a time.
//
// Only perf uses it: the tests of app refuse any other use of a file with this prefix.
type Bare struct {
	// write adds rows in one transaction; close ends the only connection.
	write func(ctx context.Context, rows []Trade) error
	close func() error
}

// Write adds rows in one transaction. None of them may be in the table yet.
//
// A row that the table has already is an error, and no row of the batch is stored. The rows are not
// checked (Trade.check).
func (b *Bare) Write(ctx context.Context, rows []Trade) error { return b.write(ctx, rows) }

// Close closes the connection, and drops PostgreSQL's table.
func (b *Bare) Close() error { return b.close() }

// OpenBareInsert makes a SQLite file in dir, which must hold none, for the bare insert: the table,
// the indexes, the pragmas and the statement of InsertTrades without "on conflict do nothing".
//
// It fails when dir holds a database: the comparator must not fill one that is in use. The file
// stays after Close; the caller removes dir.
func OpenBareInsert(ctx context.Context, dir string) (_ *Bare, err error) {
	if _, err := os.Stat(filepath.Join(dir, sqliteFile)); err == nil {
		return nil, fmt.Errorf("store: compare: %s holds a database", dir)
	}
	definition, err := tradesDefinition(SQLite)
	if err != nil {
		return nil, err
	}
	e, err := openSQLite(Options{Dir: dir, ReadConns: 1, BusyTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	err = e.with(ctx, e.writer, func(c *sqliteConn) error { return c.script(ctx, definition) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("store: compare: %w", err), e.close())
	}
	return &Bare{
		write: func(ctx context.Context, rows []Trade) error {
			return e.with(ctx, e.writer, func(c *sqliteConn) error { return c.insertBare(rows) })
		},
		close: e.close,
	}, nil
}

// insertBare inserts rows in a transaction of their own.
//
// It does without Tx and patiently: no other connection competes for the lock, so a busy file is an
// error at once.
func (c *sqliteConn) insertBare(rows []Trade) error {
	if err := c.run("begin immediate"); err != nil {
		return err
	}
	if _, err := c.insertEach(bareInsert, rows); err != nil {
		return errors.Join(err, c.run("rollback"))
	}
	return c.run("commit")
}

// bareSchema is the schema that holds OpenBareCopy's table. Close drops it.
const bareSchema = "posttrade_bare"

// OpenBareCopy makes a table in PostgreSQL for the bare COPY: the table and the indexes of
// InsertTrades in a schema of their own, and one COPY per transaction.
//
// The schema keeps the comparator's table apart from one named trades in the database of the URL.
// The call fails when the schema exists, which is so after a comparator that was not closed.
func OpenBareCopy(ctx context.Context, databaseURL string) (*Bare, error) {
	e, err := openPostgres(Options{URL: databaseURL, ReadConns: 1, BusyTimeout: 30 * time.Second})
	if err != nil {
		return nil, err
	}
	definition, err := tradesDefinition(Postgres)
	if err != nil {
		return nil, err
	}
	c, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.exec(ctx,
		"create schema "+bareSchema+"; set search_path = "+bareSchema+"; "+definition, nil)
	if err != nil {
		c.close()
		return nil, fmt.Errorf("store: compare: %w", err)
	}
	return &Bare{
		write: func(ctx context.Context, rows []Trade) error {
			_, err := c.copier.run(ctx, c.raw.PgConn(), rows)
			return c.mark(err)
		},
		close: func() error {
			defer c.close()
			_, err := c.exec(context.WithoutCancel(ctx), "drop schema "+bareSchema+" cascade", nil)
			return err
		},
	}, nil
}

// tradesDefinition is the migration that makes the table.
//
// It is the first of the plan. The comparator so has the columns, checks and indexes with which the
// table began, without those that later migrations add.
func tradesDefinition(d Dialect) (string, error) {
	all, err := plan(migrationFiles, d)
	if err != nil {
		return "", err
	}
	return all[0].sql, nil
}
