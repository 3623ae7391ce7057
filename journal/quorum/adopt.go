package quorum

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// keyCurrentTerm is where the library keeps its term.
var keyCurrentTerm = []byte("CurrentTerm")

const (
	// firstTerm is the term of a cluster's beginning. No leader has it: the first one has the next.
	firstTerm = 1
	// adoptedConfiguration is where the log would hold the configuration that adopt begins with.
	adoptedConfiguration = 1
)

// begun reports that this disk takes part in a cluster, base being its newest record.
//
// The first term without an entry and without a record is what a beginning has left that was cut
// short: adopt and the library store the term first. No member has voted in it. It is taken back,
// so that the cluster can begin.
func (n *Node) begun(base snapshotRecord) (bool, error) {
	has, err := raft.HasExistingState(n.log, n.log, n.snapshots)
	if err != nil || !has {
		return false, err
	}
	term, err := n.log.GetUint64(keyCurrentTerm)
	if err != nil || term != firstTerm || base.Index > 0 || n.log.reach().last > 0 {
		return true, err
	}
	n.o.Logger.Warn("cluster: an earlier start was cut short before the cluster began", "member",
		n.o.Member)
	return false, n.log.SetUint64(keyCurrentTerm, 0)
}

// adopt begins a cluster with the journal that this member has: a single node's, or one from a
// backup. At first this member is the only one. The others of the list may join with empty disks,
// and are sent the journal.
//
// The consensus state begins behind a record that stands for the whole journal, as if entries 1 and
// 2 of term 1 had held it.
//
// ErrForeign without Options.Adopt: a journal must not become a cluster's by mistake. Open calls
// it, before the library runs.
func (n *Node) adopt() (snapshotRecord, error) {
	if n.o.Adopt == 0 {
		return snapshotRecord{}, fmt.Errorf("quorum: %w", ErrForeign)
	}
	alone := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: n.id,
		Address: addressOf(n.self.Raft, n.id)}}}
	r := snapshotRecord{
		Index: 2, Term: firstTerm, Configuration: raft.EncodeConfiguration(alone),
		ConfigurationIndex: adoptedConfiguration, Sequence: n.o.Adopt,
	}
	// The record comes last: without it the cluster has not begun, and the next start begins again
	// (begun).
	if err := n.log.SetUint64(keyCurrentTerm, r.Term); err != nil {
		return r, err
	}
	if err := n.snapshots.put(&r); err != nil {
		return r, err
	}
	n.o.Logger.Warn("cluster: begins with the journal of this member", "member", n.o.Member,
		"sequence", r.Sequence)
	return r, nil
}

// expectOthers lets the other members of the list join, while this disk alone is the cluster that
// adopt began and nothing has changed its configuration since. After the first of them has come,
// the others are known to this leader's memory alone. Open calls it, before any member can ask.
func (n *Node) expectOthers(base snapshotRecord) {
	if base.ConfigurationIndex != adoptedConfiguration || len(n.servers()) != 1 {
		return
	}
	var entry raft.Log
	for index, last := base.Index+1, n.log.reach().last; index <= last; index++ {
		if n.log.GetLog(index, &entry) != nil || entry.Type == raft.LogConfiguration {
			return
		}
	}
	for _, m := range n.o.Members {
		if m.ID != n.o.Member {
			n.admits.expect(m.ID, m.Raft)
		}
	}
}
