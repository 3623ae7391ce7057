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

// lookForMe asks the others for this disk when it has a vote and no leader is known: an old disk
// that is started again would else wait for one for ever. The goroutine of join calls it.
func (n *Node) lookForMe() {
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
	if errors.Is(err, ErrReplaced) {
		select {
		case n.replaced <- err:
		default:
		}
	}
}

// missing returns why the leader does not count this disk; nil when it does, or no leader answers.
func (n *Node) missing() error {
	for _, s := range n.askAll() {
		if s == nil || s.Role != raft.Leader.String() || len(s.Servers) == 0 ||
			slices.ContainsFunc(s.Servers, func(x Server) bool { return x.ID == string(n.id) }) {
			continue
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
	return nil
}
