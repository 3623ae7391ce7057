package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Dialect is the kind of database behind a DB.
type Dialect uint8

// The two databases.
const (
	SQLite Dialect = iota
	Postgres
)

// String returns the name that the metrics, the log and the migrations' folders use.
func (d Dialect) String() string {
	if d == Postgres {
		return "postgres"
	}
	return "sqlite"
}

// ErrUnavailable says that the database cannot be reached, is locked, is full or is not migrated.
// The request is not at fault: the caller may try again later.
var ErrUnavailable = errors.New("database is unavailable")

// ErrMigration says that this build cannot use the schema in the database. It comes together with
// ErrUnavailable; only a person can repair it.
var ErrMigration = errors.New("schema refused")

// ErrDamaged says that SQLite found its file damaged. It comes together with ErrUnavailable; only a
// person can repair it.
var ErrDamaged = errors.New("database file is damaged")

// ErrClosed says that the DB was closed. It comes together with ErrUnavailable.
var ErrClosed = errors.New("database was closed")

// Options say where the database is.
type Options struct {
	URL         string        // postgres://...; "" = SQLite
	Dir         string        // of SQLite's file, posttrade.db; made when missing
	Logger      *slog.Logger  // nil = none
	ReadConns   int           // how many Reads run at once; 0 = 4
	BusyTimeout time.Duration // how long to wait for a lock of another session; 0 = 5 s
}

// engine holds the operations that differ between the two databases.
type engine interface {
	// connect proves that a connection can be made.
	connect(ctx context.Context) error
	write(ctx context.Context, fn func(*Tx) error) error
	read(ctx context.Context, fn func(*Tx) error) error
	// check reads the whole database where the engine can do so.
	check(ctx context.Context) error
	close() error
}

// DB is one database. Any goroutine may use it.
type DB struct {
	options Options
	dialect Dialect
	engine  engine
	plan    []migration
	log     *slog.Logger

	belonging *Belonging // nil: any process that opens it may use it

	life context.Context // ends with Close, which ends every call under way too
	end  context.CancelCauseFunc

	mu     sync.Mutex // guards closed and found; no call joins ops once a Wait has begun
	closed bool
	ops    sync.WaitGroup

	preparing chan struct{} // holds a token while no goroutine migrates
	prepared  atomic.Bool   // set once, when every migration is applied

	found [2]finding // of the last read and the last write; guarded by mu
}

// access is the purpose of an attempt. A lock stops writers and lets readers pass, so each has its
// own finding: otherwise the state would change with every retry of a writer.
type access uint8

const (
	reading access = iota
	writing
)

// finding is the result of the last attempt of a kind: the trouble, "" when there is none, and
// whether the trouble is that another history fills the database.
type finding struct {
	trouble string
	foreign bool
}

// Open returns the database that o describes. It connects to nothing. It makes and checks SQLite's
// folder and file (mode 0600), or parses a PostgreSQL URL. Ready does the rest.
func Open(o Options) (*DB, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ReadConns <= 0 {
		o.ReadConns = 4
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	d := &DB{options: o, log: o.Logger, preparing: make(chan struct{}, 1)}
	var err error
	if o.URL == "" {
		d.dialect = SQLite
		d.engine, err = openSQLite(o)
	} else {
		d.dialect = Postgres
		d.engine, err = openPostgres(o)
	}
	if err != nil {
		return nil, err
	}
	if d.plan, err = plan(migrationFiles, d.dialect); err != nil {
		return nil, err
	}
	d.preparing <- struct{}{}
	d.found[writing].trouble = "not connected yet"
	d.life, d.end = context.WithCancelCause(context.Background())
	return d, nil
}

// Twin opens the same database a second time, with connections of its own.
func (d *DB) Twin() (*DB, error) { return Open(d.options) }

// Dialect returns the kind of this database.
func (d *DB) Dialect() Dialect { return d.dialect }

// State returns what the last attempt to use the database found. It does no I/O.
func (d *DB) State() (ready bool, detail string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stateLocked()
}

func (d *DB) stateLocked() (ready bool, detail string) {
	for _, f := range [...]finding{d.found[writing], d.found[reading]} {
		if f.trouble != "" {
			return false, f.trouble
		}
	}
	return true, d.dialect.String()
}

// Ready connects and applies the missing migrations. Once that is done, a call costs nothing unless
// the last attempt to use the database failed: then it tries an empty write and an empty read.
func (d *DB) Ready(ctx context.Context) error {
	ctx, leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if ready, _ := d.State(); ready {
		return nil
	}
	nothing := d.bound(func(*Tx) error { return nil })
	err = d.note(ctx, writing, d.engine.write(ctx, nothing))
	if err == nil {
		err = d.note(ctx, reading, d.engine.read(ctx, nothing))
	}
	return err
}

// Write runs fn in one write transaction and commits it when fn returns nil. The error of fn is
// returned as it is. fn may run again, in a new transaction, when the database asks for that
// (serialization failure, deadlock), so fn must set what it changes outside, not add to it. fn must
// not call Write or Read of the same DB.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.transact(ctx, writing, fn)
}

