package projection

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// victimEnv makes this test binary a process that projects a history until it is
// killed: "<seed> <fills>|<database URL>|<folder>".
const victimEnv = "POSTTRADE_TEST_PROJECTION_VICTIM"

func TestMain(m *testing.M) {
	if text, is := os.LookupEnv(victimEnv); is {
		if err := victim(text); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killedHistory is the same for the same seed in every process.
func killedHistory(seed uint64, fills int) *history {
	return newHistory(rand.New(rand.NewPCG(seed, 5)), fills)
}

// victim projects, and books every seventh trade as a message as well.
func victim(text string) error {
	var seed uint64
	var fills int
	part := strings.Split(text, "|")
	if _, err := fmt.Sscan(part[0], &seed, &fills); err != nil {
		return err
	}
	db, err := store.Open(store.Options{URL: part[1], Dir: part[2]})
	if err != nil {
		return err
	}
	h := killedHistory(seed, fills)
	o := options(h, db)
	o.BatchRows = 100
	p := New(o)
	for p.Lag() > 0 {
		fmt.Println("step")
		if _, err := p.Step(context.Background()); err != nil {
			return err
		}
		at, _ := p.Projected()
		for i := at; i < min(at+60, uint64(fills)); i += 7 {
			if _, err := p.BookLegacy(context.Background(),
				bodyAs(fmt.Sprint("ext-", i), h.fills[i])); err != nil {
				return err
			}
		}
	}
	fmt.Println("done")
	_, err = io.Copy(io.Discard, os.Stdin) // until it is killed
	return err
}

func TestKilledProcessLeavesNothingHalf(t *testing.T) {
	kills, steps := size(25, 4), size(15, 8)
	fills := kills * steps * 60 // a step is 100 fills: it gets through most of them
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			random := seeded(t)
			seed := random.Uint64()
			h := killedHistory(seed, fills)
			o := storetest.Options(t, d)
			inside := 0
			for range kills {
				kill(t, fmt.Sprintf("%d %d|%s|%s", seed, fills, o.URL, o.Dir), 1+random.IntN(steps))
				db := storetest.OpenWith(t, o)
				inside += checkKilled(t, db, h.fills)
				must.OK(t, db.Close())
			}
			t.Logf("%d kills, %d of them with fills left to project", kills, inside)
			db := storetest.OpenWith(t, o)
			p := New(options(h, db))
			drain(t, p)
			if n := checkKilled(t, db, h.fills); n != 0 {
				t.Error("fills are left")
			}
		})
	}
}

// kill starts a victim and kills it at some moment of the given step, of a later one, or when it
// has finished.
func kill(t *testing.T, text string, step int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+text)
	stdin, err := cmd.StdinPipe() // so that it ends when this process does
	must.OK(t, err)
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	must.OK(t, err)
	must.OK(t, cmd.Start())
	said, line := bufio.NewReader(stdout), "step\n"
	for ; step > 0 && line == "step\n" && err == nil; step-- {
		line, err = said.ReadString('\n')
	}
	if err != nil || line != "step\n" && line != "done\n" {
		_ = cmd.Process.Kill()
		t.Fatalf("victim says %q: %v", line, err)
	}
	must.OK(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed, as it should be
	if state := cmd.ProcessState.String(); !strings.Contains(state, "killed") {
		t.Fatalf("victim ended with %s", state)
	}
}

// checkKilled checks that the table holds exactly the fills up to the cursor and
// what messages booked, and returns 1 if there is more to project.
func checkKilled(t *testing.T, db *store.DB, fills []matcher.Fill) int {
	t.Helper()
	got, at := table(t, db), cursor(t, db, cursorTrades)
	if at > 0 && cursor(t, db, cursorMark) != markOf(&fills[at-1]) {
		t.Fatalf("the mark is not of the cursor %d", at)
	}
	for i, r := range got {
		if r.Seq >= store.FirstExternal {
			n, _ := strconv.Atoi(strings.TrimPrefix(r.ID, "ext-"))
			if r != outside(r.Seq-store.FirstExternal+1, r.ID, fills[n]) {
				t.Fatalf("booking from outside: %+v", r)
			}
			continue
		}
		f := fills[r.Seq-1]
		if r != row(f) {
			t.Fatalf("row %d: %+v", i, r)
		}
		if uint64(i) < at && r.Seq != uint64(i)+1 {
			t.Fatalf("row %d has tradeSeq=%d, the cursor is %d", i, r.Seq, at)
		}
	}
	if uint64(len(got)) < at {
		t.Fatalf("%d rows, the cursor is %d", len(got), at)
	}
	if at < uint64(len(fills)) {
		return 1
	}
	return 0
}

