package quorum

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring"
	"posttrade/ring/timing"
)

var (
	// ErrClosed: the node has been closed.
	ErrClosed = errors.New("quorum closed")
	// ErrBehind: the member's journal ends before what its consensus state counts on.
	ErrBehind = errors.New(
		"the journal ends before the member's consensus state begins; empty its data directory and let " +
			"it join again")
	// ErrForeign: the member has a journal, and no consensus state that it came from.
	ErrForeign = errors.New(
		"a journal without consensus state is not this cluster's; empty the data directory to " +
			"join as a " +
			"new disk, or have the cluster adopt it")
	// ErrIdentity: the file with this disk's server id cannot be read. The disk must not take part:
	// with another id it would vote twice.
	ErrIdentity = errors.New("the identity of this member's disk is damaged")
	// ErrOtherMember: the data directory has the consensus state of another member.
	ErrOtherMember = errors.New("the data directory of another member")
)

// Node is this member of the cluster. It owns the library, its log and its network, and the
// goroutines that are counted in workers: role, compactor, join, watchLeader and, behind Attach,
// propose.
//
// Its life:
//
//	Open     identity, log and network are there, and entries are received
//	Agreed   the genesis is known, so the caller can make engine and journal
//	Attach   entries are applied, and this member may lead
//	Close    leadership is handed on, nothing is applied any more
type Node struct {
	// Constant after Open, down to transport.
	o Options
	// This run of this process: it recognises its own entries by it.
	author author
	// This life of this member's disk (identity).
	id        raft.ServerID
	self      Member
	log       *logStore
	snapshots *snapshotStore
	network   network
	transport transport
	raft      *raft.Raft
	fsm       *fsm
	uncertain uncertainEntries
	compactor compactor

	genesis   []byte        // constant once known is closed
	known     chan struct{} // closed when genesis is
	host      Host          // constant once attached is closed
	proposals *ring.MPSC[matcher.Command]
	attached  chan struct{}
	restart   chan struct{} // closed when a received journal waits to be installed
	replaced  chan error    // has room for ErrReplaced, which comes at most once

	// the last command that the host was given; writer: the goroutine that holds the fsm's queue.mu,
	// Attach before
	handed atomic.Uint64
	// This member decides. Writer: the goroutine of role; fail and Close clear it.
	leads   atomic.Bool
	leader  atomic.Pointer[leaderEntry] // the last one that was agreed
	admits  admissions
	commits timing.Latency
	apart   atomic.Pointer[error] // why the leader does not count this disk; writer: join
	// one place for each question of Confirm that the library has not answered
	confirming chan struct{}

	ctx      context.Context
	cancel   context.CancelFunc
	workers  sync.WaitGroup
	failed   sync.Once
	stopping atomic.Bool // of the proposer
}

// Open puts a received journal in place, opens this member's consensus state and begins to take
// part: at once if it has ever done so, else when the others agree. A cluster begins when all its
// members have answered; Open does not wait for that.
//
//   - ErrMembers: the list is not this member's. ErrOtherMember, ErrIdentity. ErrForeign: there is
//     a journal and no consensus state. Errors of the log: ErrLogShortened, ErrLogDamaged,
//     journal.ErrAnchorMissing.
//   - Nothing is applied before Attach. After an error everything that was opened is closed.
func Open(o Options) (_ *Node, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	n := &Node{
		o: o, known: make(chan struct{}), attached: make(chan struct{}), restart: make(chan struct{}),
		replaced:   make(chan error, 1),
		confirming: make(chan struct{}, maxConfirming),
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	if n.self, err = o.self(); err != nil {
		return nil, err
	}
	if err := n.openDisk(); err != nil {
		return nil, err
	}
	base, err := n.snapshots.newest()
	if err != nil {
		return nil, err
	}
	has, err := n.begun(base)
	if err != nil {
		return nil, fmt.Errorf("quorum: %w", err)
	}
	if o.Has != nil {
		if !has {
			if base, err = n.adopt(); err != nil {
				return nil, err
			}
		}
		n.agree(o.Has)
		n.handed.Store(base.Sequence) // the record's sequence is a lower bound; Attach sets the exact one
	}
	if base.Index > 0 {
		n.begins(base.Index, base.Term)
	}
	n.fsm = &fsm{n: n, sequence: base.Sequence}
	if err := n.takePart(base); err != nil {
		return nil, err
	}
	return n, nil
}

// openDisk opens what this member has on its disk: identity, log and snapshots.
func (n *Node) openDisk() (err error) {
	o := &n.o
	if err := o.FS.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("quorum: %w", err)
	}
	n.author = author(binary.LittleEndian.Uint64(randomBytes(8)))
	if n.id, err = n.identity(); err != nil {
		return err
	}
	if n.log, err = openLogStore(o.FS.PathJoin(o.Dir, "log"), logStoreOptions{FS: o.FS, Fatal: n.fail,
		Reserve: o.LogReserve}); err != nil {
		return err
	}
	n.snapshots, err = openSnapshots(o.FS, o.FS.PathJoin(o.Dir, "snapshots"), o.Storage, n)
	return err
}

