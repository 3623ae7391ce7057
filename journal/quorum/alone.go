package quorum

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
)

var (
	// ErrNoPart: a disk has never taken part in a cluster.
	ErrNoPart = errors.New("this disk has never taken part in a cluster")
	// ErrNoVote: a disk that counts in no majority may lack what the others have acknowledged.
	ErrNoVote = errors.New("this disk has no vote, so its log may end before what was acknowledged")
)

// Alone makes the disk of a stopped member, whose consensus state is in dir, the only one of its
// cluster: its next start leads by itself, and decides all that its log has. It is for the last
// disk, when those of a majority are lost: an entry that a majority had stored may have been
// acknowledged, and this member alone knows of it. What was not acknowledged stays too.
//
// agree is asked before anything changes, with the newest configuration that the log has; its error
// ends the call. The change is one entry at the end of the log, a configuration in a term that no
// other disk has seen, and then the disk's id, which is drawn anew: streams to the old one, as of a
// disk that was not lost after all, are refused. Cut short between the two, it is repeated. server
// is the new id, last the entry before which nothing has changed. ErrNoPart, ErrOtherMember,
// ErrNoVote, and the errors of the log.
func Alone(dir string, self Member, agree func([]Server) error) (server string, last LastEntry,
	err error) {
	fs := vfs.Default
	id, _, err := readIdentity(fs, dir)
	switch {
	case oserror.IsNotExist(err):
		return "", last, fmt.Errorf("quorum: dir=%s: %w", dir, ErrNoPart)
	case err != nil:
		return "", last, err
	case memberOf(raft.ServerID(id)) != self.ID:
		return "", last, fmt.Errorf("quorum: dir=%s: %w", dir, ErrOtherMember)
	}
	base, err := (&snapshotStore{fs: fs, dir: fs.PathJoin(dir, "snapshots")}).newest()
	if err != nil {
		return "", last, err
	}
	log, err := openLogStore(fs.PathJoin(dir, "log"), logStoreOptions{FS: fs})
	if err != nil {
		return "", last, err
	}
	next := newServerID(self.ID)
	last, err = log.endAlone(base, raft.ServerID(id), raft.Server{Suffrage: raft.Voter, ID: next,
		Address: addressOf(self.Raft, next)}, agree)
	if err = errors.Join(err, log.Close()); err != nil {
		return "", last, err
	}
	return string(next), last, journal.ReplaceFile(fs, dir, identityName, identityText(next))
}

// LastEntry is where a log ends. Of two logs the one with the higher term has what was
// acknowledged; of the same term, the longer one.
type LastEntry struct{ Index, Term uint64 }

// newServerID draws the id of a member's disk.
func newServerID(member string) raft.ServerID {
	return raft.ServerID(member + "." + hex.EncodeToString(randomBytes(8)))
}

// endAlone appends the configuration of one server to a log that continues behind base, unless the
// disk, whose id is old, has no vote. It returns where the log ended before.
func (s *logStore) endAlone(base snapshotRecord, old raft.ServerID, one raft.Server,
	agree func([]Server) error) (last LastEntry, err error) {
	span := s.reach()
	last = LastEntry{span.last, span.lastTerm}
	if base.Index >= span.last {
		last = LastEntry{base.Index, base.Term}
	}
	if last.Index == 0 {
		return last, fmt.Errorf("quorum: dir=%s: %w", s.dir, ErrNoPart)
	}
	servers, err := s.newestServers(base, span)
	if err != nil {
		return last, err
	}
	begun := len(servers) == 1 && memberOf(servers[0].ID) == memberOf(one.ID)
	if !begun && !slices.ContainsFunc(servers, func(v raft.Server) bool {
		return v.ID == old && v.Suffrage == raft.Voter
	}) {
		return last, fmt.Errorf("quorum: dir=%s server=%s: %w", s.dir, old, ErrNoVote)
	}
	list := make([]Server, 0, len(servers))
	for _, server := range servers {
		list = append(list, *lineOf(server))
	}
	if err := agree(list); err != nil {
		return last, err
	}
	term, err := s.GetUint64(keyCurrentTerm)
	if err != nil {
		return last, err
	}
	// A member stores a term before anything of it, so no entry of the next one is anywhere.
	term = max(term, last.Term) + 1
	if err := s.SetUint64(keyCurrentTerm, term); err != nil {
		return last, err
	}
	return last, s.StoreLog(&raft.Log{Index: last.Index + 1, Term: term, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{one}})})
}

// newestServers is the newest configuration of a log that continues behind base.
func (s *logStore) newestServers(base snapshotRecord, span logSpan) ([]raft.Server, error) {
	var entry raft.Log
	for index := span.last; index > base.Index && span.holds(index); index-- {
		if err := s.GetLog(index, &entry); err != nil {
			return nil, err
		}
		if entry.Type == raft.LogConfiguration {
			return raft.DecodeConfiguration(entry.Data).Servers, nil
		}
	}
	if base.Index == 0 {
		return nil, nil
	}
	return raft.DecodeConfiguration(base.Configuration).Servers, nil
}
