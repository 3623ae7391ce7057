package quorum

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/matcher"
	"posttrade/ring"
)

// simulation is three members, their disks, network and clients in one process, on
// a clock of their own.
type simulation struct {
	t        *testing.T
	seed     uint64
	start    time.Time
	net      *simNet
	members  []*simMember
	stop     chan struct{}  // closed when the members are to end
	running  sync.WaitGroup // members
	zombies  sync.WaitGroup // killed processes with goroutines that still run
	wiping   atomic.Bool    // a wiped disk has not taken part again yet
	failures atomic.Int32

	mu      sync.Mutex
	trace   []string
	regions []*ring.Region
	clock   atomic.Int64 // of the clients' history
	history []simOperation
}

// simMember is one member: its disk, and a process on it most of the time.
type simMember struct {
	s        *simulation
	index    int
	member   Member
	log      *vfs.MemFS
	disk     *simDisk
	life     atomic.Pointer[simLife]
	kills    chan simKill
	slowSync atomic.Int64 // ns that a sync of the log takes longer
}

// simKill is the end of a process.
type simKill struct {
	how  string // kill, power, wipe
	down time.Duration
	rng  *rand.Rand
}

// simLife is one life of a member's process.
type simLife struct {
	m         *simMember
	node      *Node
	end       *simEnd
	host      *simHost
	proposals *ring.MPSC[matcher.Command]
	kick      chan struct{} // something was handed in
	ready     chan struct{} // closed when the host is attached
	booted    chan struct{} // closed when there is nothing left to do before running
	gone      chan struct{} // closed when no caller can be answered any more
	ctx       context.Context
	cancel    context.CancelFunc
	open      atomic.Bool // the stores are open, and will be for a while

	mu     sync.Mutex // guards ending, and asking against it
	ending bool
	asking sync.WaitGroup // confirmations under way
}

// simHostPort is where a member listens.
func simHostPort(index int) string { return fmt.Sprintf("member%d:7000", index) }

// simMemberAt undoes simHostPort.
func simMemberAt(hostPort string) (index int) {
	_, _ = fmt.Sscanf(hostPort, "member%d:7000", &index)
	return index
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	s := &simulation{t: t, seed: seed, start: time.Now(), net: newSimNet(seed),
		stop: make(chan struct{})}
	var list []Member
	for i := range 3 {
		list = append(list, Member{ID: fmt.Sprint(i + 1), Raft: simHostPort(i), HTTP: "127.0.0.1:1"})
	}
	for i := range list {
		m := &simMember{s: s, index: i, member: list[i], log: vfs.NewCrashableMem(), disk: new(simDisk),
			kills: make(chan simKill)}
		s.members = append(s.members, m)
		s.running.Go(func() { m.run(list) })
	}
	return s
}

func (s *simulation) tracef(format string, args ...any) {
	line := fmt.Sprintf("%12s ", time.Since(s.start)) + fmt.Sprintf(format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, line)
}

// failf fails the test; any goroutine.
func (s *simulation) failf(format string, args ...any) {
	s.tracef("FAILED "+format, args...)
	if s.failures.Add(1) > 10 {
		return // the first failures show what is wrong
	}
	s.t.Errorf("seed %d, after %s: %s", s.seed, time.Since(s.start), fmt.Sprintf(format, args...))
}

// run starts the process again and again until the simulation ends.
func (m *simMember) run(list []Member) {
	for {
		life := m.begin(list)
		if life == nil {
			return
		}
		select {
		case <-life.node.Restart():
			m.s.tracef("member %d installs a received journal", m.index)
			life.close()
		case k := <-m.kills:
			m.kill(life, k)
			pause(k.down)
			m.s.tracef("member %d starts", m.index)
		case <-m.s.stop:
			life.close()
			return
		}
	}
}

