package quorum

import (
	"errors"
	"strings"
	"testing"
)

// The old disk of a member that has come back with another one says so when it is started again,
// and so does a disk of a member that was removed. Members that only look for a leader say nothing.
func TestOldDiskSaysThatItIsReplaced(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(9, "x")
	c.alike(9)
	member := c.members[2]
	old, disk := member.o.Dir, member.disk
	member.stop()
	member.o.Dir, member.disk = t.TempDir(), newMemory()
	member.start()
	await(t, "a vote for the new disk", member.node.Votes)
	fresh := string(member.node.id)
	member.stop()

	member.o.Dir, member.disk = old, disk
	member.start()
	await(t, "the disk is told", func() bool { return member.node.Apart() != nil })
	err := <-member.node.Replaced()
	for _, word := range []string{fresh, string(member.node.id), "empty this data.dir"} {
		if !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), word) {
			t.Errorf("without %q: %v", word, err)
		}
	}
	if now := member.node.Apart(); !errors.Is(now, ErrReplaced) {
		t.Errorf("apart: %v", now)
	}
	member.stop()

	leader := c.leader()
	await(t, "removed", func() bool {
		_, err := leader.node.ask(leader.node.self.Raft, question{Ask: askRemove, Member: "3"})
		return err == nil && len(leader.node.servers()) == 2
	})
	member.start()
	await(t, "the disk knows", func() bool { return errors.Is(member.node.Apart(), ErrRemoved) })
	select {
	case err := <-member.node.Replaced():
		t.Errorf("a removed member ends: %v", err)
	default:
	}
	member.stop()
	other := c.members[0]
	if other == leader {
		other = c.members[1]
	}
	leader.stop() // one of two: no leader answers, and none can be elected
	await(t, "it looks", func() bool { _, id := other.node.raft.LeaderWithID(); return id == "" })
	if err := other.node.missing(); err != nil || other.node.Apart() != nil {
		t.Errorf("without a leader: %v, %v", err, other.node.Apart())
	}
}
