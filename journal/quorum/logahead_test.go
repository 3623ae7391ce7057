package quorum

import (
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
	"posttrade/ring/must"
)

// heldDisk is a disk with log syncs that wait while it is held.
type heldDisk struct {
	vfs.FS
	gate atomic.Pointer[chan struct{}]
}

func newHeldDisk(fs vfs.FS) *heldDisk {
	d := &heldDisk{}
	d.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		if gate := d.gate.Load(); gate != nil && sync && strings.HasSuffix(op.Path, ".log") {
			<-*gate
		}
		return nil
	}))
	return d
}

// hold makes syncs wait until release is called.
func (d *heldDisk) hold() (release func()) {
	gate := make(chan struct{})
	d.gate.Store(&gate)
	return func() {
		d.gate.Store(nil)
		close(gate)
	}
}

// leadingLog is the log of a member that leads.
func leadingLog(t *testing.T, fs vfs.FS, fatal func(error)) *logStore {
	t.Helper()
	s := must.Get(openLogStore("raft", logStoreOptions{FS: fs, Fatal: fatal}))(t)
	s.Lead(func() bool { return true })
	return s
}

// commandEntries are entries first..last of commands.
func commandEntries(first, last uint64) []*raft.Log { return logEntries(first, last, 1) }

func TestALeadersCommandsAreVouchedForWhenTheyAreOnDisk(t *testing.T) {
	disk := newHeldDisk(vfs.NewMem())
	s := leadingLog(t, disk, func(err error) { t.Error(err) })
	must.OK(t, s.StoreLogs(commandEntries(1, 3)))
	must.OK(t, s.AwaitSynced(3))
	release := disk.hold()
	must.OK(t, s.StoreLogs(commandEntries(4, 5)))
	must.OK(t, s.StoreLogs(commandEntries(6, 6)))
	var l raft.Log
	must.OK(t, s.GetLog(6, &l))
	if last, err := s.LastIndex(); last != 6 || err != nil || l.Index != 6 {
		t.Errorf("the log ends at %d, %v, and has entry %d there, want 6", last, err, l.Index)
	}
	for committed, want := range map[uint64]uint64{2: 2, 3: 3, 4: 3, 6: 3} {
		if got := s.Vouched(committed); got != want {
			t.Errorf("of %d committed entries %d are vouched for, want %d", committed, got, want)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.AwaitSynced(6) }()
	if len(ended) != 0 {
		t.Error("an entry is said to be on a disk that has not synced it")
	}
	release()
	must.OK(t, <-ended)
	if got := s.Vouched(6); got != 6 {
		t.Errorf("%d entries are vouched for, want 6", got)
	}
	must.OK(t, s.Close())
}

func TestOtherEntriesWaitForTheDisk(t *testing.T) {
	for name, store := range map[string]func(s *logStore) error{
		"an entry of the library's": func(s *logStore) error {
			l := logEntry(3, 1)
			l.Type = raft.LogNoop
			return s.StoreLog(l)
		},
		"another leader's": func(s *logStore) error {
			s.Lead(func() bool { return false })
			return s.StoreLogs(commandEntries(3, 3))
		},
		"a look of one that does not lead any more": func(s *logStore) error {
			s.Lead(func() bool { return false })
			return s.GetLog(2, new(raft.Log))
		},
		"a deletion": func(s *logStore) error { return s.DeleteRange(2, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				disk := newHeldDisk(vfs.NewMem())
				s := leadingLog(t, disk, func(err error) { t.Error(err) })
				release := disk.hold()
				must.OK(t, s.StoreLogs(commandEntries(1, 2)))
				ended := make(chan error, 1)
				go func() { ended <- store(s) }()
				synctest.Wait()
				if len(ended) != 0 {
					t.Error("it has ended before what came before it is on disk")
				}
				release()
				must.OK(t, <-ended)
				if s.Vouched(2) != 2 {
					t.Error("it has ended and what came before it is not on disk")
				}
				must.OK(t, s.Close())
			})
		})
	}
}

// A leader that loses power has told no other member of what it loses; its anchor does not vouch
// for that either.
func TestPowerCutTakesWhatIsNotVouchedFor(t *testing.T) {
	mem := vfs.NewCrashableMem()
	disk := newHeldDisk(mem)
	s := leadingLog(t, disk, func(err error) { t.Error(err) })
	must.OK(t, s.StoreLogs(commandEntries(1, 3)))
	must.OK(t, s.AwaitSynced(3))
	release := disk.hold()
	must.OK(t, s.StoreLogs(commandEntries(4, 9)))
	must.OK(t, s.syncAnchor())
	cut := mem.CrashClone(vfs.CrashCloneCfg{})
	release()
	must.OK(t, s.Close())
	left := must.Get(openLogStore("raft", logStoreOptions{FS: cut,
		Fatal: func(err error) { t.Error(err) }}))(t)
	if last, err := left.LastIndex(); last != 3 || err != nil {
		t.Errorf("the log ends at %d, %v, want 3", last, err)
	}
	must.OK(t, left.Close())
}

