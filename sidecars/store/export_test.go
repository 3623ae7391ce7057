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
