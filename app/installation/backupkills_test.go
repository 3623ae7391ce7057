package installation

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal/backup"
	"posttrade/ring/must"
)

var backupKills = flag.Int("backupkills", 6, "kills of TestKillsBesideABackup")

// TestKillsBesideABackup kills the server, the backup or the restore with -9, at random moments
// while clients send. A directory is a backup, whole and verified, or counts as unfinished, and the
// same command makes it again. What a chain restores is the server's history, and has everything
// that was acknowledged before its last backup began.
func TestKillsBesideABackup(t *testing.T) {
	k := &backupRig{t: t, program: apptest.Program(t), data: t.TempDir(), nights: t.TempDir(),
		random: rand.New(rand.NewPCG(*crashSeed, 2)), o: &oracle{unknown: map[string]outcome{}}}
	t.Logf("seed %d, %d kills", *crashSeed, *backupKills)
	for cycle := range *backupKills {
		k.cycle(cycle)
	}
	t.Logf("%d kills: %d of the server, %d of a backup, %d of a restore; %d backups were cut short, "+
		"%d commands restored, 0 violations", *backupKills, k.servers, k.backups, k.restores, k.short,
		k.restored)
	if k.restored == 0 {
		t.Fatal("nothing was ever restored: the test tested nothing")
	}
}

// backupRig is what the cycles of TestKillsBesideABackup share.
type backupRig struct {
	t       *testing.T
	program string
	data    string
	nights  string
	random  *rand.Rand
	o       *oracle
	chain   []string
	made    int
	acked   uint64 // acknowledged before the last backup of the chain began

	servers, backups, restores, short, restored int
}

// cycle runs the server under load, makes a backup, and kills one of the two, or the restore.
func (k *backupRig) cycle(n int) {
	k.t.Helper()
	s := startForCrash(k.t, k.program, k.data, besideEngine(n)...)
	k.o.repeatUnknown(k.t, s.url)
	var killed atomic.Bool
	var mu sync.Mutex
	var results []outcome
	var clients sync.WaitGroup
	seed := k.random.Uint64()
	for c := range crashClients {
		clients.Go(func() {
			mine := crashClient(s.url, fmt.Sprintf("b%d-%d", n, c), rand.New(rand.NewPCG(seed, uint64(c))),
				&killed)
			mu.Lock()
			results = append(results, mine...)
			mu.Unlock()
		})
	}
	<-time.After(time.Duration(k.random.IntN(100)) * time.Millisecond)
	first := send(http.DefaultClient, s.url+"/orders", outcome{clientOrderID: fmt.Sprint("first-", n),
		kind: "ORDER_NEW", body: fmt.Sprintf(
			`{"clientOrderId":"first-%d","accountId":1,"security":"AAPL","side":"Buy","quantity":1,`+
				`"limitPrice":1}`,
			n)})
	k.made++
	dir := filepath.Join(k.nights, fmt.Sprint("night", k.made))
	args := []string{"backup", dir, "--data.dir=" + k.data}
	if len(k.chain) > 0 {
		args = append(args, "--since="+k.chain[len(k.chain)-1])
	}
	after := time.Duration(k.random.IntN(60)) * time.Millisecond
	switch n % 3 {
	case 0:
		k.servers++
		if done := k.begin(args); !k.killedAfter(done, s.cmd, after) {
			k.short++
		}
	case 1:
		k.backups++
		done := k.begin(args)
		<-time.After(after)
		if done.cmd.Process.Kill() != nil || !done.wait() {
			k.short++
		}
	default:
		k.run(args)
	}
	if n%3 != 0 {
		k.again(dir, args)
		must.OK(k.t, s.cmd.Process.Kill())
	}
	killed.Store(true)
	clients.Wait()
	<-s.exited
	for _, r := range append(results, first) {
		if r.status != 0 {
			k.o.acked = append(k.o.acked, r)
		} else if r.clientOrderID != "" {
			k.o.unknown[r.clientOrderID] = r
		}
	}
	k.o.check(k.t, export(k.t, k.program, k.data))
	if m, err := backup.Read(dir); err == nil {
		k.chain, k.acked = append(k.chain, dir), first.sequence
		if m.To.InputSeq < first.sequence {
			k.t.Fatalf("a backup ends at %d, %d was acknowledged before it", m.To.InputSeq,
				first.sequence)
		}
	} else if n%3 != 0 {
		k.t.Fatal(err)
	}
	if n%3 == 2 || len(k.chain) == 6 {
		k.restore()
	}
}

// again makes a backup that was cut short.
func (k *backupRig) again(dir string, args []string) {
	k.t.Helper()
	if _, err := backup.Read(dir); err != nil {
		k.run(args)
	}
}

// child is a program that may be killed.
type child struct {
	cmd *exec.Cmd
	out *strings.Builder
}

func (k *backupRig) begin(args []string) child {
	k.t.Helper()
	c := child{exec.Command(k.program, args...), &strings.Builder{}}
	c.cmd.Stdout, c.cmd.Stderr = io.Discard, c.out
	must.OK(k.t, c.cmd.Start())
	k.t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	return c
}

func (c child) wait() (succeeded bool) { return c.cmd.Wait() == nil }

// killedAfter kills the server beside a backup, and reports whether the backup is whole.
func (k *backupRig) killedAfter(c child, server *exec.Cmd, after time.Duration) (whole bool) {
	<-time.After(after)
	must.OK(k.t, server.Process.Kill())
	return c.wait()
}

func (k *backupRig) run(args []string) {
	k.t.Helper()
	if c := k.begin(args); !c.wait() {
		k.t.Fatalf("%v: %s", args, c.out)
	}
}

// restore restores the chain, kills that once on the way, and compares.
func (k *backupRig) restore() {
	k.t.Helper()
	data := filepath.Join(k.t.TempDir(), "data")
	args := append([]string{"restore", "--data.dir=" + data}, k.chain...)
	c := k.begin(args)
	<-time.After(time.Duration(k.random.IntN(80)) * time.Millisecond)
	k.restores++
	if err := c.cmd.Process.Kill(); err == nil && !c.wait() {
		if backup.Whole(data) == nil && len(namesIn(k.t, data)) > 0 {
			k.t.Fatal("a restore that was killed left no mark")
		}
		k.run(args)
	}
	lines := export(k.t, k.program, data)
	history := k.o.history
	if len(lines) > len(history) || !slices.Equal(lines, history[:len(lines)]) {
		k.t.Fatalf("%d commands restored are not the first of %d", len(lines), len(history))
	}
	if uint64(len(lines)) < k.acked {
		k.t.Fatalf("%d commands restored, %d were acknowledged before the backup", len(lines), k.acked)
	}
	k.restored += len(lines)
	k.chain = nil
}
