package quorum

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"posttrade/ring/must"
)

// adopting is a cluster whose first member has a journal of ten commands to begin with.
func adopting(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 3)
	first := c.members[0]
	for i := range 10 {
		first.disk.commands = append(first.disk.commands, someCommands(1, 0)...)
		first.disk.ids[uint64(i+1)] = "old"
	}
	first.o.Adopt = 10
	return c
}

// joins starts a member with an empty disk, which gets the journal and a vote.
func (m *member) joins() {
	m.t.Helper()
	m.start()
	await(m.t, "a journal for member "+m.o.Member, func() bool {
		select {
		case <-m.node.Restart():
			return true
		default:
			return false
		}
	})
	m.stop()
	m.start()
	await(m.t, "a vote for member "+m.o.Member, m.node.Votes)
}

// A cluster begins with the journal of a single node, or of a backup: the others join with empty
// disks and get the whole journal.
func TestJournalIsAdopted(t *testing.T) {
	c := adopting(t)
	first := c.members[0]
	first.start()
	c.book(2, "new")
	for _, m := range c.members[1:] {
		m.joins()
	}
	c.book(1, "newer")
	c.alike(13)
	first.stop() // the setting may stay: there is consensus state now
	first.start()
	c.book(1, "")
	c.alike(14)
	if text := first.genesis(t); string(text) != "has one" {
		t.Errorf("genesis %q", text)
	}
}

// A start that ends between the two writes of an adoption has adopted nothing: without the setting
// the next one is refused, and with it the cluster begins.
func TestAdoptionThatWasCutShortIsRepeated(t *testing.T) {
	c := adopting(t)
	first := c.members[0]
	var full atomic.Bool
	full.Store(true)
	first.o.FS = errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpCreate && strings.Contains(op.Path, recordSuffix) {
			return errorfs.ErrInjected
		}
		return nil
	}))
	first.fatal = func(error) {}
	must.Be(t, first.open(), errorfs.ErrInjected)
	full.Store(false)
	first.fatal = nil
	first.o.Adopt = 0
	must.Be(t, first.open(), ErrForeign)
	first.o.Adopt = 10
	first.start()
	c.book(1, "")
	for _, m := range c.members[1:] {
		m.joins()
	}
	c.alike(11)
}

// The members of the list join although the one that has adopted the journal restarts before they
// come. With all members in it, the cluster expects none.
func TestAdoptedClusterStillExpectsTheOthersAfterARestart(t *testing.T) {
	c := adopting(t)
	first := c.members[0]
	for range 2 {
		first.start()
		c.book(1, "")
		if n := len(first.node.Status().Expected); n != 2 {
			t.Fatalf("%d members may join, want 2", n)
		}
		first.stop()
	}
	first.start()
	for _, m := range c.members[1:] {
		m.joins()
	}
	c.book(1, "")
	c.alike(13)
	c.stop()
	for _, m := range c.members {
		m.start()
	}
	c.book(1, "")
	for _, m := range c.members {
		if all := m.node.Status().Expected; all != nil {
			t.Errorf("member %s expects %+v", m.o.Member, all)
		}
	}
}

// A member that was removed stays out when the last one starts again.
func TestAdoptedClusterExpectsNoRemovedMember(t *testing.T) {
	c := adopting(t)
	first := c.members[0]
	first.start()
	for _, m := range c.members[1:] {
		m.joins()
	}
	remote := Remote{Subject: "os:ann", Reason: "given up"}
	for _, m := range c.members[1:] {
		await(t, "a change", func() bool {
			return remote.Remove(t.Context(), c.leader().node.self.Raft, m.o.Member) == nil
		})
	}
	await(t, "one server", func() bool { return len(first.node.servers()) == 1 })
	c.stop()
	first.start()
	c.members = c.members[:1]
	c.book(1, "")
	if all := first.node.Status().Expected; all != nil {
		t.Errorf("expects %+v", all)
	}
}

// The first start of a cluster may end between the term and the first entry. The next one begins.
func TestBeginningThatWasCutShortIsRepeated(t *testing.T) {
	c := newCluster(t, 3)
	log := must.Get(openLogStore(filepath.Join(c.members[0].o.Dir, "log"), logStoreOptions{}))(t)
	must.OK(t, log.SetUint64(keyCurrentTerm, firstTerm))
	must.OK(t, log.Close())
	c.start()
	c.book(1, "")
	c.alike(1)
}
