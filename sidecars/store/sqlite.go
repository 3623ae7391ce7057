package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"zombiezen.com/go/sqlite"
)

// sqliteFile is the database in the data directory.
const sqliteFile = "posttrade.db"

// sqliteMagic begins every SQLite file that is not empty.
const sqliteMagic = "SQLite format 3\x00"

// sqliteEngine is one file: one connection that writes, a few that read. The goroutine that takes a
// connection out of its channel holds it; nil in the channel means "not opened yet".
//
// SQLite allows one writer at a time, so one connection is enough and the channel is the queue for
// it: callers of this process never meet each other's lock. In WAL mode readers neither wait for
// the writer nor hinder it.
type sqliteEngine struct {
	// path and busy do not change; a connection that is opened again uses both.
	path    string
	busy    time.Duration
	writer  chan *sqliteConn // one token
	readers chan *sqliteConn
	waiting atomic.Int32 // callers that wait for the writer
}

// openSQLite makes the folder and the file, and checks the first bytes without taking a lock.
//
// No connection is opened: the first call does that.
func openSQLite(o Options) (*sqliteEngine, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: make the database's folder: %w", err)
	}
	e := &sqliteEngine{
		path: filepath.Join(o.Dir, sqliteFile), busy: o.BusyTimeout,
		writer: make(chan *sqliteConn, 1), readers: make(chan *sqliteConn, o.ReadConns),
	}
	if err := probeSQLite(e.path); err != nil {
		return nil, fmt.Errorf("store: open the database's file: %w", err)
	}
	e.writer <- nil
	for range o.ReadConns {
		e.readers <- nil
	}
	return e, nil
}

// probeSQLite makes the file with no access for other users (SQLite gives the log beside it the
// same mode), and refuses a file that is not a SQLite database.
//
// A file of 1 to 15 bytes is refused too. It does not look further: damage behind the first bytes
// is found by SQLite or by DB.Check.
func probeSQLite(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	head := make([]byte, len(sqliteMagic))
	n, err := io.ReadFull(f, head)
	switch {
	case errors.Is(err, io.EOF): // empty: new
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case !bytes.Equal(head[:n], []byte(sqliteMagic)):
		return fmt.Errorf("%s is not a SQLite database: %w: %w", path, ErrUnavailable, ErrDamaged)
	}
	return nil
}

// hold and release do nothing: the lock of data.dir is this database's too.
func (e *sqliteEngine) hold(context.Context) error { return nil }
func (e *sqliteEngine) release()                   {}

// connect opens the writer, whose pragmas turn WAL on. Readers open when they are needed.
func (e *sqliteEngine) connect(ctx context.Context) error {
	return e.with(ctx, e.writer, func(*sqliteConn) error { return nil })
}

// write takes the file's write lock at the beginning. A transaction that took it at its first write
// could fail there, because another process wrote in between, and would have to be repeated.
func (e *sqliteEngine) write(ctx context.Context, fn func(*Tx) error) error {
	return e.with(ctx, e.writer, func(c *sqliteConn) error {
		return c.transact(ctx, "begin immediate", fn)
	})
}

func (e *sqliteEngine) read(ctx context.Context, fn func(*Tx) error) error {
	return e.with(ctx, e.readers, func(c *sqliteConn) error {
		return c.transact(ctx, "begin deferred", fn)
	})
}

// with lends a connection to fn, and opens it first when it is not open.
//
// The channel gets its token back in every case, as nil when the connection was closed. The end of
// ctx interrupts a statement that runs on the connection.
func (e *sqliteEngine) with(ctx context.Context, pool chan *sqliteConn,
	fn func(*sqliteConn) error) (err error) {
	c, err := e.take(ctx, pool)
	if err != nil {
		return err
	}
	defer func() { pool <- c }()
	if c == nil {
		if c, err = e.dial(ctx, pool == e.writer); err != nil {
			return err
		}
	}
	c.db.SetInterrupt(ctx.Done())
	defer func() { c.detach() }() // also when fn panics
	err = fn(c)
	if errors.Is(err, ErrUnavailable) && !isBusy(err) {
		// The disk failed or is full: the next caller starts with a new connection.
		c.detach()
		err = errors.Join(err, c.close())
		c = nil
	}
	return err
}

// take waits for a connection, and counts the callers that wait for the writer.
func (e *sqliteEngine) take(ctx context.Context, pool chan *sqliteConn) (*sqliteConn, error) {
	if pool == e.writer {
		e.waiting.Add(1)
		defer e.waiting.Add(-1)
	}
	select {
	case c := <-pool:
		return c, nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// dial opens one connection. With synchronous=FULL a commit survives a power cut.
//
// The other pragmas bound memory to 16 MiB of pages a connection, keep sorts out of the file
// system, shrink the log to 64 MiB when it is reset, and fold it into the file every 4,000 pages.
// The query_only of the readers makes a write in a Read an error.
func (e *sqliteEngine) dial(ctx context.Context, writer bool) (*sqliteConn, error) {
	db, err := sqlite.OpenConn(e.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fmt.Errorf("store: open a connection: %w", sqliteError(err))
	}
	db.SetBusyTimeout(0) // transact waits itself, so that it notices the end of its context
	c := &sqliteConn{db: db, busy: e.busy, waiting: &e.waiting, stmts: make(map[string]*sqliteStmt)}
	pragmas := []string{"pragma journal_mode = wal",
		"pragma synchronous = full", "pragma foreign_keys = on",
		"pragma trusted_schema = off", "pragma cell_size_check = on", "pragma temp_store = memory",
		"pragma cache_size = -16384", "pragma journal_size_limit = 67108864",
		"pragma wal_autocheckpoint = 4000"}
	if !writer {
		pragmas = append(pragmas, "pragma query_only = on")
	}
	for _, p := range pragmas {
		if err := c.patiently(ctx, func() error { return c.run(p) }); err != nil {
			return nil, errors.Join(fmt.Errorf("store: %s: %w", p, err), db.Close())
		}
	}
	return c, nil
}

// close takes every token and keeps it. The caller has waited for every call to end (DB.Close), so
// each token is there.
func (e *sqliteEngine) close() (err error) {
	for range cap(e.readers) { // the readers first: the last close folds the log into the file
		err = errors.Join(err, (<-e.readers).close())
	}
	return errors.Join(err, (<-e.writer).close())
}
