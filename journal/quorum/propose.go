package quorum

import (
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/hashicorp/raft"

	"posttrade/matcher"
	"posttrade/ring"
)

// maxInFlight is how many entries may be under way: enough to keep the log busy while one is
// synced, few enough that a full pipeline shows as a full ring. It bounds what a leader that loses
// its place leaves uncertain.
const maxInFlight = 64

// pending is an entry under way: the library has it, and has not said yet what has become of it.
type pending struct {
	// As in the entry; ascending from 1 in this process.
	number uint64
	refs   []uint64 // the first of each submission
	future raft.ApplyFuture
	// When its commands were taken off the ring.
	begun time.Time
}

// propose puts what the callers hand in into the log, until the node is closed and nothing is left.
// It refuses what comes while this member does not lead.
//
// An entry holds what has come meanwhile, up to maxCommands. Slots go back once their commands have
// been copied into the entry. With maxInFlight entries under way it waits, the ring fills, and the
// desk says so to its callers. On a goroutine of its own; the reaper ends with it.
func (n *Node) propose() {
	flight := make(chan pending, maxInFlight)
	var reaper sync.WaitGroup
	reaper.Go(func() { n.reap(flight) })
	defer reaper.Wait()
	defer close(flight)
	idler := ring.NewIdler(n.o.Idle, n.proposals.Waiter())
	number := uint64(0)
	for {
		lo, hi := n.proposals.Ready(maxCommands)
		if lo == hi {
			if n.stopping.Load() && n.ctx.Err() != nil && n.proposals.Empty() {
				return
			}
			idler.Idle(n.proposals)
			continue
		}
		idler.Reset()
		p, end := n.gather(lo, hi)
		if end == lo {
			continue // the rest of the first submission is about to be published
		}
		if n.leads.Load() {
			number++
			p.number = number
			n.put(&p, lo, end)
			n.proposals.Release(end)
			flight <- p
			continue
		}
		for _, ref := range p.refs {
			n.host.Refuse(ref)
		}
		n.proposals.Release(end)
	}
}

// gather takes whole submissions from the ring: an entry holds each submission entirely or not at
// all, so that it is agreed or refused as a whole. end is behind the last one; lo when even the
// first is not there in full.
func (n *Node) gather(lo, hi int64) (p pending, end int64) {
	for end = lo; end < hi; {
		ref := n.proposals.At(end).InputSeq
		size := int64(max(n.host.Size(ref), 1))
		if end+size > hi {
			break
		}
		p.refs = append(p.refs, ref)
		end += size
	}
	return p, end
}

// put proposes the commands of the slots [lo, hi), which may wrap around the ring's end. They are
// copied before it returns; it does not wait for the agreement.
func (n *Node) put(p *pending, lo, hi int64) {
	p.begun = time.Now()
	size := int64(n.proposals.Cap())
	turn := min(hi, (lo/size+1)*size)
	first := unsafe.Slice(n.proposals.At(lo), int(turn-lo))
	var second []matcher.Command
	if turn < hi {
		second = unsafe.Slice(n.proposals.At(turn), int(hi-turn))
	}
	p.future = n.raft.Apply(appendCommands(nil, n.author, p.number, first, second, n.host.ClientID), 0)
}

// reap waits for the entries under way, in order. A success needs no word to the submitters: they
// are answered when the commands have been decided. An entry that was never in the log is refused;
// one that was, and is not known to be agreed, is one of the uncertain entries.
func (n *Node) reap(flight <-chan pending) {
	for p := range flight {
		err := p.future.Error()
		switch {
		case err == nil:
			n.commits.Record(int64(time.Since(p.begun)))
		case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress),
			p.future.Index() == 0:
			n.refuse(p.refs) // it was never in the log
		default:
			n.refuse(n.uncertain.add(uncertainEntry{p.number, p.future.Index(), n.raft.CurrentTerm(),
				p.refs}))
		}
	}
}

// refuse tells the submitters. It is called only for what certainly never will be agreed.
func (n *Node) refuse(refs []uint64) {
	for _, ref := range refs {
		n.host.Refuse(ref)
	}
}
