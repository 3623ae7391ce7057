package store_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// logged opens a fresh database that logs to the returned buffer. The test may read the buffer once
// the calls that could write to it have returned.
func logged(t *testing.T, d store.Dialect, busy time.Duration) (*store.DB, *bytes.Buffer) {
	t.Helper()
	o, text := storetest.Options(t, d), new(bytes.Buffer)
	o.Logger = logTo(text)
	o.BusyTimeout = busy
	return storetest.OpenWith(t, o), text
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func TestALockHeldBySomebodyElseIsUnavailable(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			const busy = 150 * time.Millisecond
			db, text := logged(t, d, busy)
			insert(t, db, someTrades(1, 5))
			unlock := storetest.Lock(t, db)
			for range 2 {
				began := time.Now()
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					_, err := tx.InsertTrades(someTrades(1, 10))
					return err
				})
				if !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("got %v", err)
				}
				if took := time.Since(began); took < busy {
					t.Errorf("gave up after %v, before %v", took, busy)
				}
				// Readers do not wait, and their success does not make a writer ready.
				mustBe(t, allTrades(t, db), someTrades(1, 5))
			}
			if ready, detail := db.State(); ready || !strings.Contains(detail, "lock") {
				t.Errorf("state: %v, %q", ready, detail)
			}
			unlock()
			if n := insert(t, db, someTrades(1, 10)); n != 5 {
				t.Errorf("%d inserted afterwards, want 5", n)
			}
			if ready, detail := db.State(); !ready || detail != d.String() {
				t.Errorf("state: %v, %q", ready, detail)
			}
			mustBe(t, allTrades(t, db), someTrades(1, 10))
			// Ready came at the start, from the connection that held the lock, and at the end.
			if got := text.String(); strings.Count(got, "not available") != 1 ||
				strings.Count(got, "database is ready") != 3 {
				t.Errorf("a change of state is one line:\n%s", got)
			}
		})
	}
}

func TestAWaitForALockHearsItsContext(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			db, _ := logged(t, d, time.Hour)
			unlock := storetest.Lock(t, db)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(30*time.Millisecond, cancel)
			err := db.Write(ctx, func(tx *store.Tx) error { return tx.SetCursor("c", 1) })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			// A writer that waits when the lock goes away succeeds.
			time.AfterFunc(30*time.Millisecond, unlock)
			write(t, db, func(tx *store.Tx) error { return tx.SetCursor("c", 2) })
			unlock()
			if c := cursor(t, db, "c"); c != 2 {
				t.Errorf("the cursor is %d", c)
			}
		})
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			db := must.Get(store.Open(storetest.Options(t, d)))(t)
			if ready, detail := db.State(); ready || detail != "not connected yet" {
				t.Errorf("at first: %v, %q", ready, detail)
			}
			inside, done := make(chan struct{}), make(chan error)
			go func() {
				done <- db.Read(t.Context(), func(tx *store.Tx) error {
					close(inside)
					return tx.Query(
						"with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
						func(*store.Row) error { return nil })
				})
			}()
			<-inside
			go func() { done <- db.Close() }()
			errs := errors.Join(<-done, <-done)
			if !errors.Is(errs, store.ErrClosed) || !errors.Is(errs, store.ErrUnavailable) {
				t.Errorf("got %v", errs)
			}
			for name, err := range map[string]error{
				"write": db.Write(t.Context(), func(*store.Tx) error { return nil }),
				"read":  db.Read(t.Context(), func(*store.Tx) error { return nil }),
				"ready": db.Ready(t.Context()),
			} {
				if !errors.Is(err, store.ErrClosed) {
					t.Errorf("%s: got %v", name, err)
				}
			}
			if err := db.Close(); err != nil {
				t.Errorf("close again: %v", err)
			}
			if ready, _ := db.State(); ready {
				t.Error("ready after Close")
			}
			goleak.VerifyNone(t, before)
		})
	}
}

