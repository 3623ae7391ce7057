//go:debug randseednop=0

package quorum

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	legacyrand "math/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	simSeeds = flag.Int("simseeds", 50, "how many simulated clusters are run")
	simSeed  = flag.Uint64("simseed", 0, "run this simulated cluster alone")
)

// simHorizon is how long faults happen, on the simulation's clock.
const simHorizon = 12 * time.Second

// TestSimulatedCluster runs three members through a schedule of faults drawn from a seed, on a
// clock of their own, then ends all faults. It checks that every booking that was answered is
// decided once, as it was answered, on every member, that the answers are linearizable, and that
// all members agree in every byte.
func TestSimulatedCluster(t *testing.T) {
	seeds := *simSeeds
	if testing.Short() {
		seeds = min(seeds, 5)
	}
	first, last := uint64(1), uint64(seeds)
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	var total simSummary
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			s := simulate(t, seed)
			if r := linearizable(s.history); r != porcupine.Ok {
				t.Errorf("seed %d: the clients' history is not linearizable: %v", seed, r)
			}
			if t.Failed() {
				t.Logf("again: go test ./journal/quorum -run TestSimulatedCluster -simseed=%d -v\n%s", seed,
					strings.Join(s.trace, "\n"))
			}
			total.add(s)
		})
		if t.Failed() {
			return // one broken history is enough
		}
	}
	t.Logf("%+v", total)
}

// simSummary counts what happened in the simulations.
type simSummary struct {
	Seeds, Faults, Bookings, Reads, Retries, Lives, Lost, Twice, Installed int
}

func (a *simSummary) add(s *simulation) {
	a.Seeds++
	a.Lost += int(s.net.lost)
	a.Twice += int(s.net.again)
	for _, line := range s.trace {
		switch {
		case strings.Contains(line, " fault "):
			a.Faults++
		case strings.Contains(line, " starts"):
			a.Lives++
		case strings.Contains(line, " installs "):
			a.Installed++
		}
	}
	for _, op := range s.history {
		if op.read {
			a.Reads++
			continue
		}
		a.Bookings++
		a.Retries += op.tries - 1
	}
}

