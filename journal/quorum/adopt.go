package quorum

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// keyCurrentTerm is where the library keeps its term.
var keyCurrentTerm = []byte("CurrentTerm")

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
		Index: 2, Term: 1, Configuration: raft.EncodeConfiguration(alone), ConfigurationIndex: 1,
		Sequence: n.o.Adopt,
	}
	// The record comes last: without it the cluster has not begun, and the next start begins again.
	if err := n.log.SetUint64(keyCurrentTerm, r.Term); err != nil {
		return r, err
	}
	if err := n.snapshots.put(&r); err != nil {
		return r, err
	}
	n.admits.expected = n.o.others()
	n.o.Logger.Warn("cluster: begins with the journal of this member", "member", n.o.Member,
		"sequence", r.Sequence)
	return r, nil
}

// others are the addresses of the other members, by their ids.
func (o *Options) others() map[string]string {
	all := map[string]string{}
	for _, m := range o.Members {
		if m.ID != o.Member {
			all[m.ID] = m.Raft
		}
	}
	return all
}
