package installation

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	members := startMembers(t, binary, "--snapshot.interval-commands=200",
		"--recon.blotter.capacity=100", "--journal.scrub-interval=1s")
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
		for _, m := range members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			s, err := quorum.Remote{}.Status(ctx, m.peers)
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
	b.check(sameJournals(t, members))
	for _, m := range members {
		program(t, "journal", "verify", "--data.dir="+m.data)
	}
	if _, err := os.Stat(filepath.Join(victim.data, healingName)); !os.IsNotExist(err) {
		t.Errorf("the mark is left: %v", err)
	}
}
