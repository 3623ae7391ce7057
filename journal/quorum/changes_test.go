package quorum

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"posttrade/ring/must"
)

// record is what the leaders of a cluster have put on record.
type record struct {
	mu      sync.Mutex
	changes []Change
	refuse  error
}

func (r *record) put(_ context.Context, c Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	r.changes = append(r.changes, c)
	return nil
}

func (r *record) all() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Change{}, r.changes...)
}

// recorded is a cluster of three, and what its members put on record.
func recorded(t *testing.T) (*cluster, *record) {
	t.Helper()
	c, r := newCluster(t, 3), &record{}
	for _, m := range c.members {
		m.o.Record = r.put
	}
	c.start()
	c.book(1, "")
	return c, r
}

// A change of the members is put on record before it is made, with the operator, the reason and the
// address, and one that cannot be put on record is not made.
func TestChangesArePutOnRecord(t *testing.T) {
	c, r := recorded(t)
	remote := Remote{Subject: "os:ann", Reason: "a new machine"}
	change := func(want error, do func(at string) error) {
		t.Helper()
		var err error
		await(t, "an answer of the leader", func() bool {
			err = do(c.leader().node.self.Raft)
			return err == nil || errors.Is(err, ErrRefused) &&
				!strings.Contains(err.Error(), errNotLeader.Error())
		})
		if (err == nil) != (want == nil) || want != nil && !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("answered %v, want %v", err, want)
		}
	}
	four := Member{ID: "4", Raft: "127.0.0.1:4", HTTP: "127.0.0.1:5"}
	change(nil, func(at string) error { return remote.Add(t.Context(), at, four) })
	there := Member{ID: c.members[2].o.Member, Raft: c.members[2].node.self.Raft, HTTP: "127.0.0.1:7"}
	change(errThere, func(at string) error { return remote.Add(t.Context(), at, there) })
	taken := Member{ID: "5", Raft: there.Raft, HTTP: "127.0.0.1:7"}
	change(ErrMembers, func(at string) error { return remote.Add(t.Context(), at, taken) })
	if got := c.leader().node.Status().Expected; len(got) != 1 ||
		got[0] != (Server{Member: "4", Address: four.Raft}) {
		t.Errorf("expected are %+v", got)
	}
	// What was added and has not come can be taken back, once.
	change(nil, func(at string) error { return remote.Remove(t.Context(), at, "4") })
	change(errStranger, func(at string) error { return remote.Remove(t.Context(), at, "4") })
	if got := c.leader().node.Status().Expected; got != nil {
		t.Errorf("expected are %+v after the removal", got)
	}
	r.refuse = errors.New("the record is full")
	gone := c.members[0]
	if gone == c.leader() {
		gone = c.members[1]
	}
	change(r.refuse, func(at string) error { return remote.Remove(t.Context(), at, gone.o.Member) })
	if n := len(c.leader().node.servers()); n != 3 {
		t.Errorf("%d servers after a change without a record, want 3", n)
	}
	plain := question{Ask: askRemovePlain, Member: gone.o.Member} // of an older command line
	change(r.refuse, func(at string) error { return remote.change(t.Context(), at, plain) })
	r.refuse = nil
	change(errStranger, func(at string) error { return remote.Remove(t.Context(), at, "9") })
	id := string(gone.node.id)
	change(nil, func(at string) error { return remote.Remove(t.Context(), at, gone.o.Member) })
	all := r.all()
	if len(all) != 3 {
		t.Fatalf("on record are %+v", all)
	}
	for i, want := range []Change{{Kind: Added, Member: "4", New: &Server{Member: "4",
		Address: four.Raft}}, {Kind: Removed, Member: "4", Old: &Server{Member: "4",
		Address: four.Raft}}, {Kind: Removed, Member: gone.o.Member,
		Old: &Server{id, gone.o.Member, gone.node.self.Raft, true}}} {
		got := all[i]
		from, err := netip.ParseAddr(got.From)
		if got.Kind != want.Kind || got.Member != want.Member || !same(got.Old, want.Old) ||
			!same(got.New, want.New) || got.Subject != "os:ann" || got.Reason != "a new machine" ||
			err != nil || !from.IsLoopback() || got.Failed != nil {
			t.Errorf("on record is %+v of %v to %v, want %v to %v", got, got.Old, got.New, want.Old,
				want.New)
		}
	}
}

func same(a, b *Server) bool { return a == b || a != nil && b != nil && *a == *b }

