package quorum

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"posttrade/ring/must"
)

// An unknown member joins only after an operator has added it.
func TestStrangersAreAddedAndRemoved(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(5, "a")
	var remote Remote
	list := freeMembers(t, 1)
	fourth := &member{t: t, disk: newMemory(), o: c.members[0].o}
	fourth.o.Dir, fourth.o.Member = t.TempDir(), "4"
	fourth.o.Members = append(append([]Member{}, c.members[0].o.Members...),
		Member{ID: "4", Raft: list[0].Raft, HTTP: "127.0.0.1:1"})
	fourth.start()
	c.members = append(c.members, fourth)
	await(t, "the refusal", func() bool {
		return strings.Contains(fourth.node.tryJoin(), errStranger.Error())
	})
	change := func(do func(at string) error) {
		t.Helper()
		await(t, "a change", func() bool {
			err := do(c.leader().node.self.Raft)
			if err != nil && !errors.Is(err, ErrRefused) {
				t.Log(err) // the leader may have changed
			}
			return err == nil
		})
	}
	change(func(at string) error { return remote.Add(t.Context(), at, fourth.o.Members[3]) })
	await(t, "a vote for the fourth", fourth.node.Votes)
	c.book(1, "b")
	c.alike(6)
	change(func(at string) error { return remote.Remove(t.Context(), at, "4") })
	await(t, "three servers", func() bool {
		return len(c.members[0].node.servers()) == 3 || len(c.members[1].node.servers()) == 3
	})
	fourth.stop()
	c.members = c.members[:3]
	c.book(1, "c")
	c.alike(7)
	if err := remote.Remove(t.Context(), c.leader().node.self.Raft, "9"); !errors.Is(err, ErrRefused) {
		t.Errorf("removing nobody: got %v, want %v", err, ErrRefused)
	}
}