// begin starts a process on the member's disk.
func (m *simMember) begin(list []Member) *simLife {
	if err := m.disk.Install(); err != nil {
		m.s.failf("member %d: install: %v", m.index, err)
		return nil
	}
	l := &simLife{
		m: m, kick: make(chan struct{}, 1), ready: make(chan struct{}), booted: make(chan struct{}),
		gone: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.end = m.s.net.join(m.index, m.member.Raft)
	l.host = &simHost{disk: m.disk, waiting: map[uint64]chan simOutcome{}, ids: map[uint64]string{},
		fail: m.failf}
	node, err := Open(Options{
		Dir: "quorum", Member: m.member.ID, Members: list, Storage: m.disk, Has: m.disk.genesis,
		Genesis: func() ([]byte, error) { return json.Marshal(simGenesis()) },
		FS:      errorfs.Wrap(m.log, errorfs.InjectorFunc(l.slow)),
		Fatal: func(err error) {
			if !l.end.gone() {
				m.failf("fatal: %v", err)
			}
		},
		Logger:     slog.New(simLog{m: m}),
		newNetwork: func(Options) (network, error) { return l.end, nil },
	})
	if err != nil {
		m.failf("open: %v", err)
		return nil
	}
	l.node = node
	l.open.Store(true)
	go l.boot()
	m.life.Store(l)
	return l
}

// simLog puts what a member logs into the trace.
type simLog struct {
	slog.Handler
	m *simMember
}

func (simLog) Enabled(context.Context, slog.Level) bool { return true }

func (l simLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l simLog) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += fmt.Sprint(" ", a)
		return true
	})
	l.m.s.tracef("member %d says: %s", l.m.index, text)
	return nil
}

func (m *simMember) failf(format string, args ...any) {
	m.s.failf("member %d: %s", m.index, fmt.Sprintf(format, args...))
}

// slow makes syncs of the log store's own log take longer, but not while the store is opened or
// closed: it holds locks then, and a goroutine that waits for a lock stops the simulation's clock.
func (l *simLife) slow(op errorfs.Op) error {
	switch op.Kind {
	case errorfs.OpFileSync, errorfs.OpFileSyncData:
		if d := l.m.slowSync.Load(); d > 0 && l.open.Load() && strings.HasSuffix(op.Path, ".log") {
			pause(time.Duration(d))
		}
	}
	return nil
}

// boot builds the engine when the genesis is known, and attaches it.
func (l *simLife) boot() {
	defer close(l.booted)
	genesis, err := l.node.Agreed(l.ctx)
	if err != nil || genesis == nil {
		return
	}
	l.m.disk.mu.Lock()
	if l.m.disk.genesis == nil {
		l.m.disk.genesis = genesis
	}
	commands := l.m.disk.commands
	l.m.disk.mu.Unlock()
	engine, err := newSimEngine(genesis)
	if err == nil {
		err = engine.replay(commands)
	}
	if err != nil {
		l.m.failf("replay: %v", err)
		return
	}
	l.host.engine = engine
	region, err := ring.Anonymous(ring.MPSCBytes[matcher.Command](1024))
	if err == nil {
		l.m.s.keep(region)
		l.proposals, err = ring.NewMPSC[matcher.Command](region, 1024)
	}
	if err != nil {
		l.m.failf("ring: %v", err)
		return
	}
	l.attach()
	close(l.ready)
}

// keep records memory that is freed when everything has ended.
func (s *simulation) keep(r *ring.Region) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.regions = append(s.regions, r)
}

// attach is Node.Attach with a proposer that waits on a channel: a goroutine that
// parks in the system would stop the simulation's clock.
func (l *simLife) attach() {
	n := l.node
	if head := l.host.Head(); head < n.fsm.sequence {
		l.m.failf("the journal is at %d, its consensus state at %d", head, n.fsm.sequence)
		return
	}
	n.host, n.proposals = l.host, l.proposals
	n.fsm.head = l.host.Head()
	close(n.attached)
	n.workers.Go(l.propose)
}

