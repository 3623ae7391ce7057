package store

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Dialect is the kind of database behind a DB.
type Dialect uint8

// The two databases. SQLite is the zero value.
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
//
// The rule for every caller but a start: an error that is ErrUnavailable ends in a retry after a
// pause, any other error is a fault of the statement or of its arguments and would come again. A
// start is refused with ErrMigration and ErrDamaged.
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
//
// Either URL or Dir is required.
type Options struct {
	URL         string        // postgres://...; "" = SQLite
	Dir         string        // of SQLite's file, posttrade.db; made when missing
	Logger      *slog.Logger  // nil = none
	ReadConns   int           // how many Reads run at once; 0 = 4
	BusyTimeout time.Duration // how long to wait for a lock of another session; 0 = 5 s
}

// engine holds the operations that differ between the two databases.
//
// Its functions may be called by any goroutine, and block until they have a connection or ctx ends.
type engine interface {
	// connect proves that a connection can be made.
	//
	// It changes nothing in the database.
	connect(ctx context.Context) error
	// write and read run fn as DB.Write and DB.Read promise, without the check of the history.
	write(ctx context.Context, fn func(*Tx) error) error
	read(ctx context.Context, fn func(*Tx) error) error
	// hold and release do what DB.Hold and DB.Release promise.
	hold(ctx context.Context) error
	release()
	// close is called once, when no other call is under way.
	close() error
}

// DB is one database. Any goroutine may use it.
//
// The path of a call: enter counts it, prepare connects and migrates unless that is done, bound
// checks the history, the engine runs the transaction, and note keeps the result for State.
type DB struct {
	options Options
	dialect Dialect
	// engine and the fields above it never change after Open.
	engine engine
	plan   []migration
	log    *slog.Logger

	// binding is written by Bind, before any other call.
	binding *HistoryBinding // nil: any process that opens it may use it
	// before is written by RequestsAfter, before any other call; nil: requests wait for nothing.
	before func(context.Context) error

	life context.Context // ends with Close, which ends every call under way too
	end  context.CancelCauseFunc

	mu     sync.Mutex // guards closed, preparing and found; no call joins ops once a Wait has begun
	closed bool
	ops    sync.WaitGroup

	preparing *preparation // the attempt under way; nil when there is none; guarded by mu
	prepared  atomic.Bool  // all migrations are applied, and the history was claimed; see bound

	held  atomic.Pointer[error] // what the last Hold found; nil before the first
	found [3]finding            // of the last read, write and hold; guarded by mu
}

// Open returns the database that o describes. It connects to nothing. It makes and checks SQLite's
// folder and file (mode 0600), or parses a PostgreSQL URL. Ready does the rest.
//
// An error is one of configuration: a folder that cannot be made, a file that is no database, a URL
// that cannot be read. A server that is away is not found here, so that a process starts without
// it.
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
	d := &DB{options: o, log: o.Logger}
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
	d.found[writing].trouble = "not connected yet"
	d.life, d.end = context.WithCancelCause(context.Background())
	return d, nil
}

// Twin opens the same database a second time, with connections of its own.
//
// The twin is not bound to a history. To the database it is another process: tests and measurements
// hold locks with it.
func (d *DB) Twin() (*DB, error) { return Open(d.options) }

// Dialect returns the kind of this database.
func (d *DB) Dialect() Dialect { return d.dialect }

// Ready connects and applies the missing migrations. Once that is done, a call costs nothing unless
// the last attempt to use the database failed: then it tries an empty write and an empty read.
//
// Loops call it while they wait for a database. It blocks as long as a transaction or a migration
// may. A migration goes on when ctx ends.
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
//
// It blocks until a writer's slot is free, until fn has run and until the commit is done. Errors:
//
//   - that of fn, or of the first statement in it that failed; nothing is stored;
//   - ErrUnavailable: nothing is stored, except that the outcome of a commit that failed is
//     unknown;
//   - the cause of ctx when it ended; nothing is stored, unless the commit had begun.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	return d.transact(ctx, writing, fn)
}

// Read runs fn on one consistent snapshot, without the right to write.
//
// fn runs once. It must not call Write or Read of the same DB: with every reader's slot taken by
// such calls none would go on.
func (d *DB) Read(ctx context.Context, fn func(*Tx) error) error {
	return d.transact(ctx, reading, fn)
}

// transact is the common path of Write and Read.
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
