package store

import (
	"context"
	"io/fs"
	"time"
)

// SetPostgresLimits shortens the waits for a silent server.
func SetPostgresLimits(d *DB, connect, control, stalled time.Duration) {
	l := &d.engine.(*pgEngine).limits
	l.connect, l.control, l.stalled = connect, control, stalled
}

// SetPlan replaces the migrations by those of files and forgets that any were applied.
func SetPlan(d *DB, files fs.FS) (err error) {
	d.plan, err = plan(files, d.dialect)
	d.prepared.Store(false)
	return err
}

// AroundWrites has around run each write transaction of d, with the context of the call.
func AroundWrites(d *DB, around func(ctx context.Context, run func() error) error) {
	d.engine = aroundWrites{d.engine, around}
}

type aroundWrites struct {
	engine
	around func(context.Context, func() error) error
}

func (e aroundWrites) write(ctx context.Context, fn func(*Tx) error) error {
	return e.around(ctx, func() error { return e.engine.write(ctx, fn) })
}

// NoPatience leaves a statement no time until restore, unless its transaction is unlimited.
func NoPatience(d *DB) (restore func()) {
	e := d.engine
	if around, ok := e.(aroundWrites); ok {
		e = around.engine
	}
	pg, ok := e.(*pgEngine)
	if !ok {
		return func() {}
	}
	was := pg.limits.stalled
	pg.limits.stalled = 1
	return func() { pg.limits.stalled = was }
}

// MigrationLock is the key of PostgreSQL's lock for migrations.
const MigrationLock = migrationLock

// MigrationFiles returns the embedded migrations.
func MigrationFiles() fs.FS { return migrationFiles }

// SettlementDaysSQL is the statement of SettlementDays with its arguments.
func SettlementDaysSQL(t *Tx, from, to Date) (sql string, args []any) {
	return t.settlementDays(nil, from, to)
}

// Idle returns how many idle connections the pool of a PostgreSQL DB holds.
func Idle(d *DB) int { return len(d.engine.(*pgEngine).idle) }

// CheckTrade checks one row.
func CheckTrade(t *Trade) error { return t.check() }

// Scrubbed returns an error as a PostgreSQL engine with this URL reports it.
func Scrubbed(databaseURL string, err error) (error, error) {
	e, failed := openPostgres(Options{URL: databaseURL, ReadConns: 1, BusyTimeout: time.Second})
	if failed != nil {
		return nil, failed
	}
	return e.scrubbed(err), nil
}

// Breaths returns how often the last statement of a transaction on SQLite yielded.
func Breaths(tx *Tx) int { return tx.conn.(*sqliteConn).breath.Breaths() }

// WriteAlone runs an empty write transaction without preparing the schema.
func WriteAlone(ctx context.Context, d *DB) error {
	return d.engine.write(ctx, func(*Tx) error { return nil })
}

// PeriodSQL finds where the trades of a period lie.
func PeriodSQL(d Dialect) string { return d.periodSQL() }

// RowsPerTurn is how many rows InsertSome writes before it looks for other writers.
const RowsPerTurn = rowsPerTurn
