package storetest

import (
	"context"
	"errors"
	"hash/fnv"
	"net/url"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// patience bounds how long the rig itself waits; it ends a test that hangs.
const patience = 60 * time.Second

// Each runs test once per dialect, on a fresh database that is migrated already.
func Each(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	for _, d := range Dialects(t) {
		t.Run(d.String(), func(t *testing.T) { test(t, Open(t, d)) })
	}
}

// EachInFull is Each, but with -short the test runs on one dialect only. The test's name chooses
// it, so that of many tests every dialect gets its share. It is for tests of the layers above the
// database; tests of concurrency use Each.
func EachInFull(t *testing.T, test func(t *testing.T, db *store.DB)) {
	t.Helper()
	if !testing.Short() {
		Each(t, test)
		return
	}
	d := chosen(t.Name(), Dialects(t))
	t.Run(d.String(), func(t *testing.T) { test(t, Open(t, d)) })
}

// chosen returns one of all, always the same for a name.
func chosen(name string, all []store.Dialect) store.Dialect {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(name)) // it never fails
	return all[sum.Sum32()%uint32(len(all))]
}

// Dialects returns the dialects that can be tested here. A missing PostgreSQL is logged once per
// test, and is a failure where CI=true.
func Dialects(t testing.TB) []store.Dialect {
	t.Helper()
	if !havePostgres(t) {
		return []store.Dialect{store.SQLite}
	}
	return []store.Dialect{store.SQLite, store.Postgres}
}

// Open returns a fresh, migrated database of the dialect. It is closed and removed with the test.
func Open(t testing.TB, dialect store.Dialect) *store.DB {
	t.Helper()
	return OpenWith(t, Options(t, dialect))
}

// Options names a fresh, empty database of the dialect. It is removed with the test. The wait for a
// lock is as long as a slow machine may need: a test that wants a shorter one sets it.
//
// The database is removed after everything that the test has registered later, so also after it is
// closed.
func Options(t testing.TB, dialect store.Dialect) store.Options {
	t.Helper()
	o := store.Options{BusyTimeout: patience}
	if dialect == store.SQLite {
		o.Dir = t.TempDir()
	} else {
		o.URL = freshPostgres(t)
	}
	return o
}

// OpenWith opens and migrates what o names, and closes it with the test.
//
// A test that must see a database before its migrations uses store.Open itself.
func OpenWith(t testing.TB, o store.Options) *store.DB {
	t.Helper()
	db := must.Get(store.Open(o))(t)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	must.OK(t, db.Ready(within(t)))
	return db
}

// WithParameters returns options with parameters added to the URL of a PostgreSQL server, a name
// and a value each.
func WithParameters(t testing.TB, o store.Options, pairs ...string) store.Options {
	t.Helper()
	at := must.Get(url.Parse(o.URL))(t)
	q := at.Query()
	for ; len(pairs) > 0; pairs = pairs[2:] {
		q.Set(pairs[0], pairs[1])
	}
	at.RawQuery = q.Encode()
	o.URL = at.String()
	return o
}

// Edit changes rows by hand, through connections of its own. While another session holds the lock,
// Edit tries again: on a busy machine the writer of the rows may hold it for seconds.
//
// The connections are not bound to a history, so the edit is possible in any database.
func Edit(t testing.TB, db *store.DB, sql string, args ...any) {
	t.Helper()
	other := twin(t, db)
	defer closeDB(t, other)
	ctx := within(t)
	err := store.ErrUnavailable
	for errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
		err = other.Write(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(sql, args...)
			return err
		})
	}
	if err != nil {
		t.Fatalf("edit by hand: %v", err)
	}
}

// Lock takes the write lock from a second connection and holds it until unlock: the whole
// database in SQLite; in PostgreSQL every table, against writers but not against readers.
//
// unlock may be called more than once, and runs at the test's end if the test has not called it.
func Lock(t testing.TB, db *store.DB) (unlock func()) {
	t.Helper()
	other := twin(t, db)
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(context.Background(), func(tx *store.Tx) error {
			if err := lockTables(tx); err != nil {
				return err
			}
			close(held)
			<-release
			return nil
		})
	}()
	select {
	case <-held:
	case err := <-done:
		t.Fatalf("take the write lock: %v", err)
	}
	var once sync.Once
	unlock = func() {
		once.Do(func() {
			close(release)
			if err := <-done; err != nil {
				t.Errorf("hold the write lock: %v", err)
			}
			closeDB(t, other)
		})
	}
	t.Cleanup(unlock)
	return unlock
}

// lockTables locks every table of the schema against writers. SQLite's transaction has done so when
// it began.
func lockTables(tx *store.Tx) error {
	if tx.Dialect() == store.SQLite {
		return nil
	}
	var tables []string
	err := tx.Query(
		"select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = "+
			"current_schema()",
		func(r *store.Row) error { tables = append(tables, r.Text(0)); return nil })
	for _, name := range tables {
		if err == nil {
			_, err = tx.Exec("lock table " + name + " in exclusive mode")
		}
	}
	return err
}

func twin(t testing.TB, db *store.DB) *store.DB {
	t.Helper()
	return must.Get(db.Twin())(t)
}

func closeDB(t testing.TB, db *store.DB) {
	t.Helper()
	if err := db.Close(); err != nil {
		t.Errorf("close a second connection: %v", err)
	}
}

// within returns a context that bounds one step of the rig.
//
// It ends with the test too.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
