package storetest_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// price returns the price of the one trade that one inserts.
func price(t *testing.T, db *store.DB) (price int64) {
	t.Helper()
	err := db.Read(t.Context(), func(tx *store.Tx) error {
		trade, found, err := tx.Trade("trd-1")
		if price = trade.Price; err == nil && !found {
			price = -1
		}
		return err
	})
	must.OK(t, err)
	return price
}

// one inserts a trade.
func one(tx *store.Tx) error {
	_, err := tx.InsertTrades([]store.Trade{{ID: "trd-1", Seq: 1,
		Security: "IBM", Quantity: 1, Price: 5}})
	return err
}

func TestEachGivesFreshDatabases(t *testing.T) {
	seen := map[store.Dialect]int{}
	for range 2 {
		storetest.Each(t, func(t *testing.T, db *store.DB) {
			seen[db.Dialect()]++
			if p := price(t, db); p != -1 {
				t.Errorf("a trade at %d is there already", p)
			}
			must.OK(t, db.Write(t.Context(), one))
			storetest.Edit(t, db, "update trades set price = $1 where id = $2", 77, "trd-1")
			if p := price(t, db); p != 77 {
				t.Errorf("after the edit the price is %d", p)
			}
		})
	}
	for _, d := range storetest.Dialects(t) {
		if seen[d] != 2 {
			t.Errorf("%s was tested %d times", d, seen[d])
		}
	}
	if len(seen) != len(storetest.Dialects(t)) {
		t.Errorf("tested %v", seen)
	}
}

// With -short each test runs on one dialect, and all tests together cover every dialect.
func TestEachInFullSamplesWithShort(t *testing.T) {
	all := storetest.Dialects(t)
	var seen []store.Dialect
	storetest.EachInFull(t, func(t *testing.T, db *store.DB) {
		seen = append(seen, db.Dialect())
		if p := price(t, db); p != -1 {
			t.Errorf("a trade at %d is there already", p)
		}
	})
	want := all
	if testing.Short() {
		want = []store.Dialect{storetest.Chosen(t.Name(), all)}
	}
	if !slices.Equal(seen, want) {
		t.Errorf("tested %v, want %v", seen, want)
	}
	both := []store.Dialect{store.SQLite, store.Postgres}
	times := map[store.Dialect]int{}
	for i := range 100 {
		times[storetest.Chosen(fmt.Sprint("Test", i), both)]++
	}
	if times[store.SQLite] < 30 || times[store.Postgres] < 30 {
		t.Errorf("of 100 names: %v", times)
	}
}

func TestLockHoldsWritersOnly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		must.OK(t, db.Write(t.Context(), one))
		unlock := storetest.Lock(t, db)
		done := make(chan error, 1)
		go func() {
			done <- db.Write(t.Context(), func(tx *store.Tx) error {
				_, err := tx.Exec("update trades set price = 6")
				return err
			})
		}()
		if p := price(t, db); p != 5 {
			t.Errorf("price %d under the lock", p)
		}
		select {
		case err := <-done:
			t.Errorf("a writer passed the lock: %v", err)
		default:
		}
		unlock()
		unlock()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if p := price(t, db); p != 6 {
			t.Errorf("price %d after the lock", p)
		}
	})
}

func TestTheRigLeavesNoGoroutine(t *testing.T) {
	storetest.Dialects(t) // the server has been started
	before := goleak.IgnoreCurrent()
	t.Run("all of it", func(t *testing.T) {
		storetest.Each(t, func(t *testing.T, db *store.DB) { storetest.Lock(t, db) })
		if slices.Contains(storetest.Dialects(t), store.Postgres) {
			db, network := storetest.Cut(t)
			network.Hold()
			network.Cut()
			if err := db.Write(t.Context(), one); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("through a cut network: %v", err)
			}
			network.Heal()
			if err := db.Write(t.Context(), one); err != nil {
				t.Error(err)
			}
		}
	})
	goleak.VerifyNone(t, before)
}

// childVariable makes this binary the process that ends under observation.
const childVariable = "STORETEST_CHILD"

// TestTheServerEndsWithTheProcess runs a test process that starts a private server and ends in one
// of several ways. It checks that the server's folder and its keeper go.
func TestTheServerEndsWithTheProcess(t *testing.T) {
	if way := os.Getenv(childVariable); way != "" {
		child(t, way)
		return
	}
	if len(storetest.Dialects(t)) == 1 {
		return // there is no server to check; Dialects has logged that
	}
	for _, way := range []string{"return", "exit", "panic", "kill"} {
		t.Run(way, func(t *testing.T) {
			alive, inherited, err := os.Pipe()
			must.OK(t, err)
			cmd := exec.Command(os.Args[0], "-test.run=^TestTheServerEndsWithTheProcess$")
			cmd.Env = append(os.Environ(), childVariable+"="+way)
			cmd.ExtraFiles = []*os.File{inherited} // number 3, which the child passes to the keeper
			in, err1 := cmd.StdinPipe()
			out, err2 := cmd.StdoutPipe()
			must.OK(t, errors.Join(err1, err2, cmd.Start(), inherited.Close()))
			var folder string
			must.Get(fmt.Fscanf(out, "folder %s\n", &folder))(t)
			if _, err := os.Stat(folder + "/data/postmaster.pid"); err != nil {
				t.Errorf("the server does not run: %v", err)
			}
			if way == "kill" {
				err = cmd.Process.Kill()
			} else {
				_, err = io.WriteString(in, "go\n")
			}
			must.OK(t, err)
			_, _ = io.Copy(io.Discard, out) // the output of a panic
			_ = cmd.Wait()                  // the error is the end that the test asked for
			// The keeper and the server hold the pipe's other end until they have ended.
			must.Get(io.Copy(io.Discard, alive))(t)
			if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder is left behind: %v", err)
			}
			if err := alive.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// child starts a server, prints its folder, and ends.
func child(t *testing.T, way string) {
	folder := must.Get(storetest.StartPrivate(os.NewFile(3, "alive")))(t)
	fmt.Printf("folder %s\n", folder)
	must.Get(fmt.Scanln(new(string)))(t)
	switch way {
	case "exit":
		os.Exit(3)
	case "panic":
		panic("asked for")
	}
}

func TestWithoutPostgresTheRigSaysSo(t *testing.T) {
	if storetest.Allowed(storetest.ErrNoPostgres, "true") ||
		!storetest.Allowed(storetest.ErrNoPostgres, "") {
		t.Error("without PostgreSQL CI must fail, and only CI")
	}
	if storetest.Allowed(errors.New("broken"), "") {
		t.Error("a broken server is no reason to test less")
	}
	t.Setenv("PATH", t.TempDir())
	if folder, err := storetest.FindPrograms(t.TempDir()); !errors.Is(err, storetest.ErrNoPostgres) {
		t.Errorf("found %q, %v", folder, err)
	}
}
