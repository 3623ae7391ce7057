package installation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// flipInTable flips a bit of the largest table of a journal that is not open, in its first third:
// old blocks, which no start reads.
func flipInTable(t *testing.T, data string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(data, "journal", "store", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	slices.SortFunc(tables, func(a, b string) int {
		return int(must.Get(os.Stat(b))(t).Size() - must.Get(os.Stat(a))(t).Size())
	})
	text := must.Get(os.ReadFile(tables[0]))(t)
	text[len(text)/5] ^= 0x10
	must.OK(t, os.WriteFile(tables[0], text, 0o644))
}

// orders sends n batches of 100 orders with long client ids, to members in turn.
func (c *three) orders(random *rand.Rand, n int) {
	c.t.Helper()
	for k := range n {
		var list []string
		for range 100 {
			list = append(list, fmt.Sprintf(`{"clientOrderId":"%016x%016x%016x","accountId":%d,`+
				`"security":"AAPL",`+
				`"side":"Buy","quantity":%d,"limitPrice":%d.%02d}`, random.Uint64(), random.Uint64(),
				random.Uint64(), 1+random.IntN(4), 1+random.IntN(100), 50+random.IntN(50), random.IntN(100)))
		}
		status, answer := c.post(k, "/orders/batch", "["+strings.Join(list, ",")+"]")
		if status != http.StatusOK && status != http.StatusCreated {
			c.t.Fatalf("orders: %d %.300s", status, answer)
		}
	}
}

// leader is the place of the member that leads.
func (c *three) leader() (at int) {
	c.t.Helper()
	apptest.Until(c.t, "a member leads", func() (bool, any) {
		at = slices.IndexFunc(c.members[:], func(m *memberOfTest) bool {
			in := m.open()
			return in != nil && in.Member.Node.Leads()
		})
		return at >= 0, at
	})
	return at
}

// server is the life of a member's disk, when that votes on every member.
func (c *three) server(of int) string {
	in := c.members[of].open()
	if in == nil {
		return ""
	}
	server := in.Member.Node.Progress().Server
	for _, m := range c.members {
		other := m.open()
		if other == nil {
			return ""
		}
		list := other.Member.Node.Status().Servers
		found := false
		for _, s := range list {
			found = found || s.ID == server && s.Voter
		}
		if !found || len(list) != 3 {
			return ""
		}
	}
	return server
}

// aged is a cluster whose members have old blocks in tables, and a snapshot behind them: no start
// reads these blocks.
func aged(t *testing.T, random *rand.Rand) *three {
	t.Helper()
	const interval = 1000 // threads of the lowest priority write them, beside whatever else runs
	c := newThree(t, "snapshot.interval-commands", strconv.Itoa(interval), "recon.blotter.capacity",
		"100")
	c.start()
	c.orders(random, 60)
	head := c.alike()
	apptest.Until(t, "all members have a snapshot of it", func() (bool, any) {
		seen, least := [3]uint64{}, head
		for i, m := range c.members {
			seen[i] = m.open().Core.Shadow.Last()
			least = min(least, seen[i])
		}
		return least+interval >= head, seen
	})
	c.stop() // the next start puts what is in the store's log into a table
	c.start()
	c.orders(random, 20)
	c.alike()
	return c
}

// A member that finds damage in its journal is sent the leader's without an operator's hand, also
// when it leads: it hands its leadership on, gives its vote back, keeps what it had aside, and is a
// member again. Orders go on meanwhile.
func TestDamagedMemberHealsItself(t *testing.T) {
	for _, role := range []string{"follower", "leader"} {
		t.Run(role, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 1))
			c := aged(t, random)
			at := (c.leader() + 1) % 3
			if role == "leader" {
				at = 0
			}
			x := c.members[at]
			x.stop()
			flipInTable(t, x.data)
			x.start()
			x.awaitOpen()
			apptest.Until(t, "the member votes", func() (bool, any) { return c.server(at) != "", nil })
			if role == "leader" { // the first of the list is the first to be asked
				apptest.Until(t, "the damaged member leads", func() (bool, any) {
					leader := c.leader()
					if leader == at {
						return true, nil
					}
					return false, c.members[leader].open().Member.Node.HandOver()
				})
			}
			was := c.server(at)
			in := x.open()
			must.OK(t, in.scrubbing.scrub.Pass(t.Context()))
			if !in.damaged() {
				t.Fatal("the scrub has found nothing")
			}
			c.orders(random, 5)
			apptest.Until(t, "another disk votes", func() (bool, any) {
				now := c.server(at)
				return now != "" && now != was, []any{now, was, x.log.String()}
			})
			c.orders(random, 5)
			c.alike()
			again := x.open()
			if err := again.scrubbing.scrub.Pass(t.Context()); err != nil || again.damaged() {
				t.Errorf("the journal that was sent: %v, %+v", err, again.scrubbing.scrub.State().Damaged)
			}
			c.stop()
			for _, name := range []string{"journal", "quorum"} {
				if _, err := os.Stat(filepath.Join(x.data, "damaged-1", name)); err != nil {
					t.Error(err)
				}
			}
			for i, m := range c.members {
				_, err := journal.Verify(t.Context(), filepath.Join(m.data, "journal"),
					journal.VerifyOptions{Engine: func(genesis []byte) (journal.Engine, error) {
						g, err := matcher.ParseGenesis(genesis)
						if err != nil {
							return nil, err
						}
						return matcher.New(g)
					}})
				if err != nil || m.hash != c.members[0].hash {
					t.Errorf("member %d: %v, state %x, want %x", i+1, err, m.hash[:4], c.members[0].hash[:4])
				}
			}
		})
	}
}

