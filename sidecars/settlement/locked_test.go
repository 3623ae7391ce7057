package settlement

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// hold begins a transaction of another session with these statements and keeps it open
// until the test ends.
func hold(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	other := must.Get(db.Twin())(t)
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- other.Write(context.Background(), func(tx *store.Tx) error {
			if _, err := tx.Exec(sql, args...); err != nil {
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
		t.Fatalf("hold: %v", err)
	}
	t.Cleanup(func() {
		close(release)
		if err := errors.Join(<-done, other.Close()); err != nil {
			t.Errorf("hold: %v", err)
		}
	})
}

// A force that waits for a lock in vain names the lock, and its holder as far as the database tells
// it.
func TestForceSaysWhatItWaitedFor(t *testing.T) {
	const row, table = "update trades set updated_at = updated_at where id = $1",
		"lock table trades in exclusive mode"
	for _, tt := range []struct {
		name    string
		dialect store.Dialect
		sql     string
		args    []any
		want    []string
	}{
		{"row", store.Postgres, row, []any{"trd-1"},
			[]string{"row trd-1 of table trades", "held by database session ",
				"of posttrade (idle in transaction)"}},
		{"table", store.Postgres, table, nil,
			[]string{"all of table trades", "held by database session ",
				"of posttrade (idle in transaction)"}},
		{"file", store.SQLite, row, []any{"trd-1"},
			[]string{"write lock of the database file posttrade.db"}},
	} {
		for _, dialect := range storetest.Dialects(t) {
			if dialect != tt.dialect {
				continue
			}
			t.Run(dialect.String()+" "+tt.name, func(t *testing.T) {
				o := storetest.Options(t, dialect)
				o.BusyTimeout = 20 * time.Millisecond
				db := storetest.OpenWith(t, o)
				insert(t, db, aTrade(1, mustDate(t, "2026-03-06")), aTrade(2, mustDate(t, "2026-03-06")))
				s := newTest(t, db, newClock(noon("2026-03-05")), 64)
				hold(t, db, tt.sql, tt.args...)
				_, _, err := s.Force(bounded(t), "trd-1")
				var locked *store.LockedError
				if !errors.As(err, &locked) || !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("force: %v", err)
				}
				for _, want := range tt.want {
					if !strings.Contains(locked.What, want) {
						t.Errorf("waited for %q, want %q in it", locked.What, want)
					}
				}
				if tt.name == "row" { // the lock of one row keeps no other waiting
					if row, _, err := s.Force(bounded(t), "trd-2"); err != nil || row.Status != store.Settled {
						t.Errorf("force of another trade: %+v, %v", row, err)
					}
				}
			})
		}
	}
}
