package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"posttrade/ring/must"
)

// alike waits until all members have n commands, and compares them with each other.
func (c *cluster) alike(n int) {
	c.t.Helper()
	want, ids := c.members[0].disk.history()
	for _, m := range c.members {
		m.disk.until(c.t, fmt.Sprintf("%d commands on member %s", n, m.o.Member),
			func() bool { return len(m.disk.commands) >= n })
		got, gotIDs := m.disk.history()
		if m == c.members[0] {
			want, ids = got, gotIDs
		}
		if len(got) != n {
			c.t.Fatalf("member %s has %d commands, want %d", m.o.Member, len(got), n)
		}
		if d := cmp.Diff(want, got); d != "" {
			c.t.Errorf("member %s differs: %s", m.o.Member, d)
		}
		if d := cmp.Diff(ids, gotIDs); d != "" {
			c.t.Errorf("member %s has other client ids: %s", m.o.Member, d)
		}
	}
}

func TestThreeMembersAgree(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	for i := range 100 {
		c.book(1+i%7, fmt.Sprint("id-", i))
	}
	leader := c.leader()
	want := 0
	for i := range 100 {
		want += 1 + i%7
	}
	c.alike(want)
	if _, ids := leader.disk.history(); len(ids) != 100 {
		t.Errorf("%d client ids, want 100", len(ids))
	}
	// Only the author knows which caller gets the answer.
	for i := range want {
		knowing := 0
		for _, m := range c.members {
			if m.disk.commands[i].InputSeq != 0 {
				knowing++
			}
			if m.disk.commands[i].LeaderEpoch == 0 {
				t.Fatalf("member %s: command %d has no epoch", m.o.Member, i)
			}
		}
		if knowing != 1 {
			t.Fatalf("%d members know who waits for command %d", knowing, i)
		}
	}
	for _, m := range c.members {
		if name, at := m.node.Leader("order-matcher"); name != leader.o.Member || at != "http of "+name {
			t.Errorf("member %s: the leader is %q at %q", m.o.Member, name, at)
		}
		if text, err := m.node.Agreed(t.Context()); err != nil ||
			string(text) != string(leader.genesis(t)) {
			t.Errorf("member %s: genesis %q, %v", m.o.Member, text, err)
		}
		if err := m.node.Confirm(t.Context()); (err == nil) != (m == leader) {
			t.Errorf("member %s: confirm: %v", m.o.Member, err)
		}
	}
}

func (m *member) genesis(t *testing.T) []byte {
	t.Helper()
	return must.Get(m.node.Agreed(t.Context()))(t)
}

// undecided is a host that decides a command when it is told to.
type undecided struct {
	*memory
	asked  chan uint64
	answer chan error
}

func (h undecided) WaitDecided(_ context.Context, sequence uint64) error {
	h.asked <- sequence
	return <-h.answer
}

// What a leader was handed before it led may not be decided yet: a confirmed read has to see it.
func TestConfirmWaitsForWhatWasHandedOver(t *testing.T) {
	c := newCluster(t, 1)
	c.start()
	c.book(3, "")
	n := c.leader().node
	host := undecided{c.leader().disk, make(chan uint64), make(chan error)}
	n.host = host // no entry is under way
	late := errors.New("not decided in time")
	for _, want := range []error{nil, late} {
		done := make(chan error, 1)
		go func() { done <- n.Confirm(t.Context()) }()
		select {
		case seq := <-host.asked:
			if seq != 3 {
				t.Errorf("waits for command %d, want 3", seq)
			}
		case err := <-done:
			t.Fatalf("confirmed before it was decided: %v", err)
		}
		host.answer <- want
		if err := <-done; !errors.Is(err, want) {
			t.Errorf("confirm: %v, want %v", err, want)
		}
	}
}

// While the library waits for the disk it answers no question. Each Confirm ends with its caller's
// patience all the same, however many there are.
func TestConfirmEndsWithItsCaller(t *testing.T) {
	c := newCluster(t, 1)
	var held atomic.Pointer[chan struct{}]
	blocked := make(chan struct{}, 1)
	c.members[0].o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if gate := held.Load(); gate != nil && (op.Kind == errorfs.OpFileSync ||
			op.Kind == errorfs.OpFileSyncData) {
			select {
			case blocked <- struct{}{}:
			default:
			}
			<-*gate
		}
		return nil
	}))
	c.start()
	c.book(1, "a")
	n := c.leader().node
	n.log.Lead(func() bool { return false }) // or the library does not wait for the disk
	gate := make(chan struct{})
	held.Store(&gate)
	defer func() {
		held.Store(nil)
		close(gate)
	}()
	n.raft.Apply(appendGenesis(nil, n.genesis), 0)
	<-blocked
	ctx, cancel := context.WithCancel(t.Context())
	const questions = 3 * maxConfirming
	answers := make(chan error, questions)
	for range questions {
		go func() { answers <- n.Confirm(ctx) }()
	}
	cancel()
	late := time.After(patience)
	for i := range questions {
		select {
		case err := <-answers:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("confirm: %v", err)
			}
		case <-late:
			t.Fatalf("%d of %d have ended", i, questions)
		}
	}
}

