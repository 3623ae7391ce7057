package store_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// unmigrated opens a fresh database with migrations of the test's own, and closes it with the test.
func unmigrated(t *testing.T, o store.Options, texts map[string]string) *store.DB {
	t.Helper()
	db := must.Get(store.Open(o))(t)
	t.Cleanup(func() { must.OK(t, db.Close()) })
	must.OK(t, store.SetPlan(db, files(texts)))
	return db
}

// impatient returns the options of a fresh database. On PostgreSQL the URL lets statements take a
// minute.
func impatient(t *testing.T, d store.Dialect) store.Options {
	t.Helper()
	o := storetest.Options(t, d)
	if d == store.Postgres {
		o = storetest.WithParameters(t, o, "statement_timeout", "60000",
			"idle_in_transaction_session_timeout", "60000")
	}
	return o
}

// limitsOf are the limits of a transaction's statements, in the server's words.
const limitsOf = "select current_setting('statement_timeout') || ' ' || " +
	"current_setting('idle_in_transaction_session_timeout')"

// TestAMigrationOutlivesItsCallers: the callers that wait for it give up one after the other, and
// it runs once.
func TestAMigrationOutlivesItsCallers(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := unmigrated(t, storetest.Options(t, d),
				map[string]string{"0001_long.sql": "create table one (n bigint)"})
			inside, release := make(chan struct{}, 9), make(chan struct{})
			store.AroundWrites(db, func(ctx context.Context, run func() error) error {
				inside <- struct{}{}
				select {
				case <-release:
				case <-ctx.Done():
				}
				return run()
			})
			for i := range 3 {
				ctx, cancel := context.WithCancel(t.Context())
				result := make(chan error)
				go func() { result <- db.Ready(ctx) }()
				if i == 0 {
					<-inside
				}
				cancel()
				err := <-result
				if !errors.Is(err, context.Canceled) {
					t.Errorf("a caller that gives up: %v", err)
				}
				if i == 0 && !strings.Contains(err.Error(), "the schema is being migrated: 0001_long") {
					t.Errorf("the caller is not told why: %v", err)
				}
				if ready, why := db.State(); ready || !strings.Contains(why, "being migrated: 0001_long") {
					t.Errorf("state: %t, %s", ready, why)
				}
			}
			result := make(chan error)
			go func() { result <- db.Ready(t.Context()) }()
			close(release)
			must.OK(t, <-result)
			if len(inside) > 0 {
				t.Errorf("the migration began %d times more", len(inside))
			}
			if ready, why := db.State(); !ready {
				t.Errorf("not ready: %s", why)
			}
		})
	}
}

// TestCloseEndsAMigration: a migration without an end is ended by Close, leaves nothing, and the
// next start applies it.
func TestCloseEndsAMigration(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			o := storetest.Options(t, d)
			db := must.Get(store.Open(o))(t)
			must.OK(t, store.SetPlan(db, files(map[string]string{
				"0001_endless.sql": "create table one (n bigint); insert into one with recursive m(i) as " +
					"(select 1 union all select i + 1 - i from m) select count(*) from m"})))
			inside := make(chan struct{})
			store.AroundWrites(db, func(_ context.Context, run func() error) error {
				close(inside)
				return run()
			})
			result := make(chan error)
			go func() { result <- db.Ready(t.Context()) }()
			<-inside
			must.OK(t, db.Close())
			if err := <-result; !errors.Is(err, store.ErrClosed) {
				t.Errorf("the caller of a migration that was ended: %v", err)
			}
			again := unmigrated(t, o, map[string]string{
				"0001_endless.sql": "create table one (n bigint); insert into one values (1)"})
			must.OK(t, again.Ready(t.Context()))
			if n := number(t, again, "select count(*) from one"); n != 1 {
				t.Errorf("%d rows, want 1", n)
			}
		})
	}
}

// TestAMigrationOfAnotherProcessIsNamed: a process that waits for its lock says so. The lock is of
// the database, also for another schema.
func TestAMigrationOfAnotherProcessIsNamed(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		o := storetest.Options(t, store.Postgres)
		other := storetest.OpenWith(t, o)
		storetest.Edit(t, other, "create schema waiting")
		o = storetest.WithParameters(t, o, "search_path", "waiting")
		db := unmigrated(t, store.Options{URL: o.URL, BusyTimeout: 20 * time.Millisecond},
			map[string]string{"0001_one.sql": "create table one (n bigint)"})
		write(t, other, func(tx *store.Tx) error {
			err := tx.Query("select pg_advisory_xact_lock($1)", func(*store.Row) error { return nil },
				store.MigrationLock)
			if err == nil {
				err = db.Ready(t.Context())
				if _, why := db.State(); !errors.Is(err, store.ErrLocked) ||
					!strings.Contains(why, "the schema is being migrated by another process") {
					t.Errorf("got %v, state %s", err, why)
				}
			}
			return nil
		})
		must.OK(t, db.Ready(t.Context()))
	})
}

