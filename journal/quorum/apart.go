package quorum

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// Why a disk that takes itself for a member is none. The leader's streams and votes go to the disks
// that it knows, so such a disk hears nothing of it.
var (
	// ErrReplaced: the cluster counts another disk of this member.
	ErrReplaced = errors.New("the cluster has replaced this disk")
	// ErrRemoved: the cluster counts no disk of this member.
	ErrRemoved = errors.New("the cluster has removed this member")
)

// Replaced gets ErrReplaced when the leader says that this disk is out of the cluster for good. The
// caller then closes everything, and the operator empties the disk or stops the member. Agreed
// returns that error, too.
func (n *Node) Replaced() <-chan error { return n.replaced }

// Apart is ErrReplaced or ErrRemoved when the leader does not count this disk, as far as this
// member knows; nil otherwise. Any goroutine.
func (n *Node) Apart() error {
	if err := n.apart.Load(); err != nil {
		return *err
	}
	return nil
}

// lookForMe asks the others for this disk when no leader is known: an old disk that is started
// again would else wait for one for ever. It reports that the cluster has replaced this disk. The
// goroutine of join calls it, for a disk that has a vote or is out.
func (n *Node) lookForMe() (replaced bool) {
	var err error
	if _, leader := n.raft.LeaderWithID(); leader == "" {
		err = n.missing()
	}
	before := n.Apart()
	n.apart.Store(&err)
	if err != nil && !errors.Is(before, errors.Unwrap(err)) {
		n.o.Logger.Error("cluster: this disk is not part of it any more", "member", n.o.Member,
			"because", err)
	}
	replaced = errors.Is(err, ErrReplaced)
	if replaced {
		select {
		case n.replaced <- err:
		default:
		}
	}
	return replaced
}

// missing returns why the leader does not count this disk; nil when it does, or no leader answers.
// A member that was suspended may still take itself for the leader, so the newest term counts.
func (n *Node) missing() error {
	var s *Status
	for _, one := range n.askOthers() {
		if one != nil && one.Role == raft.Leader.String() && len(one.Servers) > 0 &&
			(s == nil || one.Term > s.Term) {
			s = one
		}
	}
	if s == nil ||
		slices.ContainsFunc(s.Servers, func(x Server) bool { return x.ID == string(n.id) }) {
		return nil
	}
	for _, x := range s.Servers {
		if x.Member == n.o.Member {
			return fmt.Errorf("member %s counts the disk %s at %s for member %s, and this one is %s: "+
				"%w; stop the other process, empty this data.dir and start this one as a new disk, or "+
				"keep it stopped", s.Member, x.ID, x.Address, n.o.Member, n.id, ErrReplaced)
		}
	}
	return fmt.Errorf("member %s counts no disk of member %s: %w; to bring it back, `posttrade "+
		"cluster add` it and start it with an empty data.dir", s.Member, n.o.Member, ErrRemoved)
}