// Read runs fn on one consistent snapshot, without the right to write.
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	return d.transact(ctx, reading, fn)
}

func (d *DB) transact(ctx context.Context, kind access, fn func(*Tx) error) error {
	ctx, leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	fn = d.bound(fn)
	if kind == writing {
		return d.note(ctx, kind, d.engine.write(ctx, fn))
	}
	return d.note(ctx, kind, d.engine.read(ctx, fn))
}

// Check reads the whole of a SQLite file (PRAGMA quick_check) and reports damage. It is for a start
// after an unclean end. PostgreSQL checks its own files; there it is an empty read.
func (d *DB) Check(ctx context.Context) error {
	ctx, leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return d.note(ctx, reading, d.engine.check(ctx))
}

// Close ends the calls under way with ErrClosed, waits for them and closes every connection.
func (d *DB) Close() error {
	d.mu.Lock()
	already := d.closed
	d.closed = true
	d.mu.Unlock()
	if already {
		return nil
	}
	d.end(errClosed)
	d.ops.Wait()
	d.mu.Lock()
	d.found[writing].trouble = ErrClosed.Error()
	d.mu.Unlock()
	return d.engine.close()
}

var errClosed = fmt.Errorf("store: %w: %w", ErrUnavailable, ErrClosed)

// enter counts a call and ties its context to the life of the DB.
func (d *DB) enter(ctx context.Context) (context.Context, func(), error) {
	if ctx.Err() != nil {
		return nil, nil, ended(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, nil, errClosed
	}
	d.ops.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(d.life, func() { cancel(errClosed) })
	return ctx, func() { stop(); cancel(nil); d.ops.Done() }, nil
}

// prepare connects, migrates and claims, once. Other callers wait meanwhile.
func (d *DB) prepare(ctx context.Context) error {
	if d.prepared.Load() {
		return nil
	}
	select {
	case <-d.preparing:
		defer func() { d.preparing <- struct{}{} }()
	case <-ctx.Done():
		return ended(ctx)
	}
	if d.prepared.Load() {
		return nil
	}
	err := d.engine.connect(ctx)
	if err == nil {
		err = migrate(ctx, d.engine, d.plan, d.log)
	}
	if err == nil {
		err = d.claim(ctx)
	}
	if err == nil {
		d.prepared.Store(true)
	}
	return d.note(ctx, writing, err)
}

// note keeps what an attempt found about the database, and logs a change. An error that the caller
// made itself says nothing about the database, and neither does a caller that went away.
func (d *DB) note(ctx context.Context, kind access, err error) error {
	trouble := ""
	if err != nil {
		if !errors.Is(err, ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		trouble = err.Error()
	}
	d.mu.Lock()
	was, _ := d.stateLocked()
	d.found[kind] = finding{trouble: trouble, foreign: errors.Is(err, ErrForeign)}
	is, detail := d.stateLocked()
	d.mu.Unlock()
	switch {
	case is && !was:
		d.log.Info("database is ready", "dialect", detail)
	case was && !is:
		d.log.Warn("database is not available", "dialect", d.dialect.String(), "cause", detail)
	}
	return err
}

// ended returns the error of a call when its context ended before the database answered.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrClosed) {
		return cause
	}
	return fmt.Errorf("store: call ended: %w", cause)
}
