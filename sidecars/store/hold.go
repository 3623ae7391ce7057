package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// ErrHeld says that another server holds this database. It comes together with ErrUnavailable; its
// text names the session that holds it.
var ErrHeld = errors.New("another server holds the database")

// ErrNotRestored says that the rows of a backup are not back in the database after a restore. It
// comes together with ErrUnavailable; a request must not write ahead of them.
var ErrNotRestored = errors.New("the rows of the backup are not in the database")

// Hold takes a PostgreSQL database for this server, or checks that this server still has it. One
// server has it at a time, whatever history it is of: a copy of a journal has the genesis of the
// original, so the history's mark does not tell the two apart.
//
// Call it again every HoldEvery: the server of the database ends the holder's session when that has
// said nothing for half a minute, so that a holder that hangs or is cut off does not keep the
// database. Close and Release let it go. On SQLite it does nothing: the file is in data.dir, which
// has one process.
//
// Errors: ErrHeld and those of Ready; State has the error until a Hold succeeds. A connection that
// changes its session between two statements, as behind a pooler by transaction, is an
// ErrUnavailable that says so: no lock of a session holds there.
func (d *DB) Hold(ctx context.Context) error {
	ctx, leave, err := d.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.prepare(ctx); err != nil {
		return err
	}
	if err = d.engine.hold(ctx); err == nil || errors.Is(err, ErrHeld) {
		d.held.Store(&err)
	}
	return d.note(ctx, holding, err)
}

// Mine is what a request asks before it writes: the loops of this server wait for the database, and
// a request must not pass them. It is ErrHeld when the last Hold found another server, else what
// the function of RequestsAfter returns.
func (d *DB) Mine(ctx context.Context) error {
	if err := d.held.Load(); err != nil && *err != nil {
		return *err
	}
	if d.before != nil {
		return d.before(ctx)
	}
	return nil
}

// RequestsAfter makes Mine call before, each time, on the goroutine of the request: it returns nil
// when there is nothing left that has to be in the database ahead of what requests write. The
// caller calls it before anything uses the DB.
func (d *DB) RequestsAfter(before func(context.Context) error) { d.before = before }

// Release lets go of a database that Hold has taken. Without one it does nothing.
func (d *DB) Release() {
	if _, leave, err := d.enter(context.Background()); err == nil {
		defer leave()
		d.engine.release()
	}
}

// HoldEvery is how often Hold is called again. It is short beside the pause of a server that waits:
// after a restart of the database its holder is to be the first.
const HoldEvery = time.Second

// holdQuiet is how long a holder may say nothing, and holdPatience how long a look at the lock may
// take. Together they leave a holder that is cut off no time to write beside the next one.
const (
	holdQuiet    = 30 * time.Second
	holdPatience = 5 * time.Second
)

// pgHolder is the session that holds the database; conn is nil while none does.
type pgHolder struct {
	mu   sync.Mutex // held for as long as a call of hold takes
	conn *pgConn
	pid  int64 // of the session
}

// holdLock is the first half of the advisory lock's key: the bytes of "hold". The second half is a
// hash of the schema, so servers with schemas of their own share a database.
const holdLock = 0x686f6c64

const (
	// holderLimits let the server end a holder's session when the holder's machine is gone or when
	// the holder sends nothing. tcp_user_timeout needs version 12, idle_session_timeout version 14.
	holderLimits = "select set_config('tcp_keepalives_idle', '10', false), " +
		"set_config('tcp_keepalives_interval', '5', false), " +
		"set_config('tcp_keepalives_count', '4', false), " +
		"case when current_setting('server_version_num')::int >= 120000 " +
		"then set_config('tcp_user_timeout', $1, false) end, " +
		"case when current_setting('server_version_num')::int >= 140000 " +
		"then set_config('idle_session_timeout', $1, false) end"
	takeHold = "select pg_try_advisory_lock($1::int, hashtext(current_schema()))"
	// heldLock is the lock among all locks.
	heldLock = " l.locktype = 'advisory' and l.granted and l.classid::bigint = $1::bigint " +
		"and l.database = (select oid from pg_database where datname = current_database()) " +
		"and l.objid::bigint = hashtext(current_schema())::bigint & 4294967295"
	// haveHold returns the session's pid, and whether it has the lock.
	haveHold = "select pg_backend_pid(), exists (select from pg_locks l where " +
		"l.pid = pg_backend_pid() and" + heldLock + ")"
	// whoHolds returns pid, application name and address of the holder's session.
	whoHolds = "select l.pid, coalesce(a.application_name, ''), coalesce(host(a.client_addr), '') " +
		"from pg_locks l join pg_stat_activity a on a.pid = l.pid where" + heldLock
)

func (e *pgEngine) hold(ctx context.Context) error {
	timed, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	err := e.tryHold(timed)
	if err != nil && timed.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("store: hold: %w: %w for %v", ErrUnavailable, errStalled, holdPatience)
	}
	return err
}

// tryHold looks whether the session that holds the database still does, or takes it with a new one.
func (e *pgEngine) tryHold(ctx context.Context) error {
	e.holder.mu.Lock()
	defer e.holder.mu.Unlock()
	if c := e.holder.conn; c != nil {
		if pid, has, err := c.haveHold(ctx); err == nil && has && pid == e.holder.pid {
			return nil
		}
		e.drop()
	}
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	if err := c.takeHold(ctx); err != nil {
		c.close()
		return err
	}
	pid, has, err := c.haveHold(ctx)
	if err == nil && !has {
		err = fmt.Errorf("store: hold: %w: the session changes between statements: "+
			"a pooler in front of the database has to pool by session", ErrUnavailable)
	}
	if err != nil {
		c.close()
		return err
	}
	e.holder.conn, e.holder.pid = c, pid
	return nil
}

func (c *pgConn) haveHold(ctx context.Context) (pid int64, has bool, err error) {
	err = c.query(ctx, haveHold, func(r *Row) error { pid, has = r.Int64(0), r.Bool(1); return nil },
		[]any{int64(holdLock)})
	return pid, has, err
}

// takeHold is ErrHeld when another session has the lock.
func (c *pgConn) takeHold(ctx context.Context) error {
	quiet := strconv.FormatInt(holdQuiet.Milliseconds(), 10)
	if _, err := c.exec(ctx, holderLimits, []any{quiet}); err != nil {
		return fmt.Errorf("store: hold: %w", err)
	}
	taken := false
	err := c.query(ctx, takeHold, func(r *Row) error { taken = r.Bool(0); return nil },
		[]any{int64(holdLock)})
	if err != nil || taken {
		return err
	}
	holder := "a session that has just ended"
	err = c.query(ctx, whoHolds, func(r *Row) error {
		holder = fmt.Sprintf("session %d of %s", r.Int64(0), r.Text(1))
		if at := r.Text(2); at != "" {
			holder += " from " + at
		}
		return nil
	}, []any{int64(holdLock)})
	return errors.Join(err, fmt.Errorf("store: %w: %w: %s", ErrUnavailable, ErrHeld, holder))
}

func (e *pgEngine) release() {
	e.holder.mu.Lock()
	defer e.holder.mu.Unlock()
	e.drop()
}

// drop ends the holder's session, and with it the lock. The caller has holder.mu.
func (e *pgEngine) drop() {
	if e.holder.conn != nil {
		e.holder.conn.close()
		e.holder.conn = nil
	}
}
