package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgWriters is how many Writes run at once. Each follower has one; further writers would only wait
// for rows that the others have locked.
const pgWriters = 4

// pgEngine is a small pool. It makes connections on demand and keeps them while they work. Readers
// and writers have separate slots, so that long reads delay no writer.
//
// A caller takes a slot, then a connection. There are never more connections than slots: one is
// made only by a caller that holds a slot and finds none idle. So giveBack never blocks.
type pgEngine struct {
	config  *pgx.ConnConfig
	limits  pgLimits
	writers chan struct{} // a token a slot
	readers chan struct{}
	// idle holds connections without an open transaction, of readers and writers alike.
	idle   chan *pgConn
	holder pgHolder // beside the pool
}

// openPostgres reads the URL and makes no connection.
func openPostgres(o Options) (*pgEngine, error) {
	config, err := pgConfig(o.URL)
	if err != nil {
		return nil, err
	}
	e := &pgEngine{
		config: config, limits: defaultPgLimits(o.BusyTimeout),
		writers: make(chan struct{}, pgWriters), readers: make(chan struct{}, o.ReadConns),
		idle: make(chan *pgConn, pgWriters+o.ReadConns),
	}
	fill(e.writers)
	fill(e.readers)
	return e, nil
}

// fill makes every slot free.
func fill(slots chan struct{}) {
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// connect is an empty read, so it also proves that the pool has a slot and the server a snapshot.
func (e *pgEngine) connect(ctx context.Context) error {
	return e.read(ctx, func(*Tx) error { return nil })
}

// read uses REPEATABLE READ: all statements of fn see the moment of the first one. Under
// PostgreSQL's default each statement would see its own moment. A read is not repeated when it
// fails.
func (e *pgEngine) read(ctx context.Context, fn func(*Tx) error) error {
	err, _ := e.transact(ctx, e.readers, "begin isolation level repeatable read, read only", fn)
	return err
}

// pgTries is how often a Write runs when the database asks for a retry. The pauses between the
// tries are random, up to 10, 20, 40, 80 and 160 ms.
const pgTries = 6

// write uses READ COMMITTED. A caller that decides by what it has read locks that first: HoldCursor
// and LockSource do so.
func (e *pgEngine) write(ctx context.Context, fn func(*Tx) error) error {
	for try := 1; ; try++ {
		err, again := e.transact(ctx, e.writers, "begin isolation level read committed, read write", fn)
		if !again {
			return err
		}
		if try == pgTries {
			return fmt.Errorf("store: %d tries: %w: %w", try, ErrUnavailable, err)
		}
		// The pause is random, so that two transactions that collided do not collide again.
		pause := time.NewTimer(time.Duration(rand.Int64N(int64(5*time.Millisecond) << try)))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ended(ctx)
		}
	}
}

// transact runs fn in a transaction on a connection of the pool. again reports that the database
// asked for a retry.
//
// The commit does not end with ctx: it runs to its end or to limits.control, because a commit that
// was given up has an unknown outcome. The slot is freed after the connection is back in the pool.
func (e *pgEngine) transact(ctx context.Context, slots chan struct{}, begin string,
	fn func(*Tx) error) (err error, again bool) {
	select {
	case <-slots:
		defer func() { slots <- struct{}{} }()
	case <-ctx.Done():
		return ended(ctx), false
	}
	c, err := e.begin(ctx, begin)
	if err != nil {
		return err, false
	}
	defer func() { e.giveBack(ctx, c) }() // also when fn panics
	tx := &Tx{ctx: ctx, dialect: Postgres, conn: c}
	if err := tx.finish(fn(tx)); err != nil {
		return err, asksAgain(tx.failed)
	}
	if ctx.Err() != nil {
		return ended(ctx), false
	}
	if err := c.control(context.WithoutCancel(ctx), "commit"); err != nil {
		return fmt.Errorf("store: commit: %w", err), asksAgain(err)
	}
	return nil, false
}

// begin starts a transaction on an idle connection. A connection that broke while it was idle has
// done nothing yet, so a new one replaces it.
//
// It tries one idle connection and then dials. After a restart of the server each broken connection
// is met, and replaced, by one caller.
func (e *pgEngine) begin(ctx context.Context, begin string) (*pgConn, error) {
	select {
	case c := <-e.idle:
		if err := c.control(ctx, begin); err == nil {
			return c, nil
		}
		c.close()
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
	default:
	}
	c, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.control(ctx, begin); err != nil {
		c.close()
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		return nil, fmt.Errorf("store: begin: %w", err)
	}
	return c, nil
}

// giveBack rolls back an open transaction and keeps the connection when it still works.
func (e *pgEngine) giveBack(ctx context.Context, c *pgConn) {
	const idle = 'I' // no transaction is open
	c.endless = false
	if !c.raw.IsClosed() && c.raw.PgConn().TxStatus() != idle {
		// When this fails too, the connection is closed below, and the server rolls back.
		_ = c.control(context.WithoutCancel(ctx), "rollback")
	}
	if c.raw.IsClosed() || c.raw.PgConn().TxStatus() != idle {
		c.close()
		return
	}
	e.idle <- c
}

// close closes the idle connections and the holder's. The caller has waited for every call to end
// (DB.Close).
func (e *pgEngine) close() error {
	e.release()
	close(e.idle) // no caller is left that could return a connection
	for c := range e.idle {
		c.close()
	}
	return nil
}

// asksAgain recognises a serialization failure and a deadlock: the server has rolled back, and the
// same transaction may succeed when it runs again.
func asksAgain(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// The server's codes for a lock that was not acquired in time, and for a right that the role has
// not.
const (
	lockNotHad = "55P03"
	noRight    = "42501"
)

// isAway reports whether the server's code stands for a state that may pass: connection trouble, no
// resources, operator intervention, a system error, a lock not acquired in time, a session ended in
// its transaction, a server that is read-only after a failover, a transaction that the server ended
// because it took too long, or a right that the role has not been granted.
//
// The codes are those of PostgreSQL's appendix "Error Codes": two characters of class, three of
// condition. Any other code is the fault of the statement, which would fail again.
func isAway(code string) bool {
	switch code {
	case lockNotHad, "25P03", "25P04", "25006", noRight:
		return true
	}
	switch code[:min(2, len(code))] {
	case "08", "53", "57", "58":
		return true
	}
	return false
}

// Administer runs one statement outside of any transaction on the server of a PostgreSQL URL: to
// make or to drop a database, which cannot be done in a transaction.
//
// It makes a connection for this one statement and applies no migration. sql is sent as it is: no
// part of it may come from a client.
func Administer(ctx context.Context, databaseURL, sql string) error {
	e, err := openPostgres(Options{URL: databaseURL, ReadConns: 1, BusyTimeout: 30 * time.Second})
	if err != nil {
		return err
	}
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if _, err := c.raw.Exec(ctx, sql); err != nil {
		return fmt.Errorf("store: administer %q: %w", brief(sql), c.mark(err))
	}
	return nil
}
