package engine

import (
	"context"
	"io"
	"sync"
	"time"

	"posttrade/journal"
	"posttrade/journal/quorum"
	"posttrade/matcher"
	"posttrade/matcher/desk"
)

// ClusterHost is this member's engine as the consensus sees it. Agreed commands go into the input
// ring, where on a single node the desk's commands go.
type ClusterHost struct{ *Engine }

// foreign carries the client ids of commands that other members have proposed, from the goroutine
// that hands the commands to the matcher, to the recorder.
type foreign struct {
	mu  sync.Mutex
	ids [][]byte // in the order of their commands; each is the log entry's own memory
}

func (f *foreign) push(id []byte) {
	f.mu.Lock()
	f.ids = append(f.ids, id)
	f.mu.Unlock()
}

func (f *foreign) pop() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.ids[0]
	if f.ids = f.ids[1:]; len(f.ids) == 0 {
		f.ids = nil // drops the array, which a burst may have made large
	}
	return id
}

// Head is the last command in the journal.
func (h ClusterHost) Head() uint64 {
	inputSeq, _ := h.Journal.Head()
	return inputSeq
}

// ringPause is how long Apply waits before it looks again for room in the ring.
const ringPause = 20 * time.Microsecond

// Apply hands agreed commands to the matcher, and decides a few of them itself. No caller of this
// process waits for a command that another member has proposed. Such a command with a client id
// carries a mark, so that the recorder asks for the id.
func (h ClusterHost) Apply(first uint64, commands []matcher.Command, ids quorum.IDs) {
	h.Markers.Pass(first, commands)
	if len(commands) > 0 {
		defer h.Handed.Store(first + uint64(len(commands)) - 1)
	}
	for i, id, ok := ids.Next(); ok; i, id, ok = ids.Next() {
		if commands[i].InputSeq == 0 {
			commands[i].InputSeq = desk.Foreign
			h.foreign.push(id)
		}
	}
	for len(commands) > 0 {
		n := min(len(commands), h.In.Cap()/2)
		lo, ok := h.In.ClaimN(n)
		if !ok {
			time.Sleep(ringPause)
			continue
		}
		for i := range n {
			*h.In.At(lo + int64(i)) = commands[i]
		}
		if n <= matcher.DriveAtMost {
			h.In.PublishQuietly(lo, n)
			h.Stage.Drive()
		} else {
			h.In.Publish(lo, n)
		}
		commands = commands[n:]
	}
}

// Refuse, ClientID and Size call the desk.
func (h ClusterHost) Refuse(ref uint64)          { h.Desk.Refuse(ref); h.wakeSessions() }
func (h ClusterHost) ClientID(ref uint64) []byte { return h.Desk.ClientID(ref) }
func (h ClusterHost) Size(ref uint64) int        { return h.Desk.Size(ref) }

// WaitStable returns when a sequence of the journal is on stable storage.
func (h ClusterHost) WaitStable(ctx context.Context, sequence uint64) error {
	return h.Journal.WaitStable(ctx, sequence)
}

// Transfer is the whole journal, for a member that needs it.
func (h ClusterHost) Transfer() (quorum.Transfer, error) { return h.Journal.Transfer() }

// JournalStorage says where a journal from the leader is stored.
type JournalStorage struct {
	Dir, Incoming string
	Fatal         func(error)
}

// Receive writes a journal beside this member's own journal.
func (s JournalStorage) Receive(r io.Reader) error {
	_, err := journal.Receive(s.Incoming, r, journal.Options{Fatal: s.Fatal})
	return err
}

// Install puts the received journal in the place of this member's own.
func (s JournalStorage) Install() error { return journal.Replace(s.Dir, s.Incoming, nil) }
