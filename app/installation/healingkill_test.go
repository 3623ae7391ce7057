package installation

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal/quorum"
)

var healKills = flag.Int("healkills", 4, "kills of TestHealingMemberIsKilled")

// TestHealingMemberIsKilled damages the journal of one of three real members, and kills that member
// with -9 again and again on its way to another one, while clients book. In the end it has the
// journal of the others and votes, every acknowledged booking is there once, on every member, and
// one damaged journal is kept.
func TestHealingMemberIsKilled(t *testing.T) {
	binary := apptest.Program(t)
	at := freePorts(t, 6)
	var list []string
	for i := range 3 {
		list = append(list, fmt.Sprintf("%d=%s@%s", i+1, at[i], at[i+3]))
	}
	var members []*killedMember
	for i := range 3 {
		m := &killedMember{t: t, binary: binary, data: t.TempDir(), http: at[i+3]}
		m.args = []string{"serve", "--cluster.member-id=" + strconv.Itoa(i+1), "--cluster.members=" +
			strings.Join(list, ","), "--sidecars.enabled=false", "--data.dir=" + m.data,
			"--admin.listen=127.0.0.1:0", "--journal.reserve-bytes=0", "--snapshot.interval-commands=200",
			"--recon.blotter.capacity=100", "--journal.scrub-interval=1s"}
		m.start()
		members = append(members, m)
	}
	b := &bookers{t: t, members: members}
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { b.run(i) })
	}
	b.progress(4000)
	for _, m := range members { // one after the other: what is in the store's log becomes a table
		m.interrupt()
		m.start()
		b.progress(300)
	}
	random := rand.New(rand.NewPCG(*crashSeed, 5))
	victim := members[random.IntN(3)]
	victim.interrupt()
	flipInTable(t, victim.data)
	victim.start()
	for range *healKills {
		<-time.After(time.Duration(random.IntN(2500)) * time.Millisecond)
		_ = victim.cmd.Process.Kill() // the damage may have ended it
		<-victim.exited
		victim.start()
	}
	ends := 0
	apptest.Until(t, "the member has another journal and votes", func() (bool, any) {
		select {
		case <-victim.exited: // what watches a service starts it again
			ends++
			victim.start()
		default:
		}
		if keptIn(victim.data) != 1 {
			return false, victim.log.String()
		}
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := quorum.Remote{}.Status(ctx, at[i])
			cancel()
			if err != nil || len(s.Servers) != 3 || slices.ContainsFunc(s.Servers,
				func(s quorum.Server) bool {
					return !s.Voter
				}) {
				return false, []any{s, err}
			}
		}
		return true, nil
	})
	t.Logf("%d kills, and the damage has ended the member %d times", *healKills, ends)
	b.progress(20)
	b.done.Store(true)
	clients.Wait()
	b.settle()
	var exports []string
	for _, m := range members {
		m.interrupt()
		exports = append(exports, strings.Join(export(t, binary, m.data), "\n"))
		program(t, "journal", "verify", "--data.dir="+m.data)
	}
	for _, e := range exports[1:] {
		if e != exports[0] {
			t.Error("the members' journals differ")
		}
	}
	b.check(exports[0])
	if _, err := os.Stat(filepath.Join(victim.data, healingName)); !os.IsNotExist(err) {
		t.Errorf("the mark is left: %v", err)
	}
}

// interrupt stops a member in order.
func (m *killedMember) interrupt() {
	m.t.Helper()
	if err := m.cmd.Process.Signal(os.Interrupt); err != nil {
		m.t.Fatal(err)
	}
	if err := <-m.exited; err != nil {
		m.t.Fatalf("stop: %v\n%s", err, m.log)
	}
}
