package quorum

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// simFault is one line of a fault schedule. Its victim is a member, or the current leader when
// victim is simLeader.
type simFault struct {
	at, lasts time.Duration
	kind      string
	victim    int
	other     int // of a fault between two
	seed      uint64
}

const simLeader = -1

func (f simFault) String() string {
	who := fmt.Sprint("member ", f.victim)
	if f.victim == simLeader {
		who = "the leader"
	}
	return fmt.Sprintf("%v %s %s (%d) for %v", f.at, f.kind, who, f.other, f.lasts)
}

// simKinds are the kinds of faults; the important ones are listed more than once.
func simKinds() []string {
	return []string{
		"isolate", "isolate", "deaf", "mute", "pair", "ring", "lossy", "pause", "kill", "kill", "power",
		"power",
		"wipe", "slow", "compact", "compact", "kill+wipe", "kill two", "pause two",
	}
}

// simSchedule draws the faults of a run; it depends on the seed alone. Faults
// overlap, two at a time at most.
func simSchedule(seed uint64, horizon time.Duration) (faults []simFault) {
	r := rand.New(rand.NewPCG(seed, 77))
	kinds := simKinds()
	var ends [2]time.Duration // of the latest two
	for at := time.Second + time.Duration(r.Int64N(int64(time.Second))); at < horizon; {
		f := simFault{
			at: max(at, min(ends[0], ends[1])), kind: kinds[r.IntN(len(kinds))], victim: r.IntN(4) - 1,
			lasts: 50*time.Millisecond + time.Duration(r.Int64N(int64(1500*time.Millisecond))),
			seed:  r.Uint64(),
		}
		f.other = (max(f.victim, 0) + 1 + r.IntN(2)) % 3
		faults = append(faults, f)
		if ends[0] <= ends[1] {
			ends[0] = f.at + f.lasts
		} else {
			ends[1] = f.at + f.lasts
		}
		at = f.at + time.Duration(r.Int64N(int64(900*time.Millisecond)))
	}
	return faults
}

// inflict makes the faults of a schedule happen, and returns when all are over.
func (s *simulation) inflict(faults []simFault) {
	var under sync.WaitGroup
	for _, f := range faults {
		under.Go(func() {
			pause(f.at - time.Since(s.start))
			victim := f.victim
			if victim == simLeader {
				victim = s.leader()
			}
			s.tracef("fault %v: member %d", f, victim)
			undo := s.begin(f, victim)
			pause(f.lasts)
			undo()
			s.tracef("over %v", f)
		})
	}
	under.Wait()
}

// leader is the member that leads now, or the first that runs.
func (s *simulation) leader() int {
	for i, m := range s.members {
		if l := m.life.Load(); l != nil && l.leads() {
			return i
		}
	}
	return 0
}

// begin begins a fault and returns the function that ends it.
func (s *simulation) begin(f simFault, victim int) (undo func()) {
	rng := rand.New(rand.NewPCG(f.seed, 1))
	a, b := (victim+1)%3, (victim+2)%3
	other := f.other
	if other == victim {
		other = a
	}
	switch f.kind {
	case "isolate":
		return s.net.sever([2]int{victim, a}, [2]int{victim, b}, [2]int{a, victim}, [2]int{b, victim})
	case "deaf":
		return s.net.sever([2]int{a, victim}, [2]int{b, victim})
	case "mute":
		return s.net.sever([2]int{victim, a}, [2]int{victim, b})
	case "pair":
		return s.net.sever([2]int{victim, other}, [2]int{other, victim})
	case "ring":
		return s.net.sever([2]int{0, 1}, [2]int{1, 2}, [2]int{2, 0})
	case "lossy":
		return s.net.lose()
	case "pause":
		return s.net.freeze(victim)
	case "pause two":
		first, second := s.net.freeze(victim), s.net.freeze(other)
		return func() { first(); second() }
	case "slow":
		s.members[victim].slowSync.Store(int64(5*time.Millisecond) +
			rng.Int64N(int64(200*time.Millisecond)))
		return func() { s.members[victim].slowSync.Store(0) }
	case "compact":
		s.compact(victim)
	case "wipe":
		if s.mayWipe() {
			s.end(victim, simKill{"wipe", f.lasts, rng})
		}
	case "kill+wipe": // a disk is lost while the others elect
		if s.mayWipe() {
			s.end(victim, simKill{"kill", f.lasts / 2, rng})
			s.end(other, simKill{"wipe", f.lasts, rand.New(rand.NewPCG(f.seed, 2))})
		}
	case "kill two":
		s.end(victim, simKill{"kill", f.lasts / 2, rng})
		s.end(other, simKill{"power", f.lasts, rand.New(rand.NewPCG(f.seed, 2))})
	default:
		s.end(victim, simKill{strings.Clone(f.kind), f.lasts, rng})
	}
	return func() {}
}

// end kills a process, if there is one to kill.
func (s *simulation) end(member int, k simKill) {
	select {
	case s.members[member].kills <- k:
	default:
		s.tracef("member %d is not there to end by %s", member, k.how)
		if k.how == "wipe" {
			s.wiping.Store(false)
		}
	}
}

// mayWipe reports that a disk may be lost: all three members take part and know that of each other,
// so the other two have whatever was agreed and elect one of themselves. After that no further disk
// may be lost until the new disk takes part.
func (s *simulation) mayWipe() bool {
	return s.whole() && s.wiping.CompareAndSwap(false, true)
}

// whole reports that all three members run and that each knows of all three votes. The library
// gives no vote to a server that the voter, which may be behind, has not yet seen among the voters.
// So the member that was wiped last has its vote again.
func (s *simulation) whole() bool {
	var voters []raft.Server
	for i, m := range s.members {
		l := m.life.Load()
		if l == nil || l.end.gone() || !l.node.Votes() {
			return false
		}
		if i == 0 {
			voters = l.node.servers()
		}
		if !slices.Equal(voters, l.node.servers()) {
			return false
		}
		select {
		case <-l.ready:
		default:
			return false
		}
	}
	s.wiping.Store(false)
	return true
}

// simKept is how many entries of the log a compaction leaves: one more than the library sends in
// one request. With fewer, a request with a lost answer can end behind the start of the log, and
// the library then never makes progress again.
const simKept = 65

// compact leaves little of a member's raft log that its journal has, so that a member that lacks an
// older entry gets the journal.
func (s *simulation) compact(member int) {
	l := s.members[member].life.Load()
	if l == nil || l.end.gone() {
		return
	}
	c := l.node.raft.ReloadableConfig()
	c.TrailingLogs = simKept
	err := l.node.raft.ReloadConfig(c)
	if err == nil {
		err = l.node.raft.Snapshot().Error()
	}
	s.tracef("member %d compacts its log: %v", member, err)
}

// sever cuts links until undo is called.
func (n *simNet) sever(links ...[2]int) (undo func()) {
	change := func(by int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range links {
			n.cut[l] += by
		}
	}
	change(1)
	return func() { change(-1) }
}

// lose makes the network lose and repeat messages.
func (n *simNet) lose() (undo func()) {
	change := func(by int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.lossy += by
	}
	change(1)
	return func() { change(-1) }
}

// freeze pauses a member: nothing reaches it and nothing leaves it until it continues, and then all
// messages are delivered.
func (n *simNet) freeze(member int) (undo func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frozen[member] != nil {
		return func() {}
	}
	c := make(chan struct{})
	n.frozen[member] = c
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.frozen, member)
		close(c)
	}
}
