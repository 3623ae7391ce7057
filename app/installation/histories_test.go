package installation

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// traded opens an installation and trades until its journal has that many fills. Days of one seed
// have the same trades.
func traded(t *testing.T, data string, seed, fills uint64, nameValue ...string) *installed {
	t.Helper()
	in := install(t, data, nameValue...)
	_, end := ordersFlow(t, in, seed)
	awaitFills(t, in, fills)
	end()
	return in
}

// openFails opens an installation that must not start, and returns the exit code and the line.
func openFails(t *testing.T, data string, nameValue ...string) (code int, line string) {
	t.Helper()
	c := apptest.Settled(t, append(append(anyPorts(data), quick...), nameValue...)...)
	in, err := Open(t.Context(), c, EngineOptions(c), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err == nil {
		err = in.Stop()
		t.Fatalf("it starts, and stops with %v", err)
	}
	var stderr bytes.Buffer
	code = settings.Exit(&stderr, err)
	return code, stderr.String()
}

// A start on a database that another history fills is refused by name, whether that history has
// marked the database or wrote it before there were marks.
func TestStartOnTheDatabaseOfAnotherHistoryIsRefused(t *testing.T) {
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		flags, first := databaseFlags(t, d), t.TempDir()
		in := traded(t, first, 1, 50, flags...)
		in.awaitMatched()
		rows := booked(in)
		refused := func(second string, what string) {
			t.Helper()
			wantCode, named := settings.ExitFailed, filepath.Join(second, "posttrade.db")
			if d == store.Postgres {
				wantCode, named = settings.ExitUsage, "database.url"
			}
			code, line := openFails(t, second, flags...)
			if code != wantCode || !strings.Contains(line, named) ||
				!strings.Contains(line, "another history") ||
				strings.Count(line, "\n") != 1 {
				t.Errorf("%s: exit %d, %q", what, code, line)
			}
		}
		second := t.TempDir()
		if d == store.Postgres { // the server is shared
			refused(second, "beside the first")
		}
		in.stop()
		secondAlone := t.TempDir()
		other := traded(t, secondAlone, 2, 200) // on a SQLite file of its own
		other.awaitMatched()
		other.stop()
		moveDatabase(t, d, first, second)
		if d == store.Postgres {
			refused(second, "a new journal")
		} else if code, line := openFails(t, second, flags...); code != settings.ExitFailed ||
			!strings.Contains(line, "the journal is missing or older") ||
			!strings.Contains(line, "posttrade.db") {
			t.Errorf("a file beside a new journal: exit %d, %q", code, line)
		}
		moveDatabase(t, d, first, secondAlone)
		refused(secondAlone, "a journal with trades of its own")

		// As a version without marks left it: the rows decide.
		unmark(t, d, first, flags)
		moveDatabase(t, d, first, secondAlone)
		refused(secondAlone, "a journal with trades of its own, without a mark")
		again := install(t, first, flags...)
		again.awaitMatched()
		if got := booked(again); !slices.Equal(got, rows) {
			t.Errorf("%d rows, %d before", len(got), len(rows))
		}
	})
}

// booked are the rows as they were booked, without the changes of settlement.
func booked(in *installed) []store.Trade {
	in.t.Helper()
	rows := in.rows()
	for i := range rows {
		rows[i].Status, rows[i].UpdatedAt = store.Processing, rows[i].BookedAt
	}
	return rows
}

// moveDatabase copies the SQLite file of one installation over that of another, with its log where
// the last close has left one.
func moveDatabase(t *testing.T, d store.Dialect, from, to string) {
	t.Helper()
	if d != store.SQLite {
		return
	}
	for _, name := range []string{"posttrade.db", "posttrade.db-wal", "posttrade.db-shm"} {
		if err := os.Remove(filepath.Join(to, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"posttrade.db", "posttrade.db-wal"} {
		file, err := os.ReadFile(filepath.Join(from, name))
		if os.IsNotExist(err) && name != "posttrade.db" {
			continue
		}
		must.OK(t, err)
		must.OK(t, os.WriteFile(filepath.Join(to, name), file, 0o600))
	}
}

// unmark removes the mark of a history.
func unmark(t *testing.T, d store.Dialect, data string, flags []string) {
	t.Helper()
	o := store.Options{Dir: data}
	if d == store.Postgres {
		o = store.Options{URL: flags[1]}
	}
	storetest.Edit(t, storetest.OpenWith(t, o), "delete from history")
}

// A database is unreachable at the start, and another history's when it comes: /readyz shows it, no
// figure of it is served, and it is not changed.
func TestDatabaseThatComesAsAnothersIsNotServed(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	direct := storetest.Options(t, store.Postgres)
	o, network := storetest.Behind(t, direct)
	network.Cut()
	second := traded(t, t.TempDir(), 2, 20, "database.url", o.URL)
	first := traded(t, t.TempDir(), 1, 50, "database.url", direct.URL)
	first.awaitMatched()
	rows := booked(first)
	network.Heal()
	apptest.Until(t, "the second server sees whose database it is", func() (bool, any) {
		status, body := second.get("admin", "/readyz")
		return status == http.StatusServiceUnavailable && bytes.Contains(body, []byte("another history")),
			string(body)
	})
	for _, path := range []string{"/trades", "/trades/trd-1", "/recon/status", "/recon/breaks",
		"/recon/orphan-sweep/last",
		"/tca/summary", "/tca/report/trd-1"} {
		status, body := second.get("trade-processor", path)
		if status != http.StatusServiceUnavailable ||
			!bytes.Contains(body, []byte(`"FOREIGN_DATABASE"`)) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := second.get("account-service",
		"/account/"); status != http.StatusServiceUnavailable {
		t.Errorf("accounts: %d %s", status, body)
	}
	second.stop()
	first.awaitMatched()
	if got := booked(first); !slices.Equal(got, rows) {
		t.Errorf("%d rows, %d before", len(got), len(rows))
	}
}

// A copy of a data directory goes on beside the original: both have one history up to the copy. The
// one that books its next trade first owns the database.
func TestCopyOfAJournalThatGoesOnIsNotServed(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	direct := storetest.Options(t, store.Postgres)
	o, network := storetest.Behind(t, direct)
	original, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	in := traded(t, original, 1, 50, "database.url", direct.URL)
	in.awaitMatched()
	in.stop()
	if out, err := exec.Command("cp", "-a", original, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	network.Cut()
	second := traded(t, copied, 2, 400, "database.url", o.URL)
	first := traded(t, original, 3, 100, "database.url", direct.URL)
	first.awaitMatched()
	rows := booked(first)
	network.Heal()
	apptest.Until(t, "the copy sees that its trades are others", func() (bool, any) {
		status, body := second.get("trade-processor", "/recon/status")
		return status == http.StatusServiceUnavailable &&
			bytes.Contains(body, []byte(`"FOREIGN_DATABASE"`)), string(body)
	})
	apptest.Until(t, "it is not ready", func() (bool, any) {
		status, body := second.get("admin", "/readyz")
		return status == http.StatusServiceUnavailable && bytes.Contains(body, []byte("history")),
			string(body)
	})
	first.awaitMatched()
	if got := booked(first); !slices.Equal(got, rows) {
		t.Errorf("%d rows, %d before", len(got), len(rows))
	}
}
