package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
)

// sqliteFile is the database in the data directory.
const sqliteFile = "posttrade.db"

// sqliteMagic begins every SQLite file that is not empty.
const sqliteMagic = "SQLite format 3\x00"

// sqliteEngine is one file: one connection that writes, a few that read. The goroutine that takes a
// connection out of its channel holds it; nil in the channel means "not opened yet".
type sqliteEngine struct {
	path    string
	busy    time.Duration
	writer  chan *sqliteConn // one token
	readers chan *sqliteConn
}

// openSQLite makes the folder and the file, and checks the first bytes without taking a lock.
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
		return fmt.Errorf("%s is not a SQLite database", path)
	}
	return nil
}

func (e *sqliteEngine) connect(ctx context.Context) error {
	return e.with(ctx, e.writer, func(*sqliteConn) error { return nil })
}

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

// check runs SQLite's own check of the whole file.
func (e *sqliteEngine) check(ctx context.Context) error {
	return e.read(ctx, func(t *Tx) error {
		var damage error
		err := t.Query("pragma quick_check(10)", func(r *Row) error {
			if text := r.Text(0); text != "ok" {
				damage = errors.Join(damage,
					fmt.Errorf("store: check: %w: %w: %s", ErrUnavailable, ErrDamaged, text))
			}
			return nil
		})
		return errors.Join(err, damage)
	})
}

// with lends a connection to fn, and opens it first when it is not open.
func (e *sqliteEngine) with(ctx context.Context, pool chan *sqliteConn,
	fn func(*sqliteConn) error) (err error) {
	var c *sqliteConn
	select {
	case c = <-pool:
	case <-ctx.Done():
		return ended(ctx)
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

// dial opens one connection. With synchronous=FULL a commit survives a power cut.
func (e *sqliteEngine) dial(ctx context.Context, writer bool) (*sqliteConn, error) {
	db, err := sqlite.OpenConn(e.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, fmt.Errorf("store: open a connection: %w", sqliteError(err))
	}
	db.SetBusyTimeout(0) // transact waits itself, so that it notices the end of its context
	c := &sqliteConn{db: db, busy: e.busy, stmts: make(map[string]*sqliteStmt)}
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

func (e *sqliteEngine) close() (err error) {
	for range cap(e.readers) { // the readers first: the last close folds the log into the file
		err = errors.Join(err, (<-e.readers).close())
	}
	return errors.Join(err, (<-e.writer).close())
}