// A disk that names itself another member's does not join while that member answers at the address.
func TestImpostorsAreRefused(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	leader := c.leader()
	other := c.members[0]
	if other == leader {
		other = c.members[1]
	}
	for name, q := range map[string]question{
		"another disk at a member's address": {Ask: askJoin, Member: other.o.Member,
			Server: other.o.Member + ".0000000000000000", Address: other.node.self.Raft},
		"nobody at the address": {Ask: askJoin, Member: other.o.Member,
			Server: other.o.Member + ".0000000000000000", Address: "127.0.0.1:1"},
		"an id of another member": {Ask: askJoin, Member: "2", Server: "3.0000000000000000",
			Address: other.node.self.Raft},
		"no number": {Ask: askJoin, Member: "x", Server: "x.0",
			Address: other.node.self.Raft},
		"an empty addition": {Ask: askAdd, Member: "4"},
	} {
		s, err := leader.node.ask(leader.node.self.Raft, q)
		if err != nil || s.Refusal == "" && leader.node.Leads() {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	for _, m := range c.members {
		if m != leader {
			for _, q := range []question{{Ask: askJoin, Member: "1"},
				{Ask: askAdd, Member: "4", Address: "a:1"}, {Ask: askRemove, Member: "1"}} {
				if s, err := leader.node.ask(m.node.self.Raft, q); err != nil ||
					s.Refusal != errNotLeader.Error() && !m.node.Leads() {
					t.Errorf("member %s, %s: %+v, %v", m.o.Member, q.Ask, s, err)
				}
			}
		}
	}
	if _, err := leader.node.ask(other.node.self.Raft,
		question{Ask: "dance"}); !errors.Is(err, ErrAnswer) {
		t.Errorf("an unknown question: got %v, want %v", err, ErrAnswer)
	}
	if _, err := leader.node.answer("", []byte("{")); err == nil {
		t.Error("half a question is answered")
	}
	c.book(1, "")
	c.alike(1)
}

// Two processes have the same number on two machines: the second one, with an empty disk, does not
// replace the first one before an operator allows it.
func TestMemberAtAnotherAddressIsAStranger(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(3, "")
	leader, other := c.leader(), c.members[0]
	if other == leader {
		other = c.members[1]
	}
	second := &member{t: t, disk: newMemory(), o: other.o}
	second.o.Dir, second.o.Members = t.TempDir(), slices.Clone(other.o.Members)
	for i := range second.o.Members {
		if second.o.Members[i].ID == other.o.Member {
			second.o.Members[i].Raft = freeMembers(t, 1)[0].Raft
		}
	}
	second.start()
	defer second.stop()
	for range 3 {
		await(t, "the refusal", func() bool {
			return strings.Contains(second.node.tryJoin(), errStranger.Error())
		})
	}
	if !other.node.Votes() {
		t.Error("the first one has lost its place")
	}
	c.book(1, "")
	c.alike(4)
	var remote Remote
	await(t, "the addition", func() bool {
		return remote.Add(t.Context(), c.leader().node.self.Raft, second.node.self) == nil
	})
	await(t, "its place", second.node.Votes)
	// The first one is stopped, and the others get the new list one by one. Two of three go on.
	other.stop()
	c.members[slices.Index(c.members, other)] = second
	booked := 4
	for _, m := range c.members {
		if m == second {
			continue
		}
		m.stop()
		c.book(1, "")
		m.o.Members = second.o.Members
		m.start()
		booked++
		m.disk.until(t, "what was agreed meanwhile", func() bool {
			return len(m.disk.commands) == booked
		})
	}
	c.alike(6)
}

// While one member of a new cluster is silent nothing begins.
func TestNothingBeginsWithoutAll(t *testing.T) {
	c := newCluster(t, 3)
	c.members[0].start()
	c.members[1].start()
	for _, m := range c.members[:2] {
		for range 3 {
			if why := m.node.tryJoin(); why != "member 3 does not answer" {
				t.Errorf("member %s: %q", m.o.Member, why)
			}
		}
		if len(m.node.servers()) != 0 || m.node.Leads() {
			t.Errorf("member %s has begun", m.o.Member)
		}
	}
	c.members[2].start()
	c.book(1, "")
	c.alike(1)
}

func TestOpenRefusesWhatDoesNotBelongTogether(t *testing.T) {
	list := freeMembers(t, 2)
	dir := t.TempDir()
	open := func(change func(o *Options)) error {
		t.Helper()
		o := Options{Dir: dir, Member: "1", Members: list, Storage: newMemory(),
			Genesis: func() ([]byte, error) { return []byte("g"), nil }}
		change(&o)
		n, err := Open(o)
		if err == nil {
			err = n.Close()
		}
		return err
	}
	for name, x := range map[string]struct {
		change func(o *Options)
		want   error
	}{
		"a member that is not listed":       {func(o *Options) { o.Member = "7" }, ErrMembers},
		"another member's directory":        {func(o *Options) { o.Member = "2" }, ErrOtherMember},
		"a journal without consensus state": {func(o *Options) { o.Has = []byte("g") }, ErrForeign},
		"plain talk with another machine": {func(o *Options) {
			o.Members = []Member{list[0],
				{"2", "192.0.2.1:7", "192.0.2.1:8"}}
		}, ErrPlain},
		"nothing wrong": {func(*Options) {}, nil},
	} {
		if name == "another member's directory" {
			if err := open(func(*Options) {}); err != nil { // the first member's own start
				t.Fatal(err)
			}
		}
		if err := open(x.change); !errors.Is(err, x.want) {
			t.Errorf("%s: got %v, want %v", name, err, x.want)
		}
	}
}

// A journal that ends before the point that the consensus state counts on is refused.
func TestJournalThatIsTooShort(t *testing.T) {
	c := newCluster(t, 1)
	c.start()
	c.book(10, "")
	c.members[0].compactAll()
	c.stop()
	m := c.members[0]
	m.disk.commands = m.disk.commands[:9]
	o := m.o
	o.Storage, o.Has = m.disk, []byte("has one")
	n := must.Get(Open(o))(t)
	defer n.Close()
	if err := n.Attach(m.disk, m.proposals); !errors.Is(err, ErrBehind) {
		t.Errorf("got %v, want %v", err, ErrBehind)
	}
}

// An entry that this version cannot read is final: nothing after it is applied.
func TestUnreadableEntryIsFinal(t *testing.T) {
	c := newCluster(t, 1)
	failed := make(chan error, 8)
	c.members[0].fatal = func(err error) { failed <- err }
	c.start()
	c.book(3, "")
	m := c.leader()
	must.OK(t, m.node.raft.Apply([]byte{entryCommands, entryVersion + 1}, 0).Error())
	if err := <-failed; !errors.Is(err, ErrEntry) {
		t.Errorf("got %v, want %v", err, ErrEntry)
	}
	if m.node.Leads() {
		t.Error("it still leads")
	}
	ref := m.submit(1, "")
	m.disk.until(t, "the refusal", func() bool {
		return len(m.disk.refused) > 0 && m.disk.refused[0] == ref
	})
	if len(failed) != 0 || m.disk.Head() != 3 {
		t.Errorf("%d more failures, %d commands", len(failed), m.disk.Head())
	}
	if err := m.node.raft.Apply([]byte{9, entryVersion}, 0).Error(); err != nil &&
		!errors.Is(err, raft.ErrNotLeader) {
		t.Error(err)
	}
}
