package quorum

import "github.com/hashicorp/raft"

// logBase is the last entry that the newest snapshot stands for.
//
// The log answers for that entry as if it held it. The library (v1.8.0) compares a leader's entries
// with the entry before them, and looks for that entry in the log alone when the log continues
// behind the snapshot. A member that has the snapshot and what follows, but not the one entry
// between, would be sent the snapshot again, for ever.
//
// The base is never sent to a member as an entry: a leader first looks for the entry before it and
// does not find that. Entry 1 has none before it, so it is never a base.
type logBase struct{ index, term uint64 }

// Base sets the newest snapshot. Any goroutine.
func (s *logStore) Base(index, term uint64) {
	if index > 1 {
		s.base.Store(&logBase{index, term})
	}
}

// continued keeps what follows a snapshot. After a snapshot from the leader the library deletes the
// whole log. But if the log has the snapshot's own entry, the entries behind it continue it, and
// this member may have been counted in the majority that agreed on them. continued returns the last
// index to delete.
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

// endTerm is the term of the last entry, also when only a snapshot stands for it; 0 for an empty
// log.
func (s *logStore) endTerm() uint64 {
	span := s.reach()
	if b := s.base.Load(); b != nil && b.index >= span.last {
		return b.term
	}
	return span.lastTerm
}
