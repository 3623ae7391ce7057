package quorum

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/ring/timing"

	"github.com/hashicorp/raft"
)

// role follows the library's statements on leadership. Leading takes more than being elected: see
// lead. On a goroutine of its own, which alone turns leads on and calls OnRole.
func (n *Node) role() {
	for {
		select {
		case elected := <-n.raft.LeaderCh():
			n.follow()
			if elected {
				n.take()
			}
		case <-n.ctx.Done():
			n.follow()
			return
		}
	}
}

// follow ends this member's leadership, if it leads.
func (n *Node) follow() {
	if n.leads.Swap(false) {
		n.o.Logger.Info("cluster: this member leads no longer", "member", n.o.Member)
		n.o.OnRole(false)
	}
}

// take makes an elected member lead. A cluster without a genesis gets one. When the member has its
// host, it writes into the log that it leads; when that entry is applied, it has applied all that
// was agreed before. It blocks for the agreement, and for the host; a member that loses its
// leadership meanwhile does not lead.
//
// The steps, each of which may fail:
//
//	elected -> all earlier entries applied -> genesis -> host -> own entry applied -> Leads
func (n *Node) take() {
	err := n.raft.Barrier(0).Error()
	if err == nil {
		err = n.propose1stGenesis()
	}
	if err == nil && n.awaitHost() {
		err = n.announce()
	}
	if err != nil || n.raft.State() != raft.Leader {
		n.o.Logger.Info("cluster: elected, but not for long", "member", n.o.Member, "error", err)
		return
	}
	n.leads.Store(true)
	n.o.Logger.Info("cluster: this member leads", "member", n.o.Member, "term", n.raft.CurrentTerm())
	n.o.OnRole(true)
}

// announce writes into the log that this member leads.
func (n *Node) announce() error {
	entry, err := leaderEntry{n.author, n.o.Member, string(n.id), n.o.Services()}.append(nil)
	if err != nil {
		return err
	}
	return n.raft.Apply(entry, 0).Error()
}

// propose1stGenesis proposes a genesis if no earlier entry has agreed on one. The barrier before it
// has applied all earlier entries. A genesis that cannot be made ends the member.
func (n *Node) propose1stGenesis() error {
	select {
	case <-n.known:
		return nil
	default:
	}
	text, err := n.o.Genesis()
	if err != nil {
		n.fail(err)
		return err
	}
	return n.raft.Apply(appendGenesis(nil, text), 0).Error()
}

// The log is compacted when it has grown by compactBytes or compactEntries since the last time. Of
// the older entries keptBytes stay, for members that were away. While a member takes in the journal
// that it was sent, nothing is deleted until heldBytes have come, or the disk is full: it needs
// every entry behind the record that the journal stands for, or it is sent the whole journal again.
const (
	compactBytes   = 32 << 20
	compactEntries = 1 << 16
	keptBytes      = 64 << 20
	heldBytes      = 4 << 30
	heldLook       = time.Second // a full disk counts no entries that would wake run
	// more than one request holds: otherwise a lost answer would cost a snapshot
	leastKept = 128
)

// compactor decides when the log is compacted. The zero value is ready.
type compactor struct {
	bytes, entries atomic.Uint64 // since the last time; writer: the goroutine that applies, and run
	// The journal was sent, and it is not known yet that every member has caught up since. It is set
	// by any goroutine that sends, and cleared by run.
	sent atomic.Bool
	held atomic.Uint64 // bytes that have come since run holds the log; writer: compact
	// One place: a second signal adds nothing. wake makes it.
	nudge chan struct{}
	made  sync.Once
}

func (c *compactor) wake() chan struct{} {
	c.made.Do(func() { c.nudge = make(chan struct{}, 1) })
	return c.nudge
}

// count counts an applied entry, and wakes run when there is enough. It never waits: the goroutine
// that applies calls it.
func (c *compactor) count(bytes int) {
	entries, sum := c.entries.Add(1), c.bytes.Add(uint64(bytes))
	if entries < compactEntries && sum < compactBytes {
		return
	}
	select {
	case c.wake() <- struct{}{}:
	default: // a signal is waiting already
	}
}

// run compacts until the node is closed.
func (c *compactor) run(n *Node) func() {
	nudge := c.wake()
	return func() {
		look := time.NewTicker(heldLook)
		defer look.Stop()
		for {
			select {
			case <-look.C:
				if c.held.Load() == 0 || !n.host.Full() {
					continue
				}
			case <-nudge:
			case <-n.ctx.Done():
				return
			}
			if err := n.compact(keptBytes); err != nil && n.ctx.Err() == nil {
				n.o.Logger.Warn("cluster: the log was not compacted", "error", err)
			}
		}
	}
}

// compact is Compact, unless a member has yet to catch up behind a journal that was sent. Such a
// member is waited for once: up to heldBytes, and while the disk has room. One goroutine at a time;
// it blocks for a question to each member.
func (n *Node) compact(keep uint64) error {
	c := &n.compactor
	behind := c.sent.Swap(false) && slices.ContainsFunc(n.servers(), func(s raft.Server) bool {
		return s.ID != n.id && n.sound(s) != nil
	})
	if behind && c.held.Load()+c.bytes.Load() < heldBytes && !n.host.Full() {
		c.sent.Store(true)
		c.held.Add(c.bytes.Swap(0))
		c.entries.Store(0)
		return nil
	}
	c.held.Store(0)
	return n.Compact(keep)
}

// Compact makes the member's journal stand for the entries that it has taken in, and deletes those
// entries, except for about keep bytes that a member which was away may need. It waits until the
// journal is stable up to there. The library keeps a number of entries, so keep is divided by the
// mean size since the last time. Any goroutine.
func (n *Node) Compact(keep uint64) error {
	entries, bytes := max(n.compactor.entries.Swap(0), 1), n.compactor.bytes.Swap(0)
	kept := max(keep/max(bytes/entries, 1), leastKept)
	c := n.raft.ReloadableConfig()
	c.TrailingLogs = kept
	if err := n.raft.ReloadConfig(c); err != nil {
		return err
	}
	return n.raft.Snapshot().Error()
}

// Commits is how long entries of this member took from proposal to agreement and application.
func (n *Node) Commits() timing.Distribution { return n.commits.Distribution() }
