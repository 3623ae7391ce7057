package quorum

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// leaderWatcher is a network that learns of the end of a process at once: the system closes the
// process's connections and refuses new ones. In a network without it, only silence shows that a
// leader is gone.
type leaderWatcher interface {
	// Watch returns when the connection to a server has ended, or could not be opened.
	Watch(ctx context.Context, at raft.ServerAddress)
	// Gone reports that the machine of a server answers, and that no process listens at the address.
	Gone(ctx context.Context, at raft.ServerAddress) bool
}

const (
	watchPause = 20 * time.Millisecond // how often a leader is looked for
	watchTurn  = 60 * time.Millisecond // between one member's attempt at succeeding and the next one's
)

// watchLeader starts an election as soon as the leader's process is gone, without waiting for the
// silence. Members take turns, so that they do not vote for themselves all at once. A majority's
// vote is as valid as after a silence; only the waiting is saved. A machine that answers nothing is
// not a process that is gone: then the silence counts. On a goroutine of its own.
func (n *Node) watchLeader() {
	w, ok := n.network.(leaderWatcher)
	if !ok {
		return
	}
	for n.ctx.Err() == nil {
		at, id := n.raft.LeaderWithID()
		if id != "" && id != n.id && n.learn(at, id) {
			w.Watch(n.ctx, at)
			n.succeed(w, at, id)
		}
		n.wait(watchPause)
	}
}

// learn asks the leader where its services listen, if the log has not told: a member that was sent
// a journal has not seen the entry that says it. False: not known yet.
func (n *Node) learn(at raft.ServerAddress, id raft.ServerID) bool {
	known := n.leader.Load()
	if known != nil && known.ID == string(id) {
		return true
	}
	hostPort, _ := hostPortOf(at)
	s, err := n.ask(hostPort, question{Ask: askStatus})
	if err != nil || s.Server != string(id) || s.Services == nil {
		return false
	}
	n.leader.CompareAndSwap(known, &leaderEntry{Member: s.Member, ID: s.Server, Services: s.Services})
	return true
}

// succeed makes this member stand for election in its turn, unless the leader turns out to be
// there, or another member leads by then. It sends itself the request by which a leader hands its
// leadership on.
func (n *Node) succeed(w leaderWatcher, at raft.ServerAddress, id raft.ServerID) {
	turn, ok := n.turnAfter(id)
	if !ok {
		return
	}
	n.wait(time.Duration(turn) * watchTurn)
	if _, now := n.raft.LeaderWithID(); n.ctx.Err() != nil || now != id || !w.Gone(n.ctx, at) {
		return
	}
	n.o.Logger.Info("cluster: the leader's process is gone", "member", n.o.Member,
		"leader", memberOf(id))
	request := raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
	}
	if err := n.transport.TimeoutNow(n.id, addressOf(n.self.Raft, n.id), &request,
		&raft.TimeoutNowResponse{}); err != nil {
		n.o.Logger.Warn("cluster: no election was started", "member", n.o.Member, "error", err)
	}
}

// turnAfter is this member's place among the members that can succeed a leader, from 0, in the
// order of the configuration, which all members share. It is false if it cannot.
func (n *Node) turnAfter(leader raft.ServerID) (turn int, ok bool) {
	voters := slices.DeleteFunc(n.servers(),
		func(s raft.Server) bool { return s.Suffrage != raft.Voter || s.ID == leader })
	turn = slices.IndexFunc(voters, func(s raft.Server) bool { return s.ID == n.id })
	return turn, turn >= 0
}

// wait waits for some time, or until the node ends.
func (n *Node) wait(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.ctx.Done():
	}
}

// Watch opens a stream and waits for its end, at most until ctx ends.
func (t *tcp) Watch(ctx context.Context, at raft.ServerAddress) {
	c, err := t.wire.Dial(at, rpcTimeout)
	if err != nil {
		return
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var b [1]byte
	_, _ = c.Read(b[:]) // nothing is ever sent on it
}

// Gone dials once more: a process that is there accepts. Only a refused connection counts; a
// timeout may be the network's.
func (t *tcp) Gone(ctx context.Context, at raft.ServerAddress) bool {
	hostPort, _ := hostPortOf(at)
	c, err := t.wire.dial(ctx, hostPort)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
