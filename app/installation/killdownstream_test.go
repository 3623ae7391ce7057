package installation

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/httpapi/client"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

var killCycles = flag.Int("kill.cycles", 0,
	"kill -9 cycles of TestKillWithEverythingOn on each database, 0 = 5, or 2 with -short")

// TestKillWithEverythingOn kills the real binary with -9 at random while orders flow and all
// post-trade work runs. After every kill the table is a prefix of the journal's fills, without an
// extra row and without a duplicate. After the last start reconciliation finds no break and the
// table is the whole journal.
func TestKillWithEverythingOn(t *testing.T) {
	binary := apptest.Program(t)
	cycles := 5
	if testing.Short() {
		cycles = 2
	}
	if *killCycles > 0 {
		cycles = *killCycles
	}
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data := t.TempDir()
		settings := append(databaseFlags(t, d), "recon.poll.interval-ms", "20", "recon.grace-ms", "50",
			"recon.verify.interval-ms", "200", "settlement.sweep.interval-ms", "50")
		var flags []string
		for i := 0; i < len(settings); i += 2 {
			flags = append(flags, "--"+settings[i]+"="+settings[i+1])
		}
		random := rand.New(rand.NewPCG(*crashSeed, 5))
		t.Logf("seed %d, %d cycles", *crashSeed, cycles)
		behind := 0
		for cycle := range cycles {
			server := startForCrash(t, binary, data, flags...)
			loadUntilKilled(t, server, cycle, random.Uint64(),
				time.Duration(50+random.IntN(500))*time.Millisecond)
			tr, rows := openKilled(t, data, settings)
			if len(rows) > len(tr.fills) {
				t.Fatalf("cycle %d: %d rows of %d fills", cycle, len(rows), len(tr.fills))
			}
			behind = max(behind, len(tr.fills)-len(rows))
			tr.fills = tr.fills[:len(rows)]
			tr.checkRows(t, rows)
		}
		server := startForCrash(t, binary, data, flags...)
		fills := awaitConverged(t, data)
		server.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-server.exited; err != nil {
			t.Errorf("stop: %v\n%s", err, server.log)
		}
		tr, rows := openKilled(t, data, settings)
		tr.checkRows(t, rows)
		if len(tr.fills) == 0 || len(rows) != fills {
			t.Errorf("%d fills, %d rows, %d counted by the sweep", len(tr.fills), len(rows), fills)
		}
		t.Logf("%d kills, %d fills, at most %d of them not in the table at a kill", cycles, len(tr.fills),
			behind)
	})
}

// openKilled replays the journal of a server that has ended and reads its table.
func openKilled(t *testing.T, data string, settings []string) (*truth, []store.Trade) {
	t.Helper()
	c := apptest.Settled(t, append([]string{"data.dir", data}, settings...)...)
	o := EngineOptions(c)
	o.Fatal = func(err error) { t.Errorf("journal failed: %v", err) }
	k := must.Get(engine.Open(o))(t)
	tr := replayJournal(t, k)
	tr.checkFills(t, k)
	must.OK(t, k.Stop())
	db := must.Get(store.Open(store.Options{URL: c.String("database.url"), Dir: data}))(t)
	in := &installed{t: t, Installation: &Installation{}}
	in.Beside.Store(&downstream{Db: db})
	rows := in.rows()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	return tr, rows
}

// awaitConverged waits until the server's reconciliation has no open break, and returns the number
// of rows that its orphan sweep counts.
func awaitConverged(t *testing.T, data string) int {
	t.Helper()
	secret, err := apptest.Settled(t, "data.dir", data).JWTSecret()
	must.OK(t, err)
	var ports map[string]string
	text, err := os.ReadFile(filepath.Join(data, "ports.json"))
	if err != nil || json.Unmarshal(text, &ports) != nil {
		t.Fatalf("ports.json: %s, %v", text, err)
	}
	token := gate.Mint(secret, gate.Claims{Subject: "test", Admin: true}, "", time.Hour, time.Now())
	processor := client.New(client.Config{Address: ports["trade-processor"], Token: token})
	defer processor.Close()
	apptest.Until(t, "reconciliation converges", func() (bool, any) {
		s, err := processor.ReconStatus(t.Context())
		return err == nil && s.Lag == 0 && s.Cursor > 0 && s.Matched == s.Cursor && s.Orphans == 0, s
	})
	sweep, err := processor.OrphanSweep(t.Context())
	if err != nil || sweep.OrphanCount != 0 || sweep.LocalTradeCount != sweep.FullHistoryTradeCount {
		t.Errorf("orphan sweep: %+v, %v", sweep, err)
	}
	return int(sweep.LocalTradeCount)
}