// propose is Node.propose with another way of waiting.
func (l *simLife) propose() {
	n := l.node
	flight := make(chan pending, maxInFlight)
	var reaper sync.WaitGroup
	reaper.Go(func() { n.reap(flight) })
	defer reaper.Wait()
	defer close(flight)
	for number := uint64(0); ; {
		lo, hi := n.proposals.Ready(maxCommands)
		if lo == hi {
			if n.stopping.Load() && n.ctx.Err() != nil && n.proposals.Empty() {
				return
			}
			select {
			case <-l.kick:
			case <-n.ctx.Done():
			}
			continue
		}
		p, end := n.gather(lo, hi)
		if n.leads.Load() {
			number++
			p.number = number
			n.put(&p, lo, end)
			n.proposals.Release(end)
			flight <- p
			continue
		}
		for _, ref := range p.refs {
			n.host.Refuse(ref)
		}
		n.proposals.Release(end)
	}
}

// submit hands in one command and waits for its outcome; false when it stays unknown.
func (l *simLife) submit(c matcher.Command, id string, patience time.Duration) (simOutcome, bool) {
	ref, outcome := l.host.expect(id)
	lo, ok := l.proposals.ClaimN(1)
	if !ok {
		return simOutcome{refused: true}, true
	}
	c.InputSeq = ref
	*l.proposals.At(lo) = c
	l.proposals.Publish(lo, 1)
	select {
	case l.kick <- struct{}{}:
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case o := <-outcome:
		if l.end.gone() {
			return o, false // the answer never left the process
		}
		return o, true
	case <-late.C:
	case <-l.gone:
	}
	return simOutcome{}, false
}

// confirm is Node.Confirm for at most a second. The library never answers a question that is open
// when it is shut down, so shutdown waits until there is none.
func (l *simLife) confirm() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending {
		return errSimDead
	}
	done := make(chan error, 1)
	l.asking.Go(func() { done <- l.node.Confirm(context.Background()) })
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case err := <-done:
		return err
	case <-time.After(time.Second):
		return errSimTimeout
	}
}

// shutdown closes the node when no question to it is open any more.
func (l *simLife) shutdown() error {
	l.cancel()
	<-l.booted
	l.mu.Lock()
	l.ending = true
	l.mu.Unlock()
	l.asking.Wait()
	l.open.Store(false)
	return l.node.Close()
}

// leads reports whether this life takes commands.
func (l *simLife) leads() bool {
	select {
	case <-l.ready:
		return !l.end.gone() && l.node.Leads()
	default:
		return false
	}
}

// close ends a process in an orderly way.
func (l *simLife) close() {
	if err := l.shutdown(); err != nil {
		l.m.failf("close: %v", err)
	}
	l.end.die()
	l.host.die()
	close(l.gone)
	l.forget()
}

// forget frees the engine's memory.
func (l *simLife) forget() {
	if l.host.engine != nil {
		if err := l.host.engine.engine.Close(); err != nil {
			l.m.failf("close the engine: %v", err)
		}
	}
}

// kill ends a process at once. What its goroutines still do for a moment reaches no other process,
// and not the disk that the next process finds.
func (m *simMember) kill(l *simLife, k simKill) {
	m.s.tracef("member %d ends: %s", m.index, k.how)
	l.host.die()
	l.end.die()
	close(l.gone)
	keep := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: k.rng}
	switch k.how {
	case "power":
		keep.UnsyncedDataPercent = k.rng.IntN(101)
		m.disk.cutPower(func(unstable int) int { return k.rng.IntN(unstable + 1) })
		m.log = m.log.CrashClone(keep)
	case "wipe":
		m.log, m.disk = vfs.NewCrashableMem(), new(simDisk)
	default:
		m.log = m.log.CrashClone(keep)
	}
	m.s.zombies.Go(func() {
		_ = l.shutdown()
		l.forget()
	})
}