// damage stops members, damages their journals, and starts them again; then each has a pass of the
// scrub find the damage, at the same time.
func (c *three) damage(members ...int) {
	c.t.Helper()
	for _, at := range members {
		c.members[at].stop()
		flipInTable(c.t, c.members[at].data)
		c.members[at].start()
		c.members[at].awaitOpen()
		apptest.Until(c.t, "the member votes", func() (bool, any) { return c.server(at) != "", nil })
	}
	var passing sync.WaitGroup
	for _, at := range members {
		in := c.members[at].open()
		passing.Go(func() {
			if err := in.scrubbing.scrub.Pass(c.t.Context()); err != nil || !in.damaged() {
				c.t.Errorf("member %d: the scrub has found nothing, %v", at+1, err)
			}
		})
	}
	passing.Wait()
}

// without is the number of members that have no disk with a vote, as one member sees it. A member
// may have two disks in the list for a moment: the one that was, and the one that is.
func (c *three) without(at int) (n int) {
	members := map[string]bool{}
	if in := c.members[at].open(); in != nil {
		for _, s := range in.Member.Node.Status().Servers {
			members[s.Member] = members[s.Member] || s.Voter
		}
	}
	for _, votes := range members {
		if !votes {
			n++
		}
	}
	return n
}

// A damaged member waits while another is away: the two that are left must not become one.
func TestDamagedMemberWaitsForTheOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 2))
	c := aged(t, random)
	sound := c.leader()
	away := (sound + 1) % 3
	at := (sound + 2) % 3
	c.members[away].stop()
	c.members[at].stop()
	flipInTable(t, c.members[at].data)
	c.members[at].start()
	c.members[at].awaitOpen()
	in := c.members[at].open()
	if err := in.scrubbing.scrub.Pass(t.Context()); err != nil || !in.damaged() {
		t.Fatalf("the scrub has found nothing, %v", err)
	}
	apptest.Until(t, "it waits for the member that is away", func() (bool, any) {
		why := in.healing.why.Load()
		if why == nil {
			return false, nil
		}
		return strings.Contains(*why, fmt.Sprint("member ", away+1)), *why
	})
	if n := c.without(at); n != 0 {
		t.Errorf("%d members have no vote", n)
	}
	was := in.Member.Node.Progress().Server
	c.members[away].start()
	apptest.Until(t, "the first is another disk", func() (bool, any) {
		now := c.server(at)
		return now != "" && now != was, c.members[at].log.String()
	})
	c.orders(random, 5)
	c.alike()
}

