package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// withPostgres runs a test of faults that only PostgreSQL can have.
func withPostgres(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	if slices.Contains(storetest.Dialects(t), store.Postgres) {
		test(t)
	}
}

func TestSessionsEndedInMidTransactionLoseNothing(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db := storetest.Open(t, store.Postgres)
		for _, size := range []int{1, 10, 100} {
			insert(t, db, someTrades(uint64(1+size*1000), size))
			err := db.Write(t.Context(), func(tx *store.Tx) error {
				if _, err := tx.InsertTrades(someTrades(1, size)); err != nil {
					return err
				}
				storetest.Terminate(t, db)
				return tx.SetCursor("c", 1)
			})
			if !errors.Is(err, store.ErrUnavailable) {
				t.Fatalf("%d rows: got %v", size, err)
			}
			if ready, _ := db.State(); ready {
				t.Error("ready after a lost session")
			}
			if c := cursor(t, db, "c"); c != 0 {
				t.Errorf("the cursor moved to %d", c)
			}
		}
		want := append(append(someTrades(1001, 1), someTrades(10001, 10)...), someTrades(100001, 100)...)
		mustBe(t, allTrades(t, db), want)
	})
}

// TestARoleWithoutRightsWaitsForThem: as with a wrong password, an operator mends it on the server,
// and the next call goes on.
func TestARoleWithoutRightsWaitsForThem(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		o := storetest.Options(t, store.Postgres)
		at := must.Get(url.Parse(o.URL))(t)
		role := "plain_" + strings.Trim(at.Path, "/")
		must.OK(t, store.Administer(t.Context(), o.URL, "create role "+role))
		t.Cleanup(func() {
			must.OK(t, store.Administer(context.Background(), o.URL, "drop owned by "+role))
			must.OK(t, store.Administer(context.Background(), o.URL, "drop role "+role))
		})
		must.OK(t, store.Administer(t.Context(), o.URL, "revoke create on schema public from public"))
		q := at.Query()
		q.Set("role", role)
		at.RawQuery = q.Encode()
		db := must.Get(store.Open(store.Options{URL: at.String()}))(t)
		defer db.Close()
		if err := db.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) ||
			!strings.Contains(err.Error(), "permission denied") {
			t.Errorf("without rights: %v", err)
		}
		must.OK(t, store.Administer(t.Context(), o.URL, "grant all on schema public to "+role))
		must.OK(t, db.Ready(t.Context()))
	})
}

// TestConnectionsThatDiedIdleAreReplaced ends every session between two calls: no caller notices.
func TestConnectionsThatDiedIdleAreReplaced(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db := storetest.Open(t, store.Postgres)
		var inside, all sync.WaitGroup
		inside.Add(3)
		for range 3 { // so that three connections are idle afterwards
			all.Go(func() {
				if err := db.Read(t.Context(), func(*store.Tx) error {
					inside.Done()
					inside.Wait()
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if n := store.Idle(db); n != 3 {
			t.Fatalf("%d idle connections, want 3", n)
		}
		storetest.Terminate(t, db)
		for seq := range uint64(4) {
			insert(t, db, someTrades(seq+1, 1))
		}
		mustBe(t, allTrades(t, db), someTrades(1, 4))
	})
}

func TestACommitThatGetsNoAnswerIsAnError(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db, network := storetest.Cut(t)
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			defer network.Cut()
			return tx.SetCursor("c", 1)
		})
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "commit") {
			t.Errorf("got %v", err)
		}
		if err := db.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("while the network is cut: %v", err)
		}
		if ready, detail := db.State(); ready || !strings.Contains(detail, "connect") {
			t.Errorf("state: %v, %q", ready, detail)
		}
		network.Heal()
		if err := db.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if ready, detail := db.State(); !ready {
			t.Errorf("not ready: %s", detail)
		}
		if c := cursor(t, db, "c"); c != 0 {
			t.Errorf("the cursor moved to %d", c)
		}
	})
}

// TestANetworkCutInMidBatchIsRepeatedWithoutADouble sends a series of batches through a network
// that is cut again and again. Like a follower, it tries each batch until it is stored.
func TestANetworkCutInMidBatchIsRepeatedWithoutADouble(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db, network := storetest.Cut(t)
		const batches, size = 30, 100
		failures := 0
		for b := range batches {
			rows := someTrades(uint64(1+b*size), size)
			for try := 0; ; try++ {
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					if _, err := tx.InsertTrades(rows); err != nil {
						return err
					}
					if try == 0 && b%3 == 0 {
						network.Cut()
					}
					return tx.SetCursor("projection", rows[size-1].Seq)
				})
				if err == nil {
					break
				}
				if !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("batch %d: %v", b, err)
				}
				failures++
				network.Heal()
			}
		}
		if failures < batches/3 {
			t.Errorf("%d failures, want %d at least", failures, batches/3)
		}
		mustBe(t, allTrades(t, db), someTrades(1, batches*size))
		if c := cursor(t, db, "projection"); c != batches*size {
			t.Errorf("the cursor is %d", c)
		}
	})
}

