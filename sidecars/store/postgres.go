package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// pgLimits bound how long a server, or the network in front of it, can keep a caller waiting. The
// server enforces the first three. This process enforces the rest, for a server that does not
// answer at all.
type pgLimits struct {
	lock, statement, idle     time.Duration
	connect, control, stalled time.Duration // dialling; begin, commit, rollback; any other statement
}

func defaultPgLimits(busy time.Duration) pgLimits {
	return pgLimits{
		lock: busy, statement: 2 * time.Minute, idle: 2 * time.Minute,
		connect: 5 * time.Second, control: 20 * time.Second, stalled: 150 * time.Second,
	}
}

// pgWriters is how many Writes run at once. Each follower has one; further writers would only wait
// for rows that the others have locked.
const pgWriters = 4

// pgEngine is a small pool. It makes connections on demand and keeps them while they work. Readers
// and writers have separate slots, so that long reads delay no writer.
type pgEngine struct {
	config  *pgx.ConnConfig
	limits  pgLimits
	writers chan struct{} // a token a slot
	readers chan struct{}
	idle    chan *pgConn
}

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

func fill(slots chan struct{}) {
	for range cap(slots) {
		slots <- struct{}{}
	}
}

// pgConfig reads a URL. The errors of the parsers may quote any part of the URL, also the password,
// so none of them is passed on.
func pgConfig(text string) (*pgx.ConnConfig, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New(
			"store: open: database.url is not of the form postgres://user:password@host:port/database")
	}
	config, err := pgx.ParseConfig(text)
	if err != nil {
		return nil, errors.New(
			"store: open: a part of database.url cannot be read: port, sslmode or another option")
	}
	dialer := &net.Dialer{
		// The kernel notices within half a minute that a peer has vanished.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second,
			Interval: 5 * time.Second, Count: 3},
	}
	config.DialFunc = dialer.DialContext
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "posttrade"
	}
	return config, nil
}

// dial makes one connection and sets the limits of its session.
func (e *pgEngine) dial(ctx context.Context) (*pgConn, error) {
	timed, cancel := context.WithTimeout(ctx, e.limits.connect)
	defer cancel()
	raw, err := pgx.ConnectConfig(timed, e.config)
	if err == nil {
		if _, err = raw.Exec(timed, e.session()); err != nil {
			_ = raw.Close(timed)
		}
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		if timed.Err() != nil {
			err = fmt.Errorf("%w for %v", errStalled, e.limits.connect)
		}
		return nil, fmt.Errorf("store: connect: %w: %w", ErrUnavailable, e.scrubbed(err))
	}
	return &pgConn{raw: raw, limits: &e.limits}, nil
}

// session is what sets the limits that the server enforces on a session, unless the URL sets its
// own.
func (e *pgEngine) session() (set string) {
	for name, limit := range map[string]time.Duration{"lock_timeout": e.limits.lock,
		"statement_timeout": e.limits.statement, "idle_in_transaction_session_timeout": e.limits.idle} {
		if e.config.RuntimeParams[name] == "" {
			set += "set " + name + " = " + strconv.FormatInt(limit.Milliseconds(), 10) + "; "
		}
	}
	return set
}

// scrubbed returns err unless its text holds the password. Then it returns the text without it.
func (e *pgEngine) scrubbed(err error) error {
	if p := e.config.Password; p != "" && strings.Contains(err.Error(), p) {
		return errors.New(strings.ReplaceAll(err.Error(), p, "***"))
	}
	return err
}

func (e *pgEngine) connect(ctx context.Context) error {
	return e.read(ctx, func(*Tx) error { return nil })
}

// check is an empty read: PostgreSQL checks its own files.
func (e *pgEngine) check(ctx context.Context) error { return e.connect(ctx) }

func (e *pgEngine) read(ctx context.Context, fn func(*Tx) error) error {
	err, _ := e.transact(ctx, e.readers, "begin isolation level repeatable read, read only", fn)
	return err
}

// pgTries is how often a Write runs when the database asks for a retry.
const pgTries = 6

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

func (e *pgEngine) close() error {
	close(e.idle) // no caller is left that could return a connection
	for c := range e.idle {
		c.close()
	}
	return nil
}

// asksAgain recognises a serialization failure and a deadlock.
func asksAgain(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// lockNotHad is the server's code for a lock that was not acquired in time.
const lockNotHad = "55P03"

// isAway reports whether the server's code stands for a state that may pass: connection trouble, no
// resources, operator intervention, a system error, a lock not acquired in time, a session ended in
// its transaction, a server that is read-only after a failover, or a transaction that the server
// ended because it took too long.
func isAway(code string) bool {
	switch code {
	case lockNotHad, "25P03", "25P04", "25006":
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
