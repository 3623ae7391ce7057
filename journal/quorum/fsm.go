package quorum

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"posttrade/matcher"
)

// IDs are the client ids of commands, ascending. The zero value has none. It is a cursor: Next uses
// it up.
type IDs struct {
	raw  []byte
	at   int // offset that the next distance counts from
	from int // offset of the first command
}

// Next removes the first id and returns it, with the place of its command among those of the call.
// Ids of commands that were left out are passed over. The id is a part of the entry's memory, which
// no later call changes.
func (d *IDs) Next() (i int, id []byte, ok bool) {
	for len(d.raw) > 0 {
		var distance int
		distance, id, d.raw = nextID(d.raw)
		if d.at += distance; d.at >= d.from {
			return d.at - d.from, id, true
		}
	}
	return 0, nil, false
}

// fsm is the library's view of this member: what entries are applied to. The
// library calls it on one goroutine, except for Persist.
type fsm struct {
	n     *Node
	queue applyQueue
	// The sequence of the last command of the entries so far. Every member counts the same, because
	// every member applies the same entries.
	sequence uint64
	// last command that the journal had when the host was attached: it is not applied again
	head uint64
	past decided // what the journal has of the commands that are not applied again
	// a received journal waits to be installed, or an entry has failed: no later entry is applied
	replaced bool
}

// Apply implements the library's interface. It waits until the entry is on this member's own disk,
// and for room in the engine's ring. An entry that cannot be read ends the member: to pass it over
// would make it differ from the others.
func (f *fsm) Apply(l *raft.Log) any {
	if f.ended() {
		return nil
	}
	err := f.n.log.AwaitSynced(l.Index)
	if err == nil {
		err = f.apply(l)
	}
	if err != nil {
		f.replaced = true // nothing after it may be applied
		f.n.fail(fmt.Errorf("quorum: entry index=%d: %w", l.Index, err))
	}
	return nil
}

// ended reports that entries are passed over: the state stands still, and the library's index goes
// on. It stays true once it is.
func (f *fsm) ended() bool { return f.replaced || f.n.ctx.Err() != nil }

// apply takes one entry, tells uncertainEntries of it and counts it for the compactor.
func (f *fsm) apply(l *raft.Log) error {
	kind, err := kindOf(l.Data)
	if err != nil {
		return err
	}
	var own uint64
	switch kind {
	case entryGenesis:
		f.n.agree(l.Data[2:])
	case entryLead:
		who, err := decodeLeaderEntry(l.Data)
		if err != nil {
			return err
		}
		f.flush() // the leader has handed over everything
		f.n.leader.Store(&who)
	case entryCommands:
		e, err := decodeCommands(l.Data)
		if err != nil {
			return err
		}
		if e.author == f.n.author {
			own = e.number
		}
		if taken, err := f.commands(&e, l, own != 0); !taken {
			return err
		}
	default:
		return fmt.Errorf("kind=%d, this member does not know it, upgrade it: %w", kind, ErrEntry)
	}
	if dead := f.n.uncertain.applied(own, l.Index, l.Term); dead != nil {
		f.n.refuse(dead)
	}
	f.n.compactor.count(len(l.Data))
	return nil
}

// commands hands agreed commands to the host, without those that its journal has already. It gives
// those of the matcher the entry's term as their leader epoch, which every member sets alike. It
// returns false when the node is closed before there is a host. ErrOtherCommands.
func (f *fsm) commands(e *commandsEntry, l *raft.Log, own bool) (taken bool, err error) {
	if !f.n.awaitHost() {
		return false, nil
	}
	first := f.sequence + 1
	f.sequence += uint64(e.count)
	skip := 0
	if f.head >= first {
		skip = int(min(f.head-first+1, uint64(e.count)))
		if err := f.past.compare(f, first, e.commands[:skip], l.Term); err != nil {
			return false, err
		}
	}
	commands := e.commands[skip:]
	if len(commands) == 0 { // the journal has them all
		return true, nil
	}
	for i := range commands {
		c := &commands[i]
		if !own {
			c.InputSeq = 0 // no caller waits here
		}
		if c.TemplateID == matcher.TemplateCommand {
			c.LeaderEpoch = uint32(l.Term)
		}
	}
	p := part{first + uint64(skip), commands, IDs{raw: e.ids, from: skip}}
	if own {
		f.hand(p)
	} else {
		f.hold(p)
	}
	return true, nil
}

var (
	// No record can be made of a state that another has replaced.
	errReplaced = errors.New("quorum: a received journal waits to be installed")
	// No record can be made of a state that lacks entries which the library counts as applied.
	errEnded = errors.New("quorum: entries are applied no longer")
)

// Snapshot implements the library's interface: it notes a number. What it stands for is written by
// Persist.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.ended() {
		return nil, errEnded
	}
	return &fsmSnapshot{n: f.n, sequence: f.sequence}, nil
}

// Restore implements the library's interface. The library calls it when the leader has sent a
// snapshot. If a journal came with it, the next start installs that journal. If this member had
// everything already, Restore only resets the count of entries: the library applies the entries
// since then once more.
func (f *fsm) Restore(r io.ReadCloser) error {
	defer r.Close()
	header := make([]byte, snapshotHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return err
	}
	sequence, err := readHeader(header)
	if err != nil || f.replaced {
		return err
	}
	f.flush()
	if f.n.snapshots.received.Load() == nil {
		f.head, f.sequence = max(f.head, f.sequence), sequence
		return nil
	}
	f.replaced = true
	f.n.workers.Go(f.n.askForRestart)
	return nil
}

// fsmSnapshot is how far the entries were applied.
type fsmSnapshot struct {
	n        *Node
	sequence uint64
}

// Persist writes the record. The sink keeps it only when the journal has everything that the record
// stands for: the library deletes those entries next. It blocks for the journal, on another
// goroutine than Apply.
func (s *fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write(appendHeader(nil, s.sequence)); err != nil {
		return err
	}
	return sink.Close()
}

// Release implements the library's interface. There is nothing to free.
func (s *fsmSnapshot) Release() {}
