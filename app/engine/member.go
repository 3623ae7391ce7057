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
//
// It implements quorum.Host. Apply is called by the goroutine that applies the agreed log, one
// call at a time; the other methods by any goroutine of the node.
type ClusterHost struct{ *Engine }

// foreign carries the client ids of commands that other members have proposed, from the goroutine
// that hands the commands to the matcher, to the recorder.
//
// A queue without keys is enough: ids are pushed in the order of the agreed log, the matcher
// decides in that order, and the recorder asks in the order of the events.
type foreign struct {
	mu  sync.Mutex
	ids [][]byte // in the order of their commands; each is the log entry's own memory
}

func (f *foreign) push(id []byte) {
	f.mu.Lock()
	f.ids = append(f.ids, id)
	f.mu.Unlock()
}

// pop takes the oldest id. A pop without a push is a bug in the marks of Apply, and it panics. The
// journal would otherwise give a client id to the wrong command.
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
//
// The node asks for it before it hands over the first command: the agreed log goes on behind it.
func (h ClusterHost) Head() uint64 {
	inputSeq, _ := h.Journal.Head()
	return inputSeq
}

// ringPause is how long Apply waits before it looks again for room in the ring. A spin could take
// the CPU core that the matcher needs to make that room.
const ringPause = 20 * time.Microsecond

// Apply hands agreed commands to the matcher, and decides a few of them itself. No caller of this
// process waits for a command that another member has proposed. Such a command with a client id
// carries a mark, so that the recorder asks for the id.
//
// first is the sequence that the matcher will give to commands[0]; commands must be in the order
// of the log, without a gap. ids are the client ids of some of them, ascending by index. commands
// is changed in place and may be used again after the call; the ids must stay as they are until
// their commands are durable.
//
// Apply blocks while the input ring is full, so a slow disk of this member slows how fast it takes
// agreed commands, and never the agreement of the others. Batches of more than half a ring are
// cut, because a claim of the whole ring could wait until it is empty. A few commands are
// published without a wake and decided on this goroutine: for them a wake-up of the matcher costs
// more than the work.
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

// Decided reads commands of the journal.
func (h ClusterHost) Decided(ctx context.Context, from, to uint64,
	use func([]matcher.Command) error) error {
	return h.Journal.Commands(ctx, from, to, use)
}

// Refuse, ClientID and Size call the desk.
//
// Refuse also wakes the sessions: their answers are no events that would do it.
func (h ClusterHost) Refuse(ref uint64)          { h.Desk.Refuse(ref); h.wakeSessions() }
func (h ClusterHost) ClientID(ref uint64) []byte { return h.Desk.ClientID(ref) }
func (h ClusterHost) Size(ref uint64) int        { return h.Desk.Size(ref) }

// Full reports that the journal's reserve is used up.
func (h ClusterHost) Full() bool { return h.Journal.StorageFull() }

// WaitStable returns when a sequence of the journal is on stable storage.
//
// The node cuts its log only behind such a sequence: until then the log is the only stable copy
// that this member has. Errors are those of journal.WaitStable.
func (h ClusterHost) WaitStable(ctx context.Context, sequence uint64) error {
	return h.Journal.WaitStable(ctx, sequence)
}

// WaitDecided returns when the answer of a sequence may leave, so the views show it.
//
// Errors are those of WaitDurable; the end of ctx is errNotDurable.
func (h ClusterHost) WaitDecided(ctx context.Context, sequence uint64) error {
	return h.Watermark.wait(ctx, sequence)
}

// Transfer is the whole journal, for a member that needs it.
//
// The journal stays in use meanwhile; the stream ends at the head of the call. The caller closes
// it.
func (h ClusterHost) Transfer() (quorum.Transfer, error) { return h.Journal.Transfer() }

// TransferSize is about the size of a Transfer, in bytes.
//
// It is journal.ErrArchived when a part of the history cannot be read here, so none can be made.
func (h ClusterHost) TransferSize() (uint64, error) { return h.Journal.TransferSize() }

// JournalStorage says where a journal from the leader is stored.
//
// It implements quorum.Storage and is used while no engine is open.
type JournalStorage struct {
	// The folder of the journal, and the one beside it that receives. Both are on one file system,
	// because Install exchanges them by name.
	Dir, Incoming string
	// Gets a failure of the disk during Receive, as Options.Fatal does.
	Fatal func(error)
}

// Receive writes a journal beside this member's own journal.
//
// r ends where the stream does. When Receive returns nil, the received journal is whole and on
// stable storage; what a crash has cut short is marked as unfinished, and the next Receive begins
// again. The member's own journal is not touched.
func (s JournalStorage) Receive(r io.Reader) error {
	_, err := journal.Receive(s.Incoming, r, journal.Options{Fatal: s.Fatal})
	return err
}

// Install puts the received journal in the place of this member's own.
//
// Every start calls it, so that an exchange that a crash cut short is completed. It does nothing
// when nothing whole has been received. Errors are those of journal.Replace.
func (s JournalStorage) Install() error { return journal.Replace(s.Dir, s.Incoming, nil) }
