package quorum

import "github.com/hashicorp/raft"

// logBase is the last entry that the newest snapshot stands for.
//
// The log answers for it as if it held it. The library (v1.8.0) compares a leader's
// entries with the entry before them, and looks for that in the log alone when the
// log goes on behind the snapshot: a member that has the snapshot and what follows,
// and not the one entry between, would be sent the snapshot again, for ever.
//
// Nobody is ever sent the base as an entry: a leader looks for the entry before it
// first, and does not find that. Entry 1 has none before it, so it is never a base.
type logBase struct{ index, term uint64 }

// Base notes the newest snapshot. Any goroutine.
func (s *logStore) Base(index, term uint64) {
	if index > 1 {
		s.base.Store(&logBase{index, term})
	}
}

// continued keeps what follows a snapshot. After taking one in from the leader the
// library deletes the whole log; but where the log has the snapshot's own entry, what
// comes behind it continues it, and this member may have been counted in the majority
// that agreed on it. It returns the last index to delete.
func (s *logStore) continued(lo, hi uint64) uint64 {
	b := s.base.Load()
	if b == nil || lo > b.index || hi <= b.index {
		return hi
	}
	var l raft.Log
	if s.reach().holds(b.index) && s.lookup(b.index, &l) == nil && l.Term == b.term {
		return b.index
	}
	return hi
}
