package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// havePostgres reports whether PostgreSQL can be tested. A server that exists but does not work is
// a failure, never a reason to test less.
//
// The first call of a test binary starts the private server.
func havePostgres(t testing.TB) bool {
	t.Helper()
	_, err := theServer()
	switch {
	case err == nil:
		return true
	case !sqliteAlone(err, os.Getenv("CI")):
		t.Fatal(err)
	}
	t.Logf("only SQLite is tested: %v", err)
	return false
}

// sqliteAlone reports whether testing only SQLite is enough, given why there is no PostgreSQL.
func sqliteAlone(err error, ci string) bool { return errors.Is(err, errNoPostgres) && ci != "true" }

// freshPostgres makes a database that is removed with the test and returns its URL.
//
// The name holds the process id and a random number, because test binaries that run at the same
// time may share a server. The removal ends sessions that the test has left open.
func freshPostgres(t testing.TB) string {
	t.Helper()
	s := must.Get(theServer())(t)
	name := fmt.Sprintf("posttrade_test_%d_%x", os.Getpid(), rand.Uint64())
	must.OK(t, s.administer(within(t), "create database "+name))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.administer(ctx, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("remove the database: %v", err)
		}
	})
	fresh := *s.admin
	fresh.Path = "/" + name
	return fresh.String()
}

// administer runs a statement in the database that always exists.
func (s *server) administer(ctx context.Context, sql string) error {
	return store.Administer(ctx, s.admin.String(), sql)
}

// Terminate ends every client session of a PostgreSQL database except its own, as an operator or a
// restart of the server does. Sessions in a transaction lose it.
func Terminate(t testing.TB, db *store.DB) {
	t.Helper()
	other := twin(t, db)
	defer closeDB(t, other)
	ctx := within(t)
	for again := true; again; {
		again = false
		err := other.Write(ctx, func(tx *store.Tx) error {
			return tx.Query("select pg_terminate_backend(pid, 10000) from pg_stat_activity "+
				"where datname = current_database() and pid <> pg_backend_pid() and backend_type = "+
				"'client backend'",
				func(r *store.Row) error {
					// False also for a session that ended by itself since the list was made: a new list lacks it.
					again = again || !r.Bool(0)
					return nil
				})
		})
		if err != nil {
			t.Fatalf("end the sessions: %v", err)
		}
	}
}

// Awaited reports whether another session of PostgreSQL waits for a lock of this transaction.
func Awaited(tx *store.Tx) (waits bool, err error) {
	err = tx.Query("select exists (select from pg_locks where not granted and "+
		"pg_backend_pid() = any(pg_blocking_pids(pid)))", func(r *store.Row) error {
		waits = r.Bool(0)
		return nil
	})
	return waits, err
}

// Cut opens a fresh PostgreSQL database through a network that can be cut. It fails where there is
// no PostgreSQL: check Dialects first.
func Cut(t testing.TB) (*store.DB, *Proxy) {
	t.Helper()
	o, proxy := CutOptions(t)
	return OpenWith(t, o), proxy
}

// CutOptions is Cut without opening the database.
func CutOptions(t testing.TB) (store.Options, *Proxy) {
	t.Helper()
	return Behind(t, store.Options{URL: freshPostgres(t)})
}

// Behind returns the options of the same PostgreSQL database behind a network that can be cut.
//
// TLS is off on the way through the proxy. A URL with a socket's folder leads to that socket.
func Behind(t testing.TB, direct store.Options) (store.Options, *Proxy) {
	t.Helper()
	through := must.Get(url.Parse(direct.URL))(t)
	network, address := "tcp", through.Host
	query := through.Query()
	if dir := query.Get("host"); dir != "" {
		network, address = "unix", dir+"/.s.PGSQL.5432"
		query.Del("host")
	} else if through.Port() == "" {
		address += ":5432"
	}
	proxy := newProxy(t, network, address)
	query.Set("sslmode", "disable")
	through.Host, through.RawQuery = proxy.Address(), query.Encode()
	return store.Options{URL: through.String()}, proxy
}