func TestFailureOfALeadersDiskIsFinal(t *testing.T) {
	toggle := &errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.HasSuffix(op.Path, ".log") && isWrite(op) {
			return syscall.EIO
		}
		return nil
	})}
	fatal := make(chan error, 2)
	s := leadingLog(t, errorfs.Wrap(vfs.NewMem(), toggle), func(err error) { fatal <- err })
	must.OK(t, s.StoreLogs(commandEntries(1, 3)))
	must.OK(t, s.AwaitSynced(3))
	toggle.On()
	must.OK(t, s.StoreLogs(commandEntries(4, 4)))
	must.Be(t, s.AwaitSynced(4), syscall.EIO)
	must.Be(t, <-fatal, syscall.EIO)
	if got := s.Vouched(4); got != 3 {
		t.Errorf("%d entries are vouched for, want 3", got)
	}
	must.Be(t, s.StoreLogs(commandEntries(5, 5)), journal.ErrPoisoned)
	must.Be(t, s.Close(), journal.ErrPoisoned)
	if len(fatal) != 0 {
		t.Error("the hook was called again")
	}
}

// What is not on disk is read from the tail alone, so there must not be more of it than the tail
// holds.
func TestALeaderWaitsWhenItIsTooFarAhead(t *testing.T) {
	disk := newHeldDisk(vfs.NewMem())
	s := leadingLog(t, disk, func(err error) { t.Error(err) })
	release := disk.hold()
	const entries = 3 * aheadEntries
	ended := make(chan error, 1)
	go func() {
		for i := uint64(1); i <= entries; i++ {
			if err := s.StoreLog(commandEntries(i, i)[0]); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	await(t, "the leader to be ahead as far as it may",
		func() bool { return s.reach().last == aheadEntries })
	var l raft.Log
	must.OK(t, s.GetLog(1, &l))
	release()
	must.OK(t, <-ended)
	must.OK(t, s.AwaitSynced(entries))
	if got := s.reach(); got.first != 1 || got.last != entries {
		t.Errorf("log %d..%d, want 1..%d", got.first, got.last, entries)
	}
	must.OK(t, s.Close())
}

// sentTransport keeps what is sent.
type sentTransport struct {
	transport
	sent []*raft.AppendEntriesRequest
}

func (s *sentTransport) AppendEntries(_ raft.ServerID, _ raft.ServerAddress,
	args *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) error {
	s.sent = append(s.sent, args)
	return nil
}

func TestTheOthersAreToldOfNoCommitThatIsNotOnDisk(t *testing.T) {
	disk := newHeldDisk(vfs.NewMem())
	s := leadingLog(t, disk, func(err error) { t.Error(err) })
	must.OK(t, s.StoreLogs(commandEntries(1, 3)))
	must.OK(t, s.AwaitSynced(3))
	release := disk.hold()
	must.OK(t, s.StoreLogs(commandEntries(4, 5)))
	sent := &sentTransport{}
	under := memberTransport{sent, s}
	asked := &raft.AppendEntriesRequest{Term: 7, LeaderCommitIndex: 5}
	must.OK(t, under.AppendEntries("b", "b", asked, nil))
	release()
	must.OK(t, s.AwaitSynced(5))
	must.OK(t, under.AppendEntries("b", "b", asked, nil))
	if a, b := sent.sent[0], sent.sent[1]; a.LeaderCommitIndex != 3 || b.LeaderCommitIndex != 5 ||
		a.Term != 7 {
		t.Errorf("sent commits %d and %d of term %d, want 3 and 5 of term 7", a.LeaderCommitIndex,
			b.LeaderCommitIndex, a.Term)
	}
	if _, err := under.AppendEntriesPipeline("b",
		"b"); err != raft.ErrPipelineReplicationNotSupported {
		t.Errorf("a pipeline would go past the wrapper: %v", err)
	}
	must.OK(t, s.Close())
}

// The library counts a leader among the members that have an entry before its disk has the entry.
// The leader's engine does not see the entry until then.
func TestNothingIsAppliedBeforeTheLeaderHasItOnDisk(t *testing.T) {
	c := newCluster(t, 3)
	disks := map[*member]*heldDisk{}
	for _, m := range c.members {
		disks[m] = newHeldDisk(vfs.Default)
		m.o.FS = disks[m]
	}
	c.start()
	c.book(1, "a")
	leader := c.leader()
	before := leader.node.raft.LastIndex()
	release := disks[leader].hold()
	leader.submit(3, "b")
	await(t, "the others to have the entry", func() bool {
		return leader.node.raft.LastIndex() > before && leader.node.raft.CommitIndex() > before
	})
	if got := leader.node.log.Vouched(before + 1); got != before {
		t.Errorf("entry %d is vouched for, and the disk has not synced it", got)
	}
	if got := leader.disk.Head(); got != 1 {
		t.Errorf("the leader's engine has %d commands, want 1", got)
	}
	release()
	for _, m := range c.members {
		m.disk.until(t, "the commands", func() bool { return len(m.disk.commands) == 4 })
	}
}