// takePart opens the network and starts the library and the goroutines of the member, whose newest
// record is base.
func (n *Node) takePart(base snapshotRecord) (err error) {
	if n.network, err = n.o.newNetwork(n.o); err != nil {
		return err
	}
	if n.transport, err = n.network.Transport(n.id, n.o.Logger); err != nil {
		return err
	}
	view := libraryView{n.log}
	if n.raft, err = raft.NewRaft(n.config(), n.fsm, view, view, n.snapshots,
		memberTransport{n.transport, n.log}); err != nil {
		return fmt.Errorf("quorum: %w", err)
	}
	n.log.Lead(func() bool { return n.raft.State() == raft.Leader })
	n.expectOthers(base)
	n.network.Answer(n.answer)
	n.workers.Go(n.role)
	n.workers.Go(n.compactor.run(n))
	n.workers.Go(n.join)
	n.workers.Go(n.watchLeader)
	return nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

// config is the library's configuration. The library decides on silence, elections and membership;
// this package compacts the log, by bytes (see compactor).
func (n *Node) config() *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = n.id
	c.HeartbeatTimeout, c.ElectionTimeout = n.o.Heartbeat, n.o.Heartbeat
	// a leader without a majority steps down before a follower's silence is over
	c.LeaderLeaseTimeout = n.o.Heartbeat * 2 / 3
	c.CommitTimeout = max(n.o.Heartbeat/10, time.Millisecond)
	c.BatchApplyCh = true
	c.SnapshotInterval, c.SnapshotThreshold = neverByItself, 1<<62
	c.NoSnapshotRestoreOnStart = true // the journal is the state
	c.ShutdownOnRemove = false
	c.Logger = quietLogger(n.o.Logger)
	c.NoLegacyTelemetry = true
	return c
}

// neverByItself is the library's own pace of snapshots.
const neverByItself = 1000 * time.Hour

// Agreed waits for the genesis text: that of the journal, or the one that the cluster has agreed
// on. When Restart is closed instead, it returns nil without an error: the caller then closes
// everything and opens it again. ErrReplaced, ErrClosed, or ctx's own.
func (n *Node) Agreed(ctx context.Context) ([]byte, error) {
	select {
	case <-n.known:
		return n.genesis, nil
	case <-n.restart:
		return nil, nil
	case err := <-n.replaced:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-n.ctx.Done():
		return nil, ErrClosed
	}
}

// agree sets the genesis; the first one counts. It is called by Open, then by the library's
// goroutine alone.
func (n *Node) agree(text []byte) {
	select {
	case <-n.known:
	default:
		n.genesis = text
		close(n.known)
	}
}

// Restart is closed when the leader has sent this member a journal in place of its own. The caller
// then closes everything and opens it again, which installs the journal. Nothing is applied until
// then.
func (n *Node) Restart() <-chan struct{} { return n.restart }

