package quorum

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
)

// ErrNoPart: a disk has never taken part in a cluster.
var ErrNoPart = errors.New("this disk has never taken part in a cluster")

// Alone makes the disk of a stopped member, whose consensus state is in dir, the only one of its
// cluster: its next start leads by itself, and decides all that its log has. It is for the last
// disk, when those of a majority are lost: an entry that a majority had stored may have been
// acknowledged, and this member alone knows of it. What was not acknowledged stays too.
//
// The change is one entry at the end of the log, the configuration, in a term that no other disk
// has seen: either it is there or nothing has changed. server is the disk's id, last the index of
// that entry. A disk that has been lost only seemingly must never start again: it would go on with
// a history of its own. ErrNoPart, ErrOtherMember, and the errors of the log.
func Alone(dir string, self Member) (server string, last uint64, err error) {
	id, _, err := readIdentity(vfs.Default, dir)
	switch {
	case oserror.IsNotExist(err):
		return "", 0, fmt.Errorf("quorum: dir=%s: %w", dir, ErrNoPart)
	case err != nil:
		return "", 0, err
	case memberOf(raft.ServerID(id)) != self.ID:
		return "", 0, fmt.Errorf("quorum: dir=%s: %w", dir, ErrOtherMember)
	}
	fs := vfs.Default
	base, err := (&snapshotStore{fs: fs, dir: fs.PathJoin(dir, "snapshots")}).newest()
	if err != nil {
		return "", 0, err
	}
	log, err := openLogStore(fs.PathJoin(dir, "log"), logStoreOptions{FS: fs})
	if err != nil {
		return "", 0, err
	}
	last, err = log.endAlone(base, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id),
		Address: addressOf(self.Raft, raft.ServerID(id))})
	return id, last, errors.Join(err, log.Close())
}

// endAlone appends the configuration of one server to a log that continues behind base.
func (s *logStore) endAlone(base snapshotRecord, one raft.Server) (last uint64, err error) {
	span := s.reach()
	last = max(base.Index, span.last)
	if last == 0 {
		return 0, fmt.Errorf("quorum: dir=%s: %w", s.dir, ErrNoPart)
	}
	term, err := s.GetUint64(keyCurrentTerm)
	if err != nil {
		return 0, err
	}
	// A member stores a term before anything of it, so no entry of the next one is anywhere.
	term = max(term, base.Term, span.lastTerm) + 1
	if err := s.SetUint64(keyCurrentTerm, term); err != nil {
		return 0, err
	}
	last++
	return last, s.StoreLog(&raft.Log{Index: last, Term: term, Type: raft.LogConfiguration,
		Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{one}})})
}
