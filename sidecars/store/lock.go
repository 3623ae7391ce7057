package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrLocked says that another session held a lock for longer than this session waits. It comes
// together with ErrUnavailable; LockedError says which lock.
var ErrLocked = errors.New("another session holds the lock")

// LockedError is an ErrLocked that names the lock.
//
// errors.Is finds ErrLocked and ErrUnavailable in it through Cause.
type LockedError struct {
	What  string // the lock and its holder, in words that a client may read
	Cause error
}

// Error implements error.
func (e *LockedError) Error() string { return fmt.Sprintf("waited for %s: %v", e.What, e.Cause) }

// Unwrap returns the error of the statement that waited.
func (e *LockedError) Unwrap() error { return e.Cause }

// The queries for the locks that block a change of a row of trades. The lock on the table is looked
// for first: under its strictest form the row cannot even be read.
//
// The modes in the first are those that conflict with ROW EXCLUSIVE, the lock that an update takes
// on its table. The second finds the holder of a row by xmax, the transaction that last locked or
// changed the row: that transaction holds a lock on its own id until it ends. A row that several
// transactions share is not found by it. Each query returns pid, application name and state of one
// session.
const (
	tableLock = "select l.pid, coalesce(a.application_name, ''), coalesce(a.state, '') from " +
		"pg_locks l " +
		"join pg_stat_activity a on a.pid = l.pid where l.locktype = 'relation' and l.granted " +
		"and l.database = (select oid from pg_database where datname = current_database()) " +
		"and l.relation = (select c.oid from pg_class c where c.relname = 'trades' " +
		"and c.relnamespace = (select n.oid from pg_namespace n where n.nspname = current_schema())) " +
		"and l.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') " +
		"order by l.pid limit 1"
	rowLock = "select l.pid, coalesce(a.application_name, ''), coalesce(a.state, '') from trades t " +
		"join pg_locks l on l.locktype = 'transactionid' and l.granted and l.transactionid = t.xmax " +
		"join pg_stat_activity a on a.pid = l.pid where t.id = $1 order by l.pid limit 1"
)

// TradeLocked adds to an ErrLocked of a change of one trade the lock that the change waited for, as
// far as the database can still tell. Any other error is returned as it is.
//
// Call it outside of any transaction, after the one that failed has ended. It costs a Read with up
// to two catalog queries on PostgreSQL and nothing on SQLite. The lock may be gone by then, or
// another session may hold it: the text is for a person, and no code may decide by it.
func (d *DB) TradeLocked(ctx context.Context, id string, err error) error {
	if !errors.Is(err, ErrLocked) {
		return err
	}
	if d.dialect == SQLite {
		return &LockedError{Cause: err, What: fmt.Sprintf(
			"the write lock of the database file %s, which another process holds", sqliteFile)}
	}
	what := "the lock on row " + id + " of table trades"
	holder := ""
	describe := func(r *Row) error {
		holder = fmt.Sprintf("database session %d", r.Int64(0))
		if name := r.Text(1); name != "" {
			holder += " of " + name
		}
		if state := r.Text(2); state != "" {
			holder += " (" + state + ")"
		}
		return nil
	}
	// When this query fails, the answer leaves the holder out: it is about the lock.
	_ = d.Read(ctx, func(tx *Tx) error {
		if err := tx.Query(tableLock, describe); err != nil || holder != "" {
			what = "a lock on all of table trades"
			return err
		}
		return tx.Query(rowLock, describe, id)
	})
	if holder == "" {
		holder = "another database session"
	}
	return &LockedError{Cause: err, What: fmt.Sprintf("%s, held by %s", what, holder)}
}
