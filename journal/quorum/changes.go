package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// ChangeKind is what is done to a member.
type ChangeKind byte

// The kinds.
const (
	Added    ChangeKind = iota // it may join
	Removed                    // the others go on without it
	Replaced                   // it takes part with another disk
)

// Change is a change of the members that the leader makes, as it is put on record.
type Change struct {
	Kind     ChangeKind
	Member   string
	Old, New *Server // nil: none; a New without an ID is a member that has not joined yet

	// The operator, why, and the address of the machine that the question came from. A member that
	// comes back with another disk has no operator.
	Subject, Reason, From string
	// Failed is why a change that is on record was not made, nil before it is made.
	Failed error
}

// Recorder puts a change on record, durably, before it returns nil. An error refuses the change. It
// may block until ctx ends. The node calls it once for each change, and once more with Failed when
// the change then fails.
type Recorder func(ctx context.Context, c Change) error

// carryOut puts a change on record and makes it. A change that then fails is put on record again,
// as one that has failed. So with a recorder no change is made that is not on record.
func (n *Node) carryOut(c Change, do func() error) error {
	if n.o.Record == nil {
		return do()
	}
	ctx, cancel := context.WithTimeout(n.ctx, changeTimeout)
	defer cancel()
	if err := n.o.Record(ctx, c); err != nil {
		return fmt.Errorf("the change is not made, it cannot be put on record: %w", err)
	}
	err := do()
	if c.Failed = err; err == nil {
		return nil
	}
	n.o.Logger.Warn("cluster: a change of the members has failed", "member", c.Member, "error", err)
	if lost := n.o.Record(ctx, c); lost != nil {
		n.o.Logger.Warn("cluster: that a change has failed is not on record", "member", c.Member,
			"error", lost)
	}
	return err
}

// server is a line of the latest configuration, nil for a server that is not there.
func (n *Node) server(id raft.ServerID) *Server {
	for _, s := range n.servers() {
		if s.ID == id {
			return lineOf(s)
		}
	}
	return nil
}

// lineOf is a server of the library as a line of Status.
func lineOf(s raft.Server) *Server {
	hostPort, _ := hostPortOf(s.Address)
	return &Server{string(s.ID), memberOf(s.ID), hostPort, s.Suffrage == raft.Voter}
}

// expect notes a member that is to be added: it joins when its process asks. The note is in this
// leader's memory only: after a change of the leader the operator adds the member again. Errors:
// errNotLeader, errUnderWay, errThere, ErrMembers, or that of the record. A member that is there at
// another address stays until a disk from the new one takes its place.
func (n *Node) expect(from string, q question) error {
	if !n.leads.Load() {
		return errNotLeader
	}
	if number(q.Member) == 0 || q.Address == "" {
		return fmt.Errorf("member %q at %q: %w", q.Member, q.Address, ErrMembers)
	}
	if !n.admits.mu.TryLock() {
		return errUnderWay
	}
	defer n.admits.mu.Unlock()
	c := Change{Kind: Added, Member: q.Member, New: &Server{Member: q.Member, Address: q.Address},
		Subject: q.Subject, Reason: q.Reason, From: from}
	for _, s := range n.servers() {
		at := lineOf(s)
		switch {
		case at.Member == q.Member:
			c.Old = at
		case at.Address == q.Address:
			return fmt.Errorf("member %q at %q, where member %s is: %w", q.Member, q.Address, at.Member,
				ErrMembers)
		}
	}
	if c.Old != nil && c.Old.Address == q.Address {
		return fmt.Errorf("member %s at %s: %w", q.Member, q.Address, errThere)
	}
	return n.carryOut(c, func() error {
		n.admits.expect(q.Member, q.Address)
		return nil
	})
}

// remove removes every server of a member from the cluster, the leader's own too, and what expect
// has noted of it. The last server stays (errLastOne), and a voter that the others cannot do
// without (errMinority). Errors: errNotLeader, errUnderWay, errStranger, those of the record and of
// the library.
func (n *Node) remove(from string, q question) error {
	if !n.leads.Load() {
		return errNotLeader
	}
	if !n.admits.mu.TryLock() {
		return errUnderWay
	}
	defer n.admits.mu.Unlock()
	servers := n.servers()
	found := false
	for _, s := range servers {
		if memberOf(s.ID) != q.Member {
			continue
		}
		if len(servers) == 1 {
			return errLastOne
		}
		if !found {
			if err := n.without(q.Member, servers); err != nil {
				return err
			}
		}
		found = true
		c := Change{Kind: Removed, Member: q.Member, Old: lineOf(s), Subject: q.Subject,
			Reason: q.Reason, From: from}
		if err := n.carryOut(c, func() error {
			return n.raft.RemoveServer(s.ID, 0, changeTimeout).Error()
		}); err != nil {
			return err
		}
	}
	address, expected := n.admits.expected[q.Member]
	switch {
	case found:
		n.admits.forget(q.Member)
		return nil
	case !expected:
		return fmt.Errorf("member %q: %w", q.Member, errStranger)
	}
	c := Change{Kind: Removed, Member: q.Member, Old: &Server{Member: q.Member, Address: address},
		Subject: q.Subject, Reason: q.Reason, From: from}
	return n.carryOut(c, func() error {
		n.admits.forget(q.Member)
		return nil
	})
}

// without checks that the voters that remain when a member is removed can agree without it: that a
// majority of them is sound. It puts a question to each of the others at once. A member without a
// vote can always be done without.
func (n *Node) without(member string, servers []raft.Server) error {
	if !slices.ContainsFunc(servers, func(s raft.Server) bool {
		return memberOf(s.ID) == member && s.Suffrage == raft.Voter
	}) {
		return nil
	}
	voters := slices.DeleteFunc(slices.Clone(servers), func(s raft.Server) bool {
		return memberOf(s.ID) == member || s.Suffrage != raft.Voter
	})
	unsound := make([]error, len(voters))
	var asking sync.WaitGroup
	for i, s := range voters {
		if s.ID != n.id {
			asking.Go(func() { unsound[i] = n.sound(s) })
		}
	}
	asking.Wait()
	if len(voters) == 0 {
		return fmt.Errorf("member %s: %w", member, errMinority)
	}
	missing := slices.DeleteFunc(unsound, func(err error) bool { return err == nil })
	if 2*(len(voters)-len(missing)) > len(voters) {
		return nil
	}
	return fmt.Errorf("member %s: %w: %w", member, errMinority, errors.Join(missing...))
}