// TestSessionsCutInMidTransaction repeatedly ends the connections of a projection, by the network
// and by the server, each time while it waits for a lock, before or after it has written one of its
// cursors.
func TestSessionsCutInMidTransaction(t *testing.T) {
	if len(storetest.Dialects(t)) < 2 {
		return // SQLite has no connections to cut
	}
	cuts := size(12, 3)
	random := seeded(t)
	db, network := storetest.Cut(t)
	storetest.Edit(t, db, `create function linger() returns trigger language plpgsql as
		'begin perform pg_advisory_xact_lock_shared(hashtext(new.name)); return new; end'`)
	storetest.Edit(t, db,
		"create trigger linger before insert on cursors for each row execute function linger()")
	h := newHistory(random, 300)
	h.looked = make(chan struct{}, 1)
	o := options(h, db)
	o.BatchRows, o.Poll = 64, time.Millisecond
	p := New(o)
	stop := running(t, p)
	for i := range cuts {
		await(t, h, func() bool { return at(p, h) })
		held := holdUp(t, db, []string{cursorTrades, cursorInput, cursorMark}[random.IntN(3)])
		h.grow(random, 256)
		held.awaitWaiter(t, db)
		if i%2 == 0 {
			network.Cut()
			legacy := h.fills[random.IntN(len(h.fills))]
			if booked, err := p.BookLegacy(t.Context(), bodyAs("ext-1", legacy)); booked || err == nil ||
				errors.Is(err, ErrMalformed) {
				t.Errorf("message without a network: %v, %v", booked, err)
			}
			network.Heal()
		} else {
			storetest.Terminate(t, db)
		}
		held.end(t)
		await(t, h, func() bool { return at(p, h) })
		wantTable(t, db, rows(h.fills))
	}
	if err := stop(); err != nil {
		t.Errorf("run: %v", err)
	}
	m := p.Metrics()
	t.Logf("%d cuts, %d failures", cuts, m.Failures)
	if m.Failures < uint64(cuts) {
		t.Errorf("%d failures, want at least one a cut", m.Failures)
	}
}

// holdup is a session that holds the lock of a cursor's name.
type holdup struct {
	db   *store.DB
	free chan struct{}
	done chan error
}

// holdUp takes the lock that a writer of the cursor waits for. A cut ends it as well.
func holdUp(t *testing.T, db *store.DB, name string) *holdup {
	t.Helper()
	other := must.Get(db.Twin())(t)
	h, has := &holdup{db: other, free: make(chan struct{}),
		done: make(chan error, 1)}, make(chan struct{})
	go func() {
		h.done <- other.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.Exec("select pg_advisory_xact_lock(hashtext($1))", name)
			if err == nil {
				close(has)
				<-h.free
			}
			return err
		})
	}()
	select {
	case <-has:
	case err := <-h.done:
		t.Fatalf("take the lock of %s: %v", name, err)
	}
	return h
}

// awaitWaiter returns when a session waits for such a lock.
func (h *holdup) awaitWaiter(t *testing.T, db *store.DB) {
	t.Helper()
	for waiting := int64(0); waiting == 0; {
		err := db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Query("select count(*) from pg_stat_activity where datname = current_database() and "+
				"wait_event = 'advisory'",
				func(r *store.Row) error { waiting = r.Int64(0); return nil })
		})
		must.OK(t, err)
	}
}

// end releases the lock, if the cut has not.
func (h *holdup) end(t *testing.T) {
	t.Helper()
	close(h.free)
	<-h.done // its connection may be gone: that is an error
	if err := h.db.Close(); err != nil {
		t.Error(err)
	}
}