// A member that does not lead refuses what is handed in, and it is not applied anywhere.
func TestFollowerRefuses(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	leader := c.leader()
	for _, m := range c.members {
		if m == leader {
			continue
		}
		ref := m.submit(3, "")
		m.disk.until(t, "the refusal", func() bool {
			return len(m.disk.refused) == 1 && m.disk.refused[0] == ref
		})
	}
	c.book(1, "")
	c.alike(1)
}

// The leader stops, the other two continue, and it catches up when it is back.
func TestLeaderGoesAndComesBack(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	first := c.leader()
	c.book(10, "a")
	c.alike(10)
	first.stop()
	second := c.leader()
	if second == first {
		t.Fatal("a stopped member leads")
	}
	c.book(5, "b")
	first.start()
	c.alike(15)
	all := c.members
	c.stop()
	for _, m := range all {
		m.start()
	}
	c.book(1, "")
	c.alike(16)
}

// A member that has lost its disk comes back as another server, with the whole history.
func TestLostDisk(t *testing.T) {
	for _, compact := range []bool{false, true} {
		t.Run(fmt.Sprint("compacted=", compact), func(t *testing.T) {
			c, r := newCluster(t, 3), &record{}
			for _, m := range c.members {
				m.o.Record = r.put
			}
			c.start()
			for range 50 {
				c.book(9, "x")
			}
			c.alike(450)
			lost := c.members[0]
			former := lost.node.id
			lost.stop()
			if compact {
				for _, m := range c.members {
					if m.node != nil {
						m.compactAll()
					}
				}
			}
			lost.o.Dir, lost.disk = t.TempDir(), newMemory()
			lost.start()
			if compact {
				<-lost.node.Restart()
				lost.stop()
				lost.start()
			}
			c.book(1, "y")
			c.alike(451)
			await(t, "a vote for the new disk", lost.node.Votes)
			for _, s := range lost.node.Status().Servers {
				if s.ID == string(former) {
					t.Errorf("the lost disk still counts: %+v", s)
				}
			}
			if lost.node.id == former {
				t.Error("the new disk has the old one's name")
			}
			all := r.all()
			if last := all[len(all)-1]; last.Kind != Replaced || last.Old == nil || last.New == nil ||
				last.Old.ID != string(former) || last.New.ID != string(lost.node.id) {
				t.Errorf("on record are %+v", all)
			}
		})
	}
}

// However much is agreed while a journal is on its way, the log keeps what the member needs behind
// it, and the journal is sent once. The log is cut when the member has caught up, or is too long.
func TestLogIsKeptWhileAJournalIsSent(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(1, "")
	leader := c.leader()
	var lost *member
	for _, m := range c.members {
		if m != leader {
			lost = m
		}
	}
	c.alike(1)
	lost.stop()
	leader.compactAll()
	gate := make(chan struct{})
	leader.disk.change(func() { leader.disk.sending = gate })
	lost.o.Dir, lost.disk = t.TempDir(), newMemory()
	lost.start()
	leader.disk.until(t, "a transfer", func() bool { return leader.disk.sends == 1 })
	first := must.Get(leader.node.log.FirstIndex())(t)
	const agreed = promoteWithin + leastKept
	for range agreed {
		c.book(1, "")
	}
	must.OK(t, leader.node.compact(0))
	if now := must.Get(leader.node.log.FirstIndex())(t); now != first {
		t.Errorf("the log begins at %d while a journal is sent, want %d", now, first)
	}
	close(gate)
	<-lost.node.Restart()
	lost.stop()
	lost.start()
	await(t, "a vote for the new disk", lost.node.Votes)
	c.alike(1 + agreed)
	if leader.disk.sends != 1 {
		t.Errorf("the journal was sent %d times", leader.disk.sends)
	}
	cut := func() bool {
		must.OK(t, leader.node.compact(0))
		was := first
		first = must.Get(leader.node.log.FirstIndex())(t)
		return first > was
	}
	await(t, "the log to be cut", cut)

	lost.stop()
	for _, bound := range []func(){
		func() { leader.node.compactor.bytes.Store(heldBytes) },
		func() { leader.disk.full.Store(true) },
	} {
		leader.node.compactor.sent.Store(true)
		for range agreed {
			c.book(1, "")
		}
		if cut() {
			t.Error("the log was cut while a member that was sent the journal is silent")
		}
		if bound(); !cut() {
			t.Error("the log has no bound")
		}
		if leader.node.compactor.sent.Load() {
			t.Error("the member is waited for a second time")
		}
	}
}