func TestAServerThatFallsSilentIsGivenUp(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		const limit = 100 * time.Millisecond
		tests := map[string]func(*storetest.Proxy, *store.Tx) error{
			"statement": func(network *storetest.Proxy, tx *store.Tx) error {
				network.Hold()
				return tx.SetCursor("c", 1)
			},
			"query": func(network *storetest.Proxy, tx *store.Tx) error {
				network.Hold()
				_, err := tx.CountTrades()
				return err
			},
			"copy": func(network *storetest.Proxy, tx *store.Tx) error {
				network.Hold()
				_, err := tx.InsertTrades(someTrades(1, 1000))
				return err
			},
			"commit": func(network *storetest.Proxy, tx *store.Tx) error {
				defer network.Hold()
				return tx.SetCursor("c", 1)
			},
		}
		for name, fn := range tests {
			t.Run(name, func(t *testing.T) {
				db, network := storetest.Cut(t)
				store.SetPostgresLimits(db, limit, limit, limit)
				err := db.Write(t.Context(), func(tx *store.Tx) error { return fn(network, tx) })
				if !errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				// The next call cannot even connect.
				if err := db.Ready(t.Context()); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("connect: got %v", err)
				}
				network.Cut()
				network.Heal()
				store.SetPostgresLimits(db, time.Minute, time.Minute, time.Minute)
				if n := insert(t, db, someTrades(1, 1)); n != 1 {
					t.Errorf("%d inserted", n)
				}
			})
		}
	})
}

// TestADeadlockIsTriedAgain has two writers lock two rows in opposite order, each after the other
// has its first. The database refuses one of them, and that one runs again.
func TestADeadlockIsTriedAgain(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db := storetest.Open(t, store.Postgres)
		write(t, db, func(tx *store.Tx) error {
			return errors.Join(tx.SetCursor("a", 0), tx.SetCursor("b", 0))
		})
		var firsts, all sync.WaitGroup
		firsts.Add(2)
		runs := make([]int, 2)
		for w, names := range [][2]string{{"a", "b"}, {"b", "a"}} {
			all.Go(func() {
				err := db.Write(t.Context(), func(tx *store.Tx) error {
					add := "update cursors set value = value + 1 where name = $1"
					_, err := tx.Exec(add, names[0])
					if runs[w]++; runs[w] == 1 {
						firsts.Done()
						firsts.Wait()
					}
					if err == nil {
						_, err = tx.Exec(add, names[1])
					}
					return err
				})
				if err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			})
		}
		all.Wait()
		if runs[0]+runs[1] < 3 {
			t.Errorf("no deadlock: %v runs", runs)
		}
		if a, b := cursor(t, db, "a"), cursor(t, db, "b"); a != 2 || b != 2 {
			t.Errorf("a = %d, b = %d, want 2 each", a, b)
		}
	})
}

// TestTriesComeToAnEnd returns an error that asks for a retry every time.
func TestTriesComeToAnEnd(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		db := storetest.Open(t, store.Postgres)
		runs := 0
		err := db.Write(t.Context(), func(tx *store.Tx) error {
			runs++
			_, err := tx.Exec("do $$ begin raise exception 'again' using errcode = '40001'; end $$")
			return err
		})
		if !errors.Is(err, store.ErrUnavailable) || runs != 6 {
			t.Errorf("%d runs, %v", runs, err)
		}
	})
}

func TestAServerThatIsNotThereIsUnavailable(t *testing.T) {
	withPostgres(t, func(t *testing.T) {
		o, network := storetest.CutOptions(t)
		network.Cut()
		db, err := store.Open(o) // makes no connection
		must.OK(t, err)
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		for name, err := range map[string]error{
			"ready": db.Ready(t.Context()),
			"write": db.Write(t.Context(), func(*store.Tx) error { t.Error("ran"); return nil }),
			"read":  db.Read(t.Context(), func(*store.Tx) error { t.Error("ran"); return nil }),
		} {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		network.Heal()
		insert(t, db, someTrades(1, 1)) // it migrates by itself
		mustBe(t, allTrades(t, db), someTrades(1, 1))
	})
}

func TestPasswordsStayOut(t *testing.T) {
	const password = "hunter2hunter2"
	db, text := func() (*store.DB, func() string) {
		// Nothing listens on port 1 of loopback, on any machine.
		u := url.URL{Scheme: "postgres", User: url.UserPassword("someone", password),
			Host: "127.0.0.1:1", Path: "/db"}
		o, log := store.Options{URL: u.String()}, new(strings.Builder)
		o.Logger = logTo(log)
		db := must.Get(store.Open(o))(t)
		return db, log.String
	}()
	err := db.Ready(t.Context())
	_, detail := db.State()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	err = errors.Join(err,
		store.Administer(t.Context(), "postgres://someone:"+password+"@127.0.0.1:1/db", "select 1"))
	all := fmt.Sprintf("%v %+v %s %s", err, err, detail, text())
	if strings.Contains(all, password) || !strings.Contains(all, "someone") {
		t.Errorf("the password shows, or nothing does: %s", all)
	}
	scrubbed, err := store.Scrubbed("postgres://someone:"+password+"@h/db",
		errors.New("no "+password+" here"))
	if err != nil || scrubbed.Error() != "no *** here" {
		t.Errorf("got %v, %v", scrubbed, err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}
