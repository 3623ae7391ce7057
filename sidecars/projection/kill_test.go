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
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
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
	fmt.Println("up")
	for p.Lag() > 0 {
		if _, err := p.Step(context.Background()); err != nil {
			return err
		}
		at, _ := p.Projected()
		for i := at; i < min(at+60, uint64(fills)); i += 7 {
			if _, err := p.BookLegacy(context.Background(), body(h.fills[i])); err != nil {
				return err
			}
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin) // until it is killed
	return err
}

func TestKilledProcessLeavesNothingHalf(t *testing.T) {
	kills := 25
	if testing.Short() {
		kills = 4
	}
	for _, d := range storetest.Dialects(t) {
		t.Run(d.String(), func(t *testing.T) {
			random := seeded(t)
			seed := random.Uint64()
			const fills = 60_000
			h := killedHistory(seed, fills)
			o := storetest.Options(t, d)
			inside := 0
			for range kills {
				kill(t, fmt.Sprintf("%d %d|%s|%s", seed, fills, o.URL, o.Dir), time.Duration(random.IntN(150))*time.Millisecond)
				db := storetest.OpenWith(t, o)
				inside += checkKilled(t, db, h.fills)
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
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

// kill starts a victim and kills it a while after it is up.
func kill(t *testing.T, text string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+text)
	stdin, err := cmd.StdinPipe() // so that it ends when this process does
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil && line == "up\n" {
		<-time.After(after)
		err = cmd.Process.Kill()
	}
	if err != nil || line != "up\n" {
		t.Fatalf("victim says %q: %v", line, err)
	}
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
		f := fills[r.Seq-1]
		if r != row(f) && r != legacyRow(f) {
			t.Fatalf("row %d is neither path's: %+v", i, r)
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

// TestSessionsCutInMidTransaction ends the connections of a projection again and
// again, by the network and by the server, while every write to the cursors takes a while.
func TestSessionsCutInMidTransaction(t *testing.T) {
	if len(storetest.Dialects(t)) < 2 {
		return // SQLite has no connections to cut
	}
	cuts := 12
	if testing.Short() {
		cuts = 3
	}
	random := seeded(t)
	db, network := storetest.Cut(t)
	storetest.Edit(t, db, `create function linger() returns trigger language plpgsql as
		'begin perform pg_sleep(0.01); return new; end'`)
	storetest.Edit(t, db, "create trigger linger before insert on cursors for each row execute function linger()")
	h := newHistory(random, 300)
	h.looked = make(chan struct{}, 1)
	o := options(h, db)
	o.BatchRows, o.Poll = 64, time.Millisecond
	p := New(o)
	stop := running(t, p)
	for i := range cuts {
		h.grow(random, 256)
		<-h.looked // a step begins; it takes 40 ms and more
		<-time.After(time.Duration(random.IntN(50)) * time.Millisecond)
		if i%2 == 0 {
			network.Cut()
			legacy := h.fills[random.IntN(len(h.fills))]
			if booked, err := p.BookLegacy(t.Context(), body(legacy)); booked || err == nil || errors.Is(err, ErrMalformed) {
				t.Errorf("message without a network: %v, %v", booked, err)
			}
			network.Heal()
		} else {
			storetest.Terminate(t, db)
		}
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