// seedLibrary seeds the source from which the consensus library draws its time-outs.
func seedLibrary(seed uint64) {
	//lint:ignore SA1019 there is no other way in
	legacyrand.Seed(int64(seed))
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64) (s *simulation) {
	seedLibrary(seed)
	synctest.Test(t, func(t *testing.T) {
		s = newSimulation(t, seed)
		over := make(chan struct{})
		var clients sync.WaitGroup
		for i := range 4 {
			c := &simClient{s: s, id: i, rng: rand.New(rand.NewPCG(seed, 1000+uint64(i)))}
			clients.Go(func() { c.run(over) })
		}
		s.inflict(simSchedule(seed, simHorizon))
		pause(time.Second)
		close(over)
		s.within("every client has its answer", clients.Wait)
		s.within("all members agree", s.converge)
		s.check()
		close(s.stop)
		s.running.Wait()
		s.zombies.Wait()
		pause(time.Minute) // messages that are still on their way
		for _, r := range s.regions {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

// within waits for something that must happen once all faults are over.
func (s *simulation) within(what string, wait func()) {
	done := make(chan struct{})
	go func() {
		wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		// No orderly end is possible any more.
		panic(fmt.Sprintf("seed %d: two minutes after the last fault, not yet: %s\n%s%s",
			s.seed, what, strings.Join(s.trace, "\n"), s.statuses()))
	}
}

// statuses shows each member's view of the cluster.
func (s *simulation) statuses() (text string) {
	for i, m := range s.members {
		l := m.life.Load()
		text += fmt.Sprintf("\nmember %d: gone %v, head %d, %+v", i, l.end.gone(), l.host.Head(),
			l.node.Status())
	}
	return text
}

// converge waits until all three members take part and have applied the same.
func (s *simulation) converge() {
	for {
		if s.whole() {
			heads := [3]uint64{}
			leads := 0
			for i, m := range s.members {
				l := m.life.Load()
				heads[i] = l.host.Head()
				if l.leads() {
					leads++
				}
			}
			if heads[0] == heads[1] && heads[1] == heads[2] && leads == 1 && s.caughtUp() {
				return
			}
		}
		pause(20 * time.Millisecond)
	}
}

// caughtUp reports that every member has applied the last entry of the log.
func (s *simulation) caughtUp() bool {
	n := s.members[0].life.Load().node.raft
	for _, m := range s.members {
		r := m.life.Load().node.raft
		if r.AppliedIndex() != n.LastIndex() || r.LastIndex() != n.LastIndex() {
			return false
		}
	}
	return true
}

// check compares the members with each other, with a replay, and with the answers that the clients
// got.
func (s *simulation) check() {
	want, wantIDs := s.members[0].disk.history()
	replayed, err := newSimEngine(s.members[0].disk.genesis)
	if err == nil {
		err = replayed.replay(want)
	}
	if err != nil {
		s.failf("replay: %v", err)
		return
	}
	hash := replayed.engine.StateHash()
	image := s.snapshot(replayed)
	for i, m := range s.members {
		got, ids := m.disk.history()
		if !slices.Equal(want, got) || !slices.Equal(wantIDs, ids) {
			s.failf("member %d has another history than member 0", i)
		}
		host := m.life.Load().host
		host.mu.Lock()
		if host.engine.engine.StateHash() != hash {
			s.failf("member %d is in another state than a replay", i)
		}
		if !slices.Equal(host.engine.decisions, replayed.decisions) {
			s.failf("member %d has decided otherwise than a replay", i)
		}
		if s.snapshot(host.engine) != image {
			s.failf("member %d writes another snapshot", i)
		}
		host.mu.Unlock()
	}
	s.checkAnswers(replayed)
	if err := replayed.engine.Close(); err != nil {
		s.failf("%v", err)
	}
}

// snapshot is the hash of the snapshot that an engine writes.
func (s *simulation) snapshot(e *simEngine) [sha256.Size]byte {
	var b bytes.Buffer
	if err := e.engine.WriteSnapshot(&b); err != nil {
		s.failf("snapshot: %v", err)
	}
	return sha256.Sum256(b.Bytes())
}

// checkAnswers looks for every answered booking among the decisions.
func (s *simulation) checkAnswers(e *simEngine) {
	commands, ids := s.members[0].disk.history()
	first := map[int64]int{} // by key: the decision that counts
	for i := range commands {
		key := commands[i].PriceTicks
		at, again := first[key]
		switch d := e.decisions[i]; {
		case !again && d.duplicate:
			s.failf("the first command of key %x is a duplicate", key)
		case again && (!d.duplicate || d.orderRef != e.decisions[at].orderRef):
			s.failf("key %x was decided twice: %+v and %+v", key, e.decisions[at], d)
		case !again:
			first[key] = i
		}
		if want := fmt.Sprintf("client-%d-%d", key>>32-1, key&(1<<32-1)); ids[i] != want {
			s.failf("sequence %d has the client id %q, want %q", i+1, ids[i], want)
		}
	}
	refs := map[uint32]int64{}
	for _, op := range s.history {
		if op.read {
			continue
		}
		i, there := first[op.key]
		if !there {
			s.failf("key %x was answered with %+v and is nowhere", op.key, op.decision)
			continue
		}
		if d := e.decisions[i]; d.orderRef != op.ref || d.reason != op.decision.reason {
			s.failf("key %x was answered with %+v and is %+v", op.key, op.decision, d)
		}
		if other, taken := refs[op.ref]; taken {
			s.failf("keys %x and %x were both answered with order %d", op.key, other, op.ref)
		}
		refs[op.ref] = op.key
	}
}

// pause lets time pass on the simulation's clock.
func pause(d time.Duration) { <-time.After(d) }