func TestAFullDiskIsUnavailable(t *testing.T) {
	db := storetest.Open(t, store.SQLite)
	limit := func(pages string) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			return tx.Query("pragma max_page_count = "+pages, func(*store.Row) error { return nil })
		}
	}
	write(t, db, limit("60"))
	insert(t, db, someTrades(1, 10))
	err := db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.InsertTrades(someTrades(1, 5000))
		return err
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if ready, detail := db.State(); ready || !strings.Contains(detail, "full") {
		t.Errorf("state: %v, %q", ready, detail)
	}
	mustBe(t, allTrades(t, db), someTrades(1, 10))
	write(t, db, limit("100000"))
	insert(t, db, someTrades(1, 5000))
	mustBe(t, allTrades(t, db), someTrades(1, 5000))
}

func TestADamagedPageIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "posttrade.db")
	db := must.Get(store.Open(store.Options{Dir: dir}))(t)
	insert(t, db, someTrades(1, 3000))
	must.OK(t, db.Close())
	whole := must.Get(os.ReadFile(file))(t)
	// The last pages belong to the table and its indexes; the first ones hold the schema.
	copy(whole[len(whole)-4*4096:], bytes.Repeat([]byte{0xa5}, 4096))
	must.OK(t, os.WriteFile(file, whole, 0o600))
	db = storetest.OpenWith(t, store.Options{Dir: dir})
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		return tx.Trades(store.TradeFilter{}, func(*store.Trade) error { return nil })
	})
	if !errors.Is(err, store.ErrDamaged) ||
		!errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a page of rubbish: %v", err)
	}
	if ready, detail := db.State(); ready || !strings.Contains(detail, "damaged") {
		t.Errorf("state: %v, %q", ready, detail)
	}
}

func TestTheFileIsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	db := storetest.OpenWith(t, store.Options{Dir: dir})
	insert(t, db, someTrades(1, 1))
	for _, name := range []string{"posttrade.db", "posttrade.db-wal", "posttrade.db-shm"} {
		info := must.Get(os.Stat(filepath.Join(dir, name)))(t)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestOpenRefusesWhatCannotBeADatabase(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	must.OK(t, os.WriteFile(plain, nil, 0o600))
	other := filepath.Join(dir, "other")
	short := filepath.Join(dir, "short")
	for d, text := range map[string]string{other: "this is a text file, not a database",
		short: "SQL"} {
		must.OK(t, os.Mkdir(d, 0o700))
		must.OK(t, os.WriteFile(filepath.Join(d, "posttrade.db"), []byte(text), 0o600))
	}
	const password = "s3cr#t/p@ss"
	for name, o := range map[string]store.Options{
		"folder is a file": {Dir: plain}, "file is something else": {Dir: other},
		"file is too short": {Dir: short},
		"another scheme":    {URL: "mysql://u:" + password + "@h/db"}, "no URL": {URL: password},
		"bad port":     {URL: "postgres://u:" + password + "@h:port/db"},
		"bad escape":   {URL: "postgres://u:%zz" + password + "@h/db"},
		"bad sslmode":  {URL: "postgres://u:secret@h/db?sslmode=" + password},
		"bad timeout":  {URL: "postgres://u:secret@h/db?connect_timeout=" + password},
		"control byte": {URL: "postgres://u:" + password + "\x7f@h/db"},
	} {
		db, err := store.Open(o)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = db.Close()
			continue
		}
		if strings.Contains(err.Error(), "s3cr") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the password shows in %q", name, err)
		}
	}
}

func TestAFileThatWentAwayIsUnavailable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	db := must.Get(store.Open(store.Options{Dir: dir}))(t)
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	away := dir + "-away"
	must.OK(t, os.Rename(dir, away))
	if err := db.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	must.OK(t, os.Rename(away, dir))
	if err := db.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	insert(t, db, someTrades(1, 1))
}