// Two damaged members heal one after the other: there is never more than one without a vote.
func TestDamagedMembersHealOneAtATime(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	c := aged(t, random)
	sound := c.leader() // it may lead no longer when the others have come back
	both := []int{(sound + 1) % 3, (sound + 2) % 3}
	servers := map[int]string{}
	for _, i := range both {
		servers[i] = c.server(i)
	}
	over := during(t, func(ctx context.Context) {
		for ctx.Err() == nil {
			for i := range 3 {
				if n := c.without(i); n > 1 {
					t.Errorf("%d members without a vote", n)
					return
				}
			}
			<-time.After(time.Millisecond)
		}
	})
	c.damage(both...)
	apptest.Until(t, "both are other disks", func() (bool, any) {
		for _, i := range both {
			if now := c.server(i); now == "" || now == servers[i] {
				return false, []any{i, now, servers[i], c.members[i].log.String()}
			}
			if in := c.members[i].open(); in == nil || in.damaged() {
				return false, i
			}
		}
		return true, nil
	})
	over()
	c.orders(random, 5)
	c.alike()
}

// What a start was doing when it was killed is gone on with by the next, wherever that was.
func TestDamagedJournalIsMovedAsideOnce(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for moved := range 4 {
		data := t.TempDir()
		at := func(names ...string) string { return filepath.Join(append([]string{data}, names...)...) }
		for _, name := range []string{"journal", "quorum", "damaged-1"} {
			must.OK(t, os.MkdirAll(at(name), 0o700))
			must.OK(t, os.WriteFile(at(name, "x"), []byte(name), 0o600))
		}
		if err := markHealing(data, "damaged-2"); err != nil || keptIn(data) != 1 {
			t.Fatal(err, keptIn(data))
		}
		for i, name := range []string{"", "journal", "quorum"} {
			if i > 0 && i < moved {
				must.OK(t, os.MkdirAll(at("damaged-2"), 0o700))
				must.OK(t, os.Rename(at(name), at("damaged-2", name)))
			}
		}
		for range 2 {
			must.OK(t, moveDamaged(data, log))
		}
		if names := namesIn(t, data); !slices.Equal(names, []string{"damaged-1", "damaged-2"}) {
			t.Errorf("moved %d: %v", moved, names)
		}
		for _, name := range []string{"journal", "quorum"} {
			if text := must.Get(os.ReadFile(at("damaged-2", name, "x")))(t); string(text) != name {
				t.Errorf("moved %d: %q", moved, text)
			}
		}
		if n := keptIn(data); n != 2 {
			t.Errorf("%d are kept", n)
		}
	}
}

// The operator removes damaged journals in any order: those that are left are counted, and the next
// one gets a number above all of them.
func TestKeptJournalsAreCounted(t *testing.T) {
	data := t.TempDir()
	for _, tt := range []struct {
		made, removed string
		kept          int
		next          string
	}{
		{"", "", 0, "damaged-1"},
		{"damaged-1", "", 1, "damaged-2"},
		{"damaged-2", "", 2, "damaged-3"},
		{"damaged-3", "", mostKept, "damaged-4"},
		{"damaged-by-hand", "damaged-1", 2, "damaged-4"},
		{"", "damaged-2", 1, "damaged-4"},
		{"damaged-10", "damaged-3", 1, "damaged-11"},
	} {
		if tt.made != "" {
			must.OK(t, os.Mkdir(filepath.Join(data, tt.made), 0o700))
		}
		if tt.removed != "" {
			must.OK(t, os.Remove(filepath.Join(data, tt.removed)))
		}
		if n, next := keptIn(data), nextKept(data); n != tt.kept || next != tt.next {
			t.Errorf("%+v: %d are kept, the next is %s", tt, n, next)
		}
	}
}
