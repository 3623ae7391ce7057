package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// pgLimits bound how long a server, or the network in front of it, can keep a caller waiting. The
// server enforces the first three. This process enforces the rest, for a server that does not
// answer at all.
//
// The order of the values matters: lock is below statement, and statement below stalled, so that a
// server that works refuses by itself, and its error says what it waited for. Only a server that
// does not answer at all meets the limits of this process, which cost the connection. Tx.Unlimited
// lifts statement, idle and stalled for one transaction.
type pgLimits struct {
	lock, statement, idle     time.Duration
	connect, control, stalled time.Duration // dialling; begin, commit, rollback; any other statement
}

// defaultPgLimits are the limits of every pool; tests set shorter ones. busy is
// Options.BusyTimeout.
func defaultPgLimits(busy time.Duration) pgLimits {
	return pgLimits{
		lock: busy, statement: 2 * time.Minute, idle: 2 * time.Minute,
		connect: 5 * time.Second, control: 20 * time.Second, stalled: 150 * time.Second,
	}
}

// pgConfig reads a URL. The errors of the parsers may quote any part of the URL, also the password,
// so none of them is passed on.
//
// The session is named posttrade unless the URL names it, so that an administrator finds it in
// pg_stat_activity.
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

// dial makes one connection and sets the limits and the forms of its session.
//
// It takes at most limits.connect, the session's settings included. Every error is ErrUnavailable,
// a refused password too: an operator may correct it on the server.
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
// own. It also sets the form of a date's text, which backups and the records of repairs hold, and
// that texts are UTF-8: the server, the database or the role may have another.
func (e *pgEngine) session() (set string) {
	set = "set datestyle = 'ISO, YMD'; set client_encoding = 'UTF8'; "
	for name, limit := range map[string]time.Duration{"lock_timeout": e.limits.lock,
		"statement_timeout": e.limits.statement, "idle_in_transaction_session_timeout": e.limits.idle} {
		if e.config.RuntimeParams[name] == "" {
			set += "set " + name + " = " + strconv.FormatInt(limit.Milliseconds(), 10) + "; "
		}
	}
	return set
}

// scrubbed returns err unless its text holds the password. Then it returns the text without it.
//
// The chain is lost with the text: no caller looks further into an error of dial than
// ErrUnavailable.
func (e *pgEngine) scrubbed(err error) error {
	if p := e.config.Password; p != "" && strings.Contains(err.Error(), p) {
		return errors.New(strings.ReplaceAll(err.Error(), p, "***"))
	}
	return err
}
