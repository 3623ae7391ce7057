package quorum

import (
	"bytes"
	"context"
	"errors"
	"hash/fnv"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// simNet carries the messages of simulated members. What happens to a message is
// drawn from the seed, the link, its kind and its number on that link, so that it
// does not depend on what other links carry.
type simNet struct {
	seed uint64

	mu     sync.Mutex
	ends   map[raft.ServerAddress]*simEnd
	homes  map[string]*simEnd // by host:port: the process that is there now
	counts map[simLink]uint64
	cut    map[[2]int]int        // from, to: how many faults cut this direction
	frozen map[int]chan struct{} // members that are paused; closed when they go on
	lossy  int                   // how many faults make the network lossy
	lost   uint64                // messages, for the summary
	again  uint64                // messages that came twice
}

// simLink counts messages.
type simLink struct {
	from, to int
	kind     string
}

var (
	errSimTimeout = errors.New("simulated time-out")
	errSimGone    = errors.New("simulated refused connection")
	errSimBroken  = errors.New("simulated broken stream")
)

func newSimNet(seed uint64) *simNet {
	return &simNet{
		seed: seed, ends: map[raft.ServerAddress]*simEnd{}, homes: map[string]*simEnd{},
		counts: map[simLink]uint64{}, cut: map[[2]int]int{}, frozen: map[int]chan struct{}{},
	}
}

// fate draws what happens to the next message of a link.
func (n *simNet) fate(l simLink) (delay time.Duration, lost, again bool, rng *rand.Rand) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[l]++
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(l.from), byte(l.to)})
	_, _ = h.Write([]byte(l.kind))
	rng = rand.New(rand.NewPCG(n.seed^h.Sum64(), n.counts[l]))
	delay = 100*time.Microsecond + time.Duration(rng.Int64N(int64(2*time.Millisecond)))
	if rng.IntN(50) == 0 {
		delay += time.Duration(rng.Int64N(int64(60 * time.Millisecond)))
	}
	draw := rng.IntN(100)
	lost, again = n.lossy > 0 && draw < 15, draw >= 90 && (n.lossy > 0 || draw >= 98)
	if n.cut[[2]int{l.from, l.to}] > 0 {
		lost = true
	}
	if lost {
		n.lost++
	}
	return delay, lost, again, rng
}

// pass takes a message over a link; false when it is lost.
func (n *simNet) pass(l simLink) bool {
	delay, lost, _, _ := n.fate(l)
	if lost {
		return false
	}
	pause(delay)
	n.thaw(l.from)
	n.thaw(l.to)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[[2]int{l.from, l.to}] == 0
}

// thaw waits while a member is paused.
func (n *simNet) thaw(member int) {
	for {
		n.mu.Lock()
		frozen := n.frozen[member]
		n.mu.Unlock()
		if frozen == nil {
			return
		}
		<-frozen
	}
}

// end is the process at an address, nil for none.
func (n *simNet) end(a raft.ServerAddress) *simEnd {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ends[a]
}

func (n *simNet) home(hostPort string) *simEnd {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.homes[hostPort]
}

// simEnd is one process on the network: the network of a Node and its transport.
type simEnd struct {
	net      *simNet
	member   int
	hostPort string
	address  raft.ServerAddress
	consumer chan raft.RPC
	dead     chan struct{}
	once     sync.Once

	mu        sync.Mutex
	answer    func(string, []byte) ([]byte, error)
	heartbeat func(raft.RPC)
}

var (
	_ network   = (*simEnd)(nil)
	_ transport = (*simEnd)(nil)
)

// join adds a process at a host and port.
func (n *simNet) join(member int, hostPort string) *simEnd {
	e := &simEnd{net: n, member: member, hostPort: hostPort, consumer: make(chan raft.RPC),
		dead: make(chan struct{})}
	n.mu.Lock()
	n.homes[hostPort] = e
	n.mu.Unlock()
	return e
}

// die removes the process from the network: nothing reaches it, nothing leaves it.
func (e *simEnd) die() {
	e.once.Do(func() {
		e.net.mu.Lock()
		defer e.net.mu.Unlock()
		close(e.dead)
		if e.net.homes[e.hostPort] == e {
			delete(e.net.homes, e.hostPort)
		}
		if e.net.ends[e.address] == e {
			delete(e.net.ends, e.address)
		}
	})
}

func (e *simEnd) gone() bool {
	select {
	case <-e.dead:
		return true
	default:
		return false
	}
}

// Transport implements network.
func (e *simEnd) Transport(self raft.ServerID, _ *slog.Logger) (transport, error) {
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	e.address = addressOf(e.hostPort, self)
	e.net.ends[e.address] = e
	return e, nil
}

// Answer implements network.
func (e *simEnd) Answer(f func(from string, request []byte) ([]byte, error)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

// Close implements network, and the transport.
func (e *simEnd) Close() error {
	e.die()
	return nil
}

// Ask implements network.
func (e *simEnd) Ask(ctx context.Context, hostPort string, request []byte) ([]byte, error) {
	type reply struct {
		body []byte
		err  error
	}
	done := make(chan reply, 1)
	go func() {
		peer := e.net.home(hostPort)
		if peer == nil || !e.net.pass(simLink{e.member, peer.member, "ask"}) || e.gone() || peer.gone() {
			return
		}
		peer.mu.Lock()
		f := peer.answer
		peer.mu.Unlock()
		var r reply
		if r.err = errNotYet; f != nil {
			r.body, r.err = f(e.hostPort, bytes.Clone(request))
		}
		if e.net.pass(simLink{peer.member, e.member, "answer"}) && !peer.gone() {
			done <- r
		}
	}()
	select {
	case r := <-done:
		return r.body, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-e.dead:
		return nil, errSimGone
	}
}

// simRPCTimeout is how long a call waits for its answer; the stream of a snapshot ten times that.
const simRPCTimeout = 400 * time.Millisecond

// call makes one call of the library. request copies the message each time it is called.
func (e *simEnd) call(target raft.ServerAddress, kind string, timeout time.Duration,
	request func() any, data []byte) (any, error) {
	done := make(chan raft.RPCResponse, 1)
	go e.exchange(target, kind, request, data, done)
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case r := <-done:
		return r.Response, r.Error
	case <-t.C:
		return nil, errSimTimeout
	case <-e.dead:
		return nil, errSimGone
	}
}