// Attach gives the node its host, once; from then on the node hands it agreed commands. The node
// takes the commands that the host's callers submit from proposals. ErrBehind: the journal ends
// before the record that the log continues from; it lacks commands that the log does not have.
func (n *Node) Attach(host Host, proposals *ring.MPSC[matcher.Command]) error {
	if head := host.Head(); head < n.fsm.sequence {
		return fmt.Errorf("quorum: journal=%d state=%d: %w", head, n.fsm.sequence, ErrBehind)
	}
	n.host, n.proposals = host, proposals
	n.fsm.head = host.Head()
	n.handed.Store(n.fsm.head)
	close(n.attached)
	n.workers.Go(n.propose)
	return nil
}

// awaitHost waits for the host. It returns false when the node is closed first. Afterwards host and
// proposals may be read without a lock.
func (n *Node) awaitHost() bool {
	select {
	case <-n.attached:
		return true
	default:
	}
	select {
	case <-n.attached:
		return true
	case <-n.ctx.Done():
		return false
	}
}

// askForRestart closes restart when the library has finished with the received snapshot and so the
// leader has its answer.
func (n *Node) askForRestart() {
	defer close(n.restart)
	record, err := n.snapshots.newest()
	for err == nil && n.raft.AppliedIndex() < record.Index {
		select {
		case <-time.After(time.Millisecond):
		case <-n.ctx.Done():
			return
		}
	}
}

// has, begins, stable and transfer are the member's journal, as snapshots see it.
func (n *Node) has() uint64 {
	n.fsm.flush()
	return n.handed.Load()
}

func (n *Node) begins(index, term uint64) { n.log.Base(index, term) }

// stable waits for the host, then for its journal. ErrClosed when the node is closed first.
func (n *Node) stable(sequence uint64) error {
	if !n.awaitHost() {
		return ErrClosed
	}
	return n.host.WaitStable(n.ctx, sequence)
}

func (n *Node) transfer() (Transfer, error) {
	if !n.awaitHost() {
		return nil, ErrClosed
	}
	n.compactor.sent.Store(true)
	return n.host.Transfer()
}

// fail ends the member at its first failure: it can no longer keep what it has promised. It stops
// deciding at once; Fatal ends the process. Any goroutine.
func (n *Node) fail(err error) {
	n.failed.Do(func() {
		n.leads.Store(false)
		n.o.Fatal(err)
	})
}

// Disk is the state of the consensus log's disk. Any goroutine.
func (n *Node) Disk() journal.DiskState { return n.log.times.State() }

// Leads reports that this member decides: it leads, and has applied all that was agreed before. Any
// goroutine.
func (n *Node) Leads() bool { return n.leads.Load() }

// Member is this member's number.
func (n *Node) Member() string { return n.o.Member }

// Leader is the member that leads, as far as this member knows, and where one of its services
// listens. Both are empty when that is not known. The address is also empty until this member has
// applied or learned the leader's announcement. Any goroutine.
func (n *Node) Leader(service string) (member, address string) {
	_, id := n.raft.LeaderWithID()
	if id == "" {
		return "", ""
	}
	if l := n.leader.Load(); l != nil && l.ID == string(id) {
		return l.Member, l.Services[service]
	}
	return memberOf(id), ""
}

// maxConfirming is how many questions the library (v1.8.0) queues before its call blocks.
const maxConfirming = 64

// Confirm asks a majority whether this member still leads, and waits until its host shows all that
// was acknowledged before the call: a member that begins to lead may have handed it over and not
// decided it yet. The caller confirms before a read that a decision rests on. It costs a round trip
// to the others, and blocks for it. An error says that the answer is not certain: the caller must
// not answer from this member's state.
func (n *Node) Confirm(ctx context.Context) error {
	select {
	case n.confirming <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done():
		return ErrClosed
	}
	done := make(chan error, 1)
	// It waits for the library, and lives as long as the process if that is shut down first.
	go func() {
		done <- n.raft.VerifyLeader().Error()
		<-n.confirming
	}()
	select {
	case err := <-done:
		if err == nil && !n.leads.Load() {
			err = raft.ErrNotLeader
		}
		if err == nil {
			err = n.host.WaitDecided(ctx, n.handed.Load())
		}
		if err != nil {
			return fmt.Errorf("quorum: confirm: %w", err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-n.ctx.Done(): // the library does not answer what is under way when it is shut down
		return ErrClosed
	}
}
