package installation

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/matcher"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

var repairKills = flag.Int("repairkills", 2, "kills of TestKillsOfARepair on each database")

// TestKillsOfARepair kills the real program with -9 at random moments of repairs of many damaged
// rows. A repair that is asked for again completes. At the end each row is right, each damage is
// kept once as the row was, and each repair that has begun is on record, once.
func TestKillsOfARepair(t *testing.T) {
	const fills = 5000
	eachDatabase(t, func(t *testing.T, d store.Dialect) {
		data, flags := t.TempDir(), append(databaseFlags(t, d),
			"settlement.sweep.interval-ms", "86400000", "settlement.t-plus-days", "365")
		in := install(t, data, flags...)
		_, end := ordersFlow(t, in, 1)
		awaitFills(t, in, fills)
		end()
		in.awaitMatched()
		k := &repairRig{t: t, data: data, flags: flags, last: in.tradeSeq()}
		in.stop()
		random := rand.New(rand.NewPCG(*crashSeed, 6))
		k.damage()
		k.repair(0)
		for range *repairKills {
			k.damage()
			k.repair(1 + time.Duration(random.Int64N(int64(k.took)*8/10)))
		}
		k.repair(0)
		k.check()
		tr, rows := openKilled(t, data, flags)
		tr.checkRows(t, rows)
		t.Logf("%d fills, %d rows damaged, %d repairs asked for, %d answered, one takes %s", k.last,
			k.damaged, k.asked, k.answered, k.took)
	})
}

type repairRig struct {
	t     *testing.T
	data  string
	flags []string
	last  uint64 // trade

	damaged         int64 // rows, in all
	asked, answered int   // repairs
	took            time.Duration
	audit           string
}

// damage changes the price of every row that has not been damaged since it was repaired. The server
// does not run.
func (k *repairRig) damage() {
	k.t.Helper()
	k.database(func(tx *store.Tx) error {
		n, err := tx.Exec("update trades set price = price + 1 where price % 10 = 0")
		k.damaged += n
		return err
	})
}

// database runs fn in a transaction of the server's database, while the server does not run.
func (k *repairRig) database(fn func(tx *store.Tx) error) {
	k.t.Helper()
	c := apptest.Settled(k.t, append([]string{"data.dir", k.data}, k.flags...)...)
	db := must.Get(store.Open(store.Options{URL: c.String("database.url"), Dir: k.data}))(k.t)
	must.OK(k.t, db.Write(k.t.Context(), fn))
	must.OK(k.t, db.Close())
}

// repair starts the server and repairs all rows. It kills the server after a time; 0: it waits for
// the answer, reads the record and stops the server.
func (k *repairRig) repair(after time.Duration) {
	k.t.Helper()
	var flags []string
	for i := 0; i < len(k.flags); i += 2 {
		flags = append(flags, "--"+k.flags[i]+"="+k.flags[i+1])
	}
	s := startForCrash(k.t, apptest.Program(k.t), k.data, flags...)
	var ports map[string]string
	must.OK(k.t, json.Unmarshal(must.Get(os.ReadFile(filepath.Join(k.data, "ports.json")))(k.t),
		&ports))
	token := gate.Mint(must.Get(apptest.Settled(k.t, "data.dir", k.data).JWTSecret())(k.t),
		gate.Claims{Subject: "test", Admin: true}, "", time.Hour, time.Now())
	processor := client.New(client.Config{Address: ports["trade-processor"], Token: token})
	defer processor.Close()
	k.asked++
	done := make(chan error, 1)
	begun := time.Now()
	go func() {
		r, err := processor.RepairRows(k.t.Context(), client.RepairQuery{From: "trd-1",
			To: matcher.TradeID(k.last)})
		if err == nil && r.Checked != k.last {
			k.t.Errorf("%+v, want %d compared", r, k.last)
		}
		done <- err
	}()
	signal := syscall.SIGKILL
	if after > 0 {
		<-time.After(after)
	} else {
		must.OK(k.t, <-done)
		done <- nil
		k.took, signal = time.Since(begun), syscall.SIGTERM
		k.audit = acted(k.t, k.data, s.url, "?kind=repair&limit=1000")
	}
	must.OK(k.t, s.cmd.Process.Signal(signal))
	<-s.exited
	if <-done == nil {
		k.answered++
	}
}