// A member that the others cannot do without is not removed, and nothing is put on record. The one
// that is down is removed.
func TestRemoveLeavesAMajority(t *testing.T) {
	c, r := recorded(t)
	var others []*member
	leader := c.leader()
	for _, m := range c.members {
		if m != leader {
			others = append(others, m)
		}
	}
	down, healthy := others[0], others[1]
	c.alike(1)
	down.stop()
	c.book(1, "") // the leader and the healthy member agree
	for _, m := range []*member{healthy, leader} {
		err := leader.node.remove("", question{Member: m.o.Member})
		if !errors.Is(err, errMinority) || !strings.Contains(err.Error(), "member "+down.o.Member) {
			t.Errorf("member %s is removed: %v", m.o.Member, err)
		}
	}
	if all, n := r.all(), len(leader.node.servers()); len(all) != 0 || n != 3 {
		t.Errorf("%d servers; on record are %+v", n, all)
	}
	await(t, "the removal", func() bool { // the healthy member may be a moment behind
		return leader.node.remove("", question{Member: down.o.Member}) == nil
	})
	if n := len(leader.node.servers()); n != 2 {
		t.Errorf("%d servers, want 2", n)
	}
	c.book(1, "")
}

// A change that fails although it is on record is put on record again, as failed.
func TestFailedChangeIsOnRecord(t *testing.T) {
	c := newCluster(t, 1)
	r := &record{}
	c.members[0].o.Record = r.put
	c.start()
	why := errors.New("no majority")
	err := c.leader().node.carryOut(Change{Kind: Removed, Member: "3"}, func() error { return why })
	if all := r.all(); !errors.Is(err, why) || len(all) != 2 || all[0].Failed != nil ||
		!errors.Is(all[1].Failed, why) {
		t.Errorf("%v; on record are %+v", err, all)
	}
}

// A leader of a build that may put no change on record is not asked to make one: it does not know
// the question.
func TestOlderLeaderChangesNothing(t *testing.T) {
	answer := func(_ string, request []byte) ([]byte, error) {
		var q question
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, err
		}
		if q.Ask == "add" || q.Ask == "remove" {
			t.Errorf("asked to %s", q.Ask)
		}
		return nil, fmt.Errorf("quorum: ask=%q: %w", q.Ask, errQuestion)
	}
	older := must.Get(openWire("127.0.0.1:0", wireOptions{Answer: answer}))(t)
	defer func() { _ = older.Close() }()
	var remote Remote
	for _, err := range []error{
		remote.Add(t.Context(), older.address, Member{ID: "4", Raft: "127.0.0.1:4"}),
		remote.Remove(t.Context(), older.address, "4"),
	} {
		if !errors.Is(err, ErrOlder) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("answered %v", err)
		}
	}
}

// A member that is spared while its journal is damaged, and keeps its disk because the damage has
// gone away, gets its vote back.
func TestSparedMemberGetsItsVoteBack(t *testing.T) {
	c := newCluster(t, 3)
	var damaged atomic.Bool
	var asked atomic.Int64 // how often
	spared := c.members[2]
	spared.o.Damaged = func() bool {
		asked.Add(1)
		return damaged.Load()
	}
	c.start()
	c.book(1, "")
	await(t, "a vote for each", spared.node.Votes)
	spared.stop() // from its start on it has a vote, and another member leads
	spared.start()
	await(t, "another leader", func() bool {
		return c.leader() != spared || spared.node.HandOver() == nil && c.leader() != spared
	})
	damaged.Store(true)
	await(t, "the vote to be taken", func() bool {
		return spared.node.Spared() || spared.node.Spare(0) == nil && spared.node.Spared()
	})
	before := asked.Load()
	await(t, "the member to look twice", func() bool { return asked.Load() >= before+2 })
	if !spared.node.Spared() {
		t.Error("a damaged member has its vote back")
	}
	damaged.Store(false)
	await(t, "the vote to come back", spared.node.Votes)
}

// A leader takes no vote away from a member that it could not send its journal to: one with less
// room than the journal takes, or any while a part of the journal cannot be read.
func TestLeaderSparesNoneThatItCannotSendTo(t *testing.T) {
	c := newCluster(t, 3)
	c.start()
	c.book(2, "")
	c.alike(2)
	var of *member
	refused := func(room uint64, why string) {
		t.Helper()
		var err error
		await(t, "the refusal", func() bool {
			leader := c.leader()
			of = c.members[(slices.Index(c.members, leader)+1)%3]
			err = of.node.Spare(room)
			return err != nil && strings.Contains(err.Error(), why)
		})
		if !errors.Is(err, ErrRefused) || of.node.Spared() {
			t.Errorf("with room for %d: %v", room, err)
		}
	}
	refused(2*64-1, errLarge.Error()+": 128 bytes with its archives, and there is room for 127")
	archived := errors.New("moved into an archive")
	for _, m := range c.members {
		m.disk.change(func() { m.disk.unsent = archived })
	}
	refused(1<<40, archived.Error())
	for _, m := range c.members {
		m.disk.change(func() { m.disk.unsent = nil })
	}
	await(t, "the vote to be taken", func() bool {
		return of.node.Spared() || of.node.Spare(2*64) == nil && of.node.Spared()
	})
}