// TestAMigrationTakesAnyTime: neither the server nor the process limits its statements. A failure
// is tried again by the next caller.
func TestAMigrationTakesAnyTime(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			script := "create table seen as select '0 0' as limits"
			if d == store.Postgres {
				script = "create table seen as " + limitsOf + " as limits"
			}
			db := unmigrated(t, impatient(t, d), map[string]string{"0001_long.sql": script})
			first := true
			store.AroundWrites(db, func(_ context.Context, run func() error) error {
				if first {
					first = false
					return store.ErrUnavailable
				}
				defer store.NoPatience(db)()
				return run()
			})
			if err := db.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("the first attempt: %v", err)
			}
			must.OK(t, db.Ready(t.Context()))
			query(t, db, "select limits from seen", func(r *store.Row) {
				if got := r.Text(0); got != "0 0" {
					t.Errorf("the limits of a migration are %s", got)
				}
			})
		})
	}
}

// TestABackupOfTheRowsTakesAnyTime: its limits are lifted for its transaction, and for no later one
// on the same connection.
func TestABackupOfTheRowsTakesAnyTime(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			db := storetest.OpenWith(t, impatient(t, d))
			fillKept(t, db)
			limits := func(tx *store.Tx) (got string) {
				if d == store.SQLite {
					return ""
				}
				must.OK(t, tx.Query(limitsOf, func(r *store.Row) error { got = r.Text(0); return nil }))
				return got
			}
			want := map[store.Dialect][2]string{store.Postgres: {"0 0", "1min 1min"}}[d]
			must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
				defer store.NoPatience(db)()
				err := tx.WriteKept(new(bytes.Buffer))
				if got := limits(tx); got != want[0] {
					t.Errorf("the limits of a backup are %s", got)
				}
				return err
			}))
			must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
				if got := limits(tx); got != want[1] {
					t.Errorf("the limits behind a backup are %s", got)
				}
				return nil
			}))
			err := db.Read(t.Context(), func(tx *store.Tx) error {
				defer store.NoPatience(db)()
				_, err := tx.CountTrades()
				return err
			})
			if limited := errors.Is(err, store.ErrUnavailable); limited != (d == store.Postgres) {
				t.Errorf("a statement behind a backup, with no time: %v", err)
			}
		})
	}
}

// TestADoomedTransactionStaysDoomed: Unlimited does not run in it.
func TestADoomedTransactionStaysDoomed(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			_, first := tx.Exec("no statement")
			if err := tx.Unlimited(); err == nil || !errors.Is(err, first) {
				t.Errorf("got %v, want %v", err, first)
			}
			return nil
		})
		if err == nil {
			t.Error("a doomed transaction succeeded")
		}
	})
}

// openSetting opens a database of a PostgreSQL server whose sessions begin with a setting.
func openSetting(t *testing.T, name, value string) *store.DB {
	t.Helper()
	o := storetest.Options(t, store.Postgres)
	at := must.Get(url.Parse(o.URL))(t)
	must.OK(t, store.Administer(t.Context(), o.URL, "alter database "+
		strings.Trim(at.Path, "/")+" set "+name+" = '"+value+"'"))
	return storetest.OpenWith(t, o)
}

// TestTextsOfADatabaseWithOtherForms: a backup of a database whose sessions write dates in another
// form is the same text, and comes back.
func TestTextsOfADatabaseWithOtherForms(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		plain := storetest.Open(t, store.Postgres)
		fillKept(t, plain)
		want := dated(keep(t, plain))
		for _, form := range []string{"German", "SQL, DMY", "Postgres, MDY", "ISO, DMY"} {
			db := openSetting(t, "datestyle", form)
			fillKept(t, db)
			got := dated(keep(t, db))
			if len(want) < 3 || !slices.Equal(got, want) {
				t.Errorf("%s: kept\n%s\nwant\n%s", form, got, want)
			}
			if loaded, err := load(t, storetest.Open(t, store.Postgres), keep(t, db), 100); !loaded ||
				err != nil {
				t.Errorf("%s: %t, %v", form, loaded, err)
			}
		}
	})
}

// TestTextsOfADatabaseWithAnotherEncoding: the server gets the text that was written, although its
// sessions read another encoding.
func TestTextsOfADatabaseWithAnotherEncoding(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db := openSetting(t, "client_encoding", "LATIN1")
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Query("select char_length($1)", func(r *store.Row) error {
				if n := r.Int64(0); n != 3 {
					t.Errorf("the server reads %d characters, want 3", n)
				}
				return nil
			}, "Zoë")
		}))
	})
}

// dated returns the lines of kept rows with a date, in whatever form.
func dated(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "[") && strings.Contains(line, "2026") {
			lines = append(lines, line)
		}
	}
	return lines
}