// check looks at the records of the repairs.
func (k *repairRig) check() {
	k.t.Helper()
	var kept, repairs, ended, wrong int
	k.database(func(tx *store.Tx) error {
		return tx.Query("select (select count(*) from recon_repaired_rows where fields = 'price'), "+
			"(select count(*) from recon_repairs), "+
			"(select count(*) from recon_repairs where ended_at is not null), "+
			"(select count(*) from recon_repairs r where repaired <> (select count(*) from "+
			"recon_repaired_rows w where w.repair = r.repair))", func(r *store.Row) error {
			kept, repairs, ended, wrong = int(r.Int64(0)), int(r.Int64(1)), int(r.Int64(2)), int(r.Int64(3))
			return nil
		})
	})
	notes := strings.Count(k.audit, `"kind":"repair"`)
	if int64(kept) != k.damaged || wrong != 0 {
		k.t.Errorf("%d rows kept as they were of %d damaged; %d repairs count others", kept, k.damaged,
			wrong)
	}
	// A kill can come before the note, between it and the repair's own record, or after both.
	if notes < repairs || notes > k.asked || repairs < k.answered || ended < k.answered {
		k.t.Errorf("%d asked for, %d answered: %d on record, %d begun, %d ended\n%s", k.asked, k.answered,
			notes, repairs, ended, k.audit)
	}
}

// TestRepairAcrossLeaders stops the leader in the middle of a repair. The next leader completes it
// when it is asked again; both are on record, on every member.
func TestRepairAcrossLeaders(t *testing.T) {
	if !hasPostgres(t) {
		return // members share a server
	}
	const pairs = 20
	o, nats := storetest.Options(t, store.Postgres), brokertest.External(t)
	c := newThree(t, append([]string{"sidecars.enabled", "true", "database.url", o.URL, "nats.url",
		nats.URL()}, quick...)...)
	c.start()
	at, leader := c.leaderOf()
	for n := range pairs {
		for _, side := range []string{"Buy", "Sell"} {
			if status, answer := c.post(0, "/orders", fmt.Sprintf(`{"clientOrderId":"r%d%s","accountId":%d,`+
				`"security":"AAPL","side":%q,"quantity":5,"limitPrice":150}`, n, side, len(side),
				side)); status != 201 {
				t.Fatalf("order: %d %s", status, answer)
			}
		}
	}
	(&installed{t: t, Installation: leader}).awaitProjected(2 * pairs)
	db := must.Get(store.Open(o))(t)
	defer db.Close()
	count := func(sql string) (n int) {
		t.Helper()
		must.OK(t, db.Read(t.Context(), func(tx *store.Tx) error {
			return tx.Query(sql, func(r *store.Row) error { n = int(r.Int64(0)); return nil })
		}))
		return n
	}
	must.OK(t, db.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Exec("update trades set price = price + 1")
		return err
	}))
	// The lock that a repair takes in each of its transactions is held until the leader has stopped.
	held, release, freed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	once := sync.OnceFunc(func() { close(held) })
	go func() {
		freed <- db.Write(t.Context(), func(tx *store.Tx) error {
			_, err := tx.HoldCursor("projection")
			once()
			<-release
			return err
		})
	}()
	<-held
	asked := 0
	repair := func(of int) error {
		asked++
		in := c.members[of%3].open()
		if in == nil {
			return errors.New("it is not open")
		}
		processor := client.New(client.Config{Address: in.listeners.addresses()["trade-processor"],
			Token: c.token()})
		defer processor.Close()
		_, err := processor.RepairRows(t.Context(), client.RepairQuery{From: "trd-1",
			To: matcher.TradeID(2 * pairs)})
		return err
	}
	first := make(chan error, 1)
	go func() { first <- repair(at + 1) }()
	apptest.Until(t, "the repair has begun", func() (bool, any) {
		n := count("select count(*) from recon_repairs")
		return n == 1, n
	})
	c.members[at].stop()
	close(release)
	must.OK(t, <-freed)
	if <-first == nil {
		t.Error("the repair was answered although its leader has stopped")
	}
	apptest.Until(t, "the next leader completes it", func() (bool, any) {
		err := repair(at + 1)
		return err == nil, err
	})
	if n := count("select count(*) from trades where price = 150000000"); n != 2*pairs {
		t.Errorf("%d rows are right, want %d", n, 2*pairs)
	}
	if n := count("select count(*) from recon_repaired_rows"); n != 2*pairs {
		t.Errorf("%d rows are kept as they were, want %d", n, 2*pairs)
	}
	repairs := count("select count(*) from recon_repairs")
	apptest.Until(t, "the same record everywhere", func() (bool, any) {
		one, other := c.get((at+1)%3, "/audit?kind=repair"), c.get((at+2)%3, "/audit?kind=repair")
		n := strings.Count(one, "\n")
		return one == other && n >= repairs && n <= asked && repairs >= 2, one
	})
}