// exchange carries a call to the other side and its answer back. A lost message is never answered;
// a late message is still delivered.
func (e *simEnd) exchange(target raft.ServerAddress, kind string, request func() any, data []byte,
	done chan<- raft.RPCResponse) {
	hostPort, _ := hostPortOf(target)
	to := simMemberAt(hostPort)
	_, _, again, rng := e.net.fate(simLink{e.member, to, kind + " again"})
	if !e.net.pass(simLink{e.member, to, kind}) || e.gone() {
		return
	}
	peer := e.net.end(target)
	if peer == nil {
		done <- raft.RPCResponse{Error: errSimGone}
		return
	}
	if again && data == nil {
		e.net.mu.Lock()
		e.net.again++
		e.net.mu.Unlock()
		late := time.Duration(rng.Int64N(int64(80 * time.Millisecond)))
		go func() {
			pause(late)
			_, _ = peer.take(request(), nil)
		}()
	}
	r, ok := peer.take(request(), simStream(data, rng))
	if ok && e.net.pass(simLink{to, e.member, kind + " answer"}) {
		done <- r
	}
}

// simStream is a stream of data that sometimes breaks.
func simStream(data []byte, rng *rand.Rand) io.Reader {
	if data == nil {
		return nil
	}
	if rng.IntN(4) == 0 {
		return io.MultiReader(bytes.NewReader(data[:rng.IntN(len(data)+1)]), brokenReader{})
	}
	return bytes.NewReader(data)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errSimBroken }

// take hands a call to the process and waits for its answer.
func (e *simEnd) take(request any, data io.Reader) (raft.RPCResponse, bool) {
	answered := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: request, Reader: data, RespChan: answered}
	e.mu.Lock()
	heartbeat := e.heartbeat
	e.mu.Unlock()
	if a, ok := request.(*raft.AppendEntriesRequest); ok && heartbeat != nil && !e.gone() &&
		len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && a.LeaderCommitIndex == 0 {
		heartbeat(rpc)
	} else {
		select {
		case e.consumer <- rpc:
		case <-e.dead:
			return raft.RPCResponse{}, false
		}
	}
	select {
	case r := <-answered:
		return r, !e.gone()
	case <-e.dead:
		return raft.RPCResponse{}, false
	}
}

// Consumer, LocalAddr and the methods below implement the transport.
func (e *simEnd) Consumer() <-chan raft.RPC { return e.consumer }

func (e *simEnd) LocalAddr() raft.ServerAddress { return e.address }

func (e *simEnd) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

func (e *simEnd) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

func (e *simEnd) SetHeartbeatHandler(f func(raft.RPC)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heartbeat = f
}

func (e *simEnd) AppendEntriesPipeline(raft.ServerID,
	raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func (e *simEnd) AppendEntries(_ raft.ServerID, to raft.ServerAddress,
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	whole := copyAppend(args)
	r, err := e.call(to, "append", simRPCTimeout, func() any { return copyAppend(whole) }, nil)
	if err == nil {
		*resp = *r.(*raft.AppendEntriesResponse)
	}
	return err
}

// copyAppend copies all memory that two processes would otherwise share.
func copyAppend(a *raft.AppendEntriesRequest) *raft.AppendEntriesRequest {
	c := *a
	c.Entries = make([]*raft.Log, len(a.Entries))
	for i, l := range a.Entries {
		entry := *l
		entry.Data = bytes.Clone(l.Data)
		c.Entries[i] = &entry
	}
	return &c
}

func (e *simEnd) RequestVote(_ raft.ServerID, to raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse) error {
	r, err := e.call(to, "vote", simRPCTimeout, func() any { c := *args; return &c }, nil)
	if err == nil {
		*resp = *r.(*raft.RequestVoteResponse)
	}
	return err
}

func (e *simEnd) RequestPreVote(_ raft.ServerID, to raft.ServerAddress,
	args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	r, err := e.call(to, "prevote", simRPCTimeout, func() any { c := *args; return &c }, nil)
	if err == nil {
		*resp = *r.(*raft.RequestPreVoteResponse)
	}
	return err
}

func (e *simEnd) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress,
	args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	stream, err := io.ReadAll(data)
	if err != nil {
		return err
	}
	r, err := e.call(to, "snapshot", 10*simRPCTimeout, func() any { c := *args; return &c }, stream)
	if err == nil {
		*resp = *r.(*raft.InstallSnapshotResponse)
	}
	return err
}

func (e *simEnd) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse) error {
	r, err := e.call(to, "timeoutnow", simRPCTimeout, func() any { c := *args; return &c }, nil)
	if err == nil {
		*resp = *r.(*raft.TimeoutNowResponse)
	}
	return err
}