// A full leader hands over to a member with room only, while most members have room, unless it is
// damaged, too. One with room does not ask.
func TestFullLeaderHandsOverToRoom(t *testing.T) {
	c := newCluster(t, 3)
	damaged := make([]atomic.Bool, 3)
	for i, m := range c.members {
		m.o.Damaged = damaged[i].Load
	}
	c.start()
	c.book(1, "")
	c.alike(1)
	full := func(of ...bool) {
		for i, m := range c.members {
			m.disk.full.Store(of[i])
		}
	}
	to := func(want *member) {
		t.Helper()
		from := c.leader()
		await(t, "the leadership to move", func() bool {
			_ = from.node.HandOver() // an earlier one may be under way
			return c.leader() != from
		})
		if got := c.leader(); got != want {
			t.Errorf("member %s leads, want %s", got.o.Member, want.o.Member)
		}
	}
	if c.leader() != c.members[0] {
		to(c.members[0])
	}
	full(true, false, false)
	to(c.members[1])
	to(c.members[0])
	full(true, true, false)
	must.Be(t, c.leader().node.HandOver(), errMostFull)
	damaged[0].Store(true)
	to(c.members[1])
}

func TestMembersWithoutAVoteAreNamed(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(1, "a")
	leader := c.leader()
	if all := leader.node.Voteless(); len(all) != 0 {
		t.Errorf("without a vote: %v", all)
	}
	other := c.members[0]
	if other == leader {
		other = c.members[1]
	}
	id := other.node.id
	other.stop()
	must.OK(t, leader.node.raft.RemoveServer(id, 0, changeTimeout).Error())
	if all := leader.node.Voteless(); !slices.Equal(all, []string{other.o.Member}) {
		t.Errorf("without a vote: %v, want %s", all, other.o.Member)
	}
}

// compactAll deletes from the log everything that the journal has.
func (m *member) compactAll() {
	m.t.Helper()
	c := m.node.raft.ReloadableConfig()
	c.TrailingLogs = 0
	must.OK(m.t, m.node.raft.ReloadConfig(c))
	must.OK(m.t, m.node.raft.Snapshot().Error())
}

// When the leader's process is gone, the others do not wait for its silence. In this test that
// would take longer than the test's own time limit.
func TestLeaderThatIsGoneIsSucceededAtOnce(t *testing.T) {
	c := newCluster(t, 3)
	for _, m := range c.members {
		m.heartbeat = 4 * patience
	}
	c.start()
	first := c.members[0].node // which begins the cluster, by itself or now
	await(t, "a configuration", func() bool {
		return len(first.servers()) == 3 || first.tryJoin() == ""
	})
	await(t, "a leader that was asked to", func() bool {
		if len(c.members[0].node.servers()) < 3 {
			return false
		}
		n := c.members[0].node
		request := raft.TimeoutNowRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
		}
		must.OK(t, n.transport.TimeoutNow(n.id, addressOf(n.self.Raft, n.id), &request,
			&raft.TimeoutNowResponse{}))
		return true
	})
	leader := c.leader()
	c.book(3, "a")
	await(t, "both to follow", func() bool {
		for _, m := range c.members {
			if _, id := m.node.raft.LeaderWithID(); id != leader.node.id {
				return false
			}
		}
		return true
	})
	leader.node.cancel() // it ends without handing its leadership on
	must.OK(t, leader.node.raft.Shutdown().Error())
	leader.stop()
	c.book(1, "b")
	if c.leader() == leader {
		t.Error("a process that is gone leads")
	}
	// looking for a successor leaves the configuration as it is
	for _, s := range c.leader().node.servers() {
		if s.ID == "" || s.Address == "" {
			t.Errorf("the configuration has %+v", s)
		}
	}
}
