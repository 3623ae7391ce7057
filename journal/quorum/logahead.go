package quorum

import (
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// A leader's commands are sent to the others while its own disk syncs them. The library stores
// first and sends afterwards, which would make every agreement wait for two syncs in a row. And it
// counts the leader among the members that have an entry as soon as StoreLogs returns. So what it
// calls committed may be missing on the leader's own disk, and must have no effect until it is
// there:
//
//   - the state machine waits (AwaitSynced) before it applies an entry,
//   - the others are told of no commit behind what is on disk (memberTransport).
//
// With both rules an entry counts when a majority has it on disk, as without storing ahead. A
// leader that loses power has a shorter log afterwards, and has told no other member that it had
// more.
//
// Only commands are stored ahead: an entry of another kind waits for everything before it. A member
// that does not lead any more also waits, before it looks at an entry (settled): the library
// confirms to a new leader what the log holds already, without storing it again.
const (
	// what is not on disk is read from the tail, which must hold it
	aheadEntries = logTailEntries / 2
	aheadBytes   = logTailBytes / 4
)

// logAhead is what the log holds and its disk does not have yet.
type logAhead struct {
	leads atomic.Pointer[func() bool] // whether this member does; nil = never

	mu      sync.Mutex
	changed *sync.Cond // of any field below
	// Entries that wait to be synced, in order.
	pending []*raft.Log
	bytes   int     // of pending and of what is being synced
	entries int     // likewise
	want    logSpan // the log with pending
	onDisk  logSpan // the log as it is on disk
	// The first failure of a sync: every wait ends with it.
	failed error
	closed bool
}

func (a *logAhead) open(span logSpan) {
	a.changed = sync.NewCond(&a.mu)
	a.onDisk = span
}

// close ends the goroutine that syncs when nothing is left to do.
func (a *logAhead) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.changed.Broadcast()
}

// synced is the log as it is on disk.
func (a *logAhead) synced() logSpan {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.onDisk
}

// reach records that the log is on disk as far as span.
func (a *logAhead) reach(span logSpan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onDisk = span
	a.changed.Broadcast()
}

// drain waits until everything is on disk, or returns the failure because of which it never will
// be.
func (a *logAhead) drain() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.entries > 0 && a.failed == nil {
		a.changed.Wait()
	}
	return a.failed
}

// add queues entries to be synced, after those before; it waits for room.
func (a *logAhead) add(logs []*raft.Log, bytes int, span logSpan) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.failed == nil && a.entries > 0 && (a.entries+len(logs) > aheadEntries ||
		a.bytes+bytes > aheadBytes) {
		a.changed.Wait()
	}
	if a.failed != nil {
		return a.failed
	}
	a.pending = append(a.pending, logs...)
	a.entries, a.bytes, a.want = a.entries+len(logs), a.bytes+bytes, span
	a.changed.Broadcast()
	return nil
}

// take waits for entries and takes all there are. It returns none when the log is closed.
func (a *logAhead) take() (logs []*raft.Log, bytes int, span logSpan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.pending) == 0 && !a.closed && a.failed == nil {
		a.changed.Wait()
	}
	if a.failed != nil {
		return nil, 0, logSpan{}
	}
	logs, a.pending = a.pending, nil
	return logs, a.bytes, a.want
}

// done records the result for what was taken. After a failure the entries stay not on disk.
func (a *logAhead) done(entries, bytes int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed = err; err == nil {
		a.entries, a.bytes = a.entries-entries, a.bytes-bytes
	}
	a.changed.Broadcast()
}

// Lead sets the function that says whether this member leads. Without one it never does.
func (s *logStore) Lead(leads func() bool) { s.ahead.leads.Store(&leads) }

// mayWait reports whether entries may be sent before they are on disk: they must be commands that
// this member, as the leader, puts into the log. The library stores entries of another leader only
// after it has become a follower, on this goroutine.
func (s *logStore) mayWait(logs []*raft.Log) bool {
	leads := s.ahead.leads.Load()
	if leads == nil || len(logs) > aheadEntries || batchSize(logs) > aheadBytes || !(*leads)() {
		return false
	}
	for _, l := range logs {
		if l.Type != raft.LogCommand {
			return false
		}
	}
	return true
}

// settled waits, on a member that does not lead, until everything is on disk.
func (s *logStore) settled() error {
	leads := s.ahead.leads.Load()
	if leads == nil || (*leads)() {
		return nil
	}
	return s.ahead.drain()
}

// storeAhead takes entries in, after which the log is span, and queues them to be synced.
func (s *logStore) storeAhead(logs []*raft.Log, span logSpan) error {
	if err := s.ahead.add(logs, batchSize(logs), span); err != nil {
		return err
	}
	s.tail.Append(logs...)
	s.setSpan(span)
	return nil
}

// syncLoop writes what is stored ahead: everything that has come meanwhile, with one sync. It ends
// at Close when nothing is left, or with the first failure. On a goroutine of its own.
func (s *logStore) syncLoop() {
	for {
		logs, bytes, span := s.ahead.take()
		if len(logs) == 0 {
			return
		}
		err := s.sync(logs, false, span)
		s.ahead.done(len(logs), bytes, err)
		if err != nil {
			return
		}
	}
}

// Vouched is how much of what the library calls committed may be told to the others.
func (s *logStore) Vouched(committed uint64) uint64 {
	a := &s.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.entries == 0 {
		return committed
	}
	return min(committed, a.onDisk.last)
}

// AwaitSynced returns when an entry of the log is on disk. It returns an error when the entry never
// will be.
func (s *logStore) AwaitSynced(index uint64) error {
	a := &s.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.entries > 0 && a.onDisk.last < index && a.failed == nil {
		a.changed.Wait()
	}
	return a.failed
}

// memberTransport tells the others of no commit behind what this member has on disk.
type memberTransport struct {
	transport
	log *logStore
}

// transport is what the library uses of a network.
type transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// AppendEntries implements the library's interface.
func (t memberTransport) AppendEntries(id raft.ServerID, to raft.ServerAddress,
	args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	vouched := *args
	vouched.LeaderCommitIndex = t.log.Vouched(args.LeaderCommitIndex)
	return t.transport.AppendEntries(id, to, &vouched, resp)
}

// AppendEntriesPipeline implements the library's interface. It is refused, because a pipeline would
// bypass AppendEntries.
func (memberTransport) AppendEntriesPipeline(raft.ServerID,
	raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}
