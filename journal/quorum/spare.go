package quorum

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// A member whose journal is damaged can be sent another one only as a new disk. The others must be
// able to do without it until then, and never without two. So the leader takes its vote away
// first, by a change of the configuration: that is agreed, outlives the leader, and shows every
// later leader that a member is on its way. A member that keeps its disk after all gets its vote
// back in the way of a member that joins.

var (
	// The leader would send its own damage to the member.
	errDamaged = errors.New("the leader's own journal is damaged")
	// What the leader would send does not fit on the member's disk.
	errLarge = errors.New("the leader's journal is too large for this disk")
	// With one vote left, nothing could be agreed while its member is away.
	errFew = errors.New("with fewer than three members none can be spared")
)

// Spare asks the leader to do without this member's vote. The leader agrees when every other member
// votes, answers and has caught up, its own journal is not known to be damaged, and it can send all
// of it to a disk that has room for so many bytes, 0 for one that does not say. Spared tells
// when that is in force. ErrRefused with the leader's reason; other errors say that no leader was
// reached. Blocks for one question.
func (n *Node) Spare(room uint64) error {
	_, id := n.raft.LeaderWithID()
	for _, s := range n.servers() {
		if s.ID != id {
			continue
		}
		hostPort, _ := hostPortOf(s.Address)
		answer, err := n.ask(hostPort, question{Ask: askSpare, Member: n.o.Member, Server: string(n.id),
			Room: room})
		if err == nil && answer.Refusal != "" {
			err = errors.Join(ErrRefused, errors.New(answer.Refusal))
		}
		return err
	}
	return errors.New("no leader is known")
}

// Spared reports that this disk takes part without a vote, by the latest configuration that it
// knows. Any goroutine.
func (n *Node) Spared() bool {
	return slices.ContainsFunc(n.servers(), func(s raft.Server) bool {
		return s.ID == n.id && s.Suffrage != raft.Voter
	})
}

// spare takes a member's vote away, on the leader. A member that has none already is no error. One
// member at a time: while any other is without a vote, it refuses.
func (n *Node) spare(q question) error {
	if !n.leads.Load() {
		return errNotLeader
	}
	if !n.admits.mu.TryLock() {
		return errUnderWay
	}
	defer n.admits.mu.Unlock()
	if n.o.Damaged() {
		return errDamaged
	}
	id := raft.ServerID(q.Server)
	servers, there := n.servers(), false
	for _, s := range servers {
		there = there || s.ID == id
		switch {
		case s.Suffrage != raft.Voter && s.ID == id:
			return nil // it is spared already
		case s.Suffrage != raft.Voter:
			return fmt.Errorf("member %s: %w", memberOf(s.ID), errUnderWay)
		}
	}
	switch {
	case !there || id == n.id:
		return fmt.Errorf("member %q server %q: %w", q.Member, q.Server, errStranger)
	case len(servers) < 3:
		return errFew
	}
	for _, s := range servers {
		if s.ID == id || s.ID == n.id {
			continue
		}
		if err := n.sound(s); err != nil {
			return err
		}
	}
	if err := n.sendable(q.Room); err != nil {
		return err
	}
	n.o.Logger.Warn("cluster: a member's journal is damaged, and it is done without until it "+
		"has another",
		"member", q.Member, "server", q.Server)
	return n.raft.DemoteVoter(id, 0, changeTimeout).Error()
}

// sendable checks that this leader can make a transfer of its journal, archives and all, and that
// it fits into the room of the disk that is to receive it.
func (n *Node) sendable(room uint64) error {
	bytes, err := n.host.TransferSize()
	if err != nil {
		return fmt.Errorf("the leader cannot send its journal: %w", err)
	}
	if room > 0 && bytes > room {
		return fmt.Errorf("%w: %d bytes with its archives, and there is room for %d", errLarge, bytes,
			room)
	}
	return nil
}

// sound checks that a member answers, is the disk that the configuration names, and has applied all
// but promoteWithin entries. It costs a question.
func (n *Node) sound(s raft.Server) error {
	hostPort, _ := hostPortOf(s.Address)
	status, err := n.ask(hostPort, question{Ask: askStatus})
	switch {
	case err != nil:
		return fmt.Errorf("member %s: %w", memberOf(s.ID), err)
	case status.Server != string(s.ID):
		return fmt.Errorf("member %s: %w", memberOf(s.ID), errImpostor)
	case n.raft.LastIndex() > status.Applied+promoteWithin:
		return fmt.Errorf("member %s is behind", memberOf(s.ID))
	}
	return nil
}

// HandOver gives the leadership to a member that has caught up and whose journal is not known to be
// damaged. A member whose disk is full gives it only to one with room, and only while most members
// have room, unless it is damaged, too: full members would otherwise hand it round, and orders
// would fill the disks of most members to the last byte. The error says why the last one that was
// tried could not take it. Blocks.
func (n *Node) HandOver() error {
	own := n.Status()
	if own.Role != raft.Leader.String() {
		return errNotLeader
	}
	if own.Full && !own.Damaged {
		if err := n.mostHaveRoom(); err != nil {
			return err
		}
	}
	why := errors.New("no other member has a vote")
	for _, s := range n.servers() {
		if s.ID == n.id || s.Suffrage != raft.Voter {
			continue
		}
		if err := n.sound(s); err != nil {
			why = err
			continue
		}
		hostPort, _ := hostPortOf(s.Address)
		status, err := n.ask(hostPort, question{Ask: askStatus})
		if err != nil || status.Damaged {
			why = errors.Join(fmt.Errorf("the journal of member %s is damaged, too", memberOf(s.ID)), err)
			continue
		}
		if status.Full && own.Full && !own.Damaged {
			why = fmt.Errorf("the disk of member %s is full, too", memberOf(s.ID))
			continue
		}
		return n.raft.LeadershipTransferToServer(s.ID, s.Address).Error()
	}
	return why
}

// mostHaveRoom returns errMostFull unless a majority of the voters says that its disk has room. The
// caller's own disk has none. Blocks for a question to each.
func (n *Node) mostHaveRoom() error {
	voters, room := 0, 0
	for _, s := range n.servers() {
		if s.Suffrage != raft.Voter {
			continue
		}
		if voters++; s.ID == n.id {
			continue
		}
		hostPort, _ := hostPortOf(s.Address)
		if status, err := n.ask(hostPort, question{Ask: askStatus}); err == nil && !status.Full {
			room++
		}
	}
	if 2*room <= voters {
		return errMostFull
	}
	return nil
}

var errMostFull = errors.New("the disks of most members are full, or do not answer")
