package quorum

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
)

// Errors of the log store.
var (
	// ErrLogShortened: the log ends before the entry that its anchor has seen. The member may have
	// voted or acknowledged on the strength of the lost entries, so it must not start.
	ErrLogShortened = errors.New("raft log is shorter than its anchor")
	// ErrLogOrder: entries that neither follow the log nor each other.
	ErrLogOrder = errors.New("raft log entries out of order")
	// ErrLogMiddle: a deletion that would leave a hole in the log.
	ErrLogMiddle = errors.New("raft log entries from the middle")
	// ErrLogClosed: the log store has been closed.
	ErrLogClosed = errors.New("raft log closed")
	// errNoStableKey has the text by which the library knows a key that is not there.
	errNoStableKey = errors.New("not found")
)

// Sizes of the log store.
const (
	logStoreDir = "store"
	// What the tail does not hold is read once, in order, which a cache does not help.
	logBlockCache = 4 << 20
	// What is kept in memory of the log's end: entries, and bytes of their data.
	logTailEntries = 4096
	logTailBytes   = 32 << 20
	// How far, in time, the synced anchor may be behind the log.
	logAnchorEvery = 50 * time.Millisecond
)

// DefaultLogReserve is what a log file of the store takes from the disk when it begins. The store
// keeps as much in memory, less a tenth, before it writes a table: most entries are deleted before
// that.
const DefaultLogReserve = 141 << 20

// First bytes of the keys: entries by index (big endian), the library's own values by name.
const (
	logEntryKey  = 'e'
	logStableKey = 's'
	logKeyBytes  = 9
)

// logStoreOptions are the options of openLogStore.
type logStoreOptions struct {
	// bytes that a log file of the store takes at once; 0 = DefaultLogReserve
	Reserve uint64
	FS      vfs.FS // tests; default the operating system's
	// called once, at the first failure; default: one line on stderr, exit 1
	Fatal  func(error)
	Logger func(format string, args ...any) // default: silent
}

// logStore keeps the raft log, the term and the vote in a Pebble store of its own. It is the
// library's LogStore, MonotonicLogStore and StableStore.
//
// What holds:
//
//   - When StoreLogs, Set or SetUint64 return nil, what they wrote is on stable storage. While this
//     member leads, StoreLogs may return earlier: see logahead.go.
//   - The first failure of a write or a sync is final: no call succeeds after it.
//   - The log is contiguous: entries first..last and no other. A hole, or an entry that does not
//     read back as written, is damage; opening and reading name it by index.
//   - The anchor never vouches for an entry that is not on disk. A log that ends before the
//     anchor's entry, or has another term there, is refused at opening. The anchor survives the
//     process at once and the machine 50 ms later.
//
// The library calls StoreLogs from one goroutine, DeleteRange from a second one,
// and reads from many.
type logStore struct {
	dir string
	// The rule for a failing disk: the first failure is final, and ends the process.
	stop *journal.FailStop
	// The log itself, how far it reached, and its newest entries in memory.
	db     *pebble.DB
	anchor *journal.Anchor
	tail   *logTail

	// The goroutine that changes the log holds write. It is a channel because it is held while the
	// disk syncs, and a test's clock goes on while a goroutine waits for it.
	write chan struct{}

	mu   sync.RWMutex // guards span
	span logSpan      // writer: the goroutine that holds write

	times journal.DiskTimes // of its syncs of entries

	ahead logAhead // what is in the log and not on disk yet

	base atomic.Pointer[logBase] // the newest snapshot

	anchorMu sync.Mutex // held while the anchor is synced or lowered; guards anchored
	anchored logSpan    // what the anchor was last synced at

	closed     atomic.Bool
	stopAnchor chan struct{}
	anchoring  sync.WaitGroup
}

// logSpan is where the log begins and ends; both indexes are 0 when it is empty. lastTerm is the
// term of the last entry.
type logSpan struct {
	first, last, lastTerm uint64
}

// holds reports whether the log reaches over index.
func (p logSpan) holds(index uint64) bool {
	return index >= p.first && index <= p.last && index != 0
}

var (
	_ raft.LogStore          = (*logStore)(nil)
	_ raft.MonotonicLogStore = (*logStore)(nil)
	_ raft.StableStore       = (*logStore)(nil)
)

// openLogStore opens the log in dir, making it if need be, and reads all of it. Whatever does not
// hold is an error that names the index: ErrLogDamaged, ErrLogShortened, journal.ErrAnchorMissing.
// It starts the goroutines that sync the anchor and what is stored ahead; Close ends them.
func openLogStore(dir string, o logStoreOptions) (_ *logStore, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Reserve == 0 {
		o.Reserve = DefaultLogReserve
	}
	s := &logStore{
		dir: dir, tail: newLogTail(logTailEntries, logTailBytes),
		stop:  journal.NewFailStop(o.Fatal, logLines{o.Logger}),
		write: make(chan struct{}, 1), stopAnchor: make(chan struct{}),
	}
	if err := makeLogDir(o.FS, dir); err != nil {
		return nil, fmt.Errorf("quorum: open log dir=%s: %w", dir, err)
	}
	options := s.stop.Options(o.FS)
	options.MemTableSize = o.Reserve / 11 * 10 // the store takes a tenth more for a log file
	options.CacheSize = logBlockCache
	if s.db, err = s.stop.Open(o.FS.PathJoin(dir, logStoreDir), options); err != nil {
		return nil, asDamage(fmt.Errorf("quorum: open log dir=%s: %w", dir, err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(asDamage(err), s.stop.Close(s.db))
		}
	}()
	if err = s.verify(); err != nil {
		return nil, err
	}
	if err = s.checkAnchor(o.FS); err != nil {
		return nil, err
	}
	if s.anchor, err = journal.OpenAnchor(o.FS, dir, s.span.last, s.span.lastTerm); err != nil {
		return nil, fmt.Errorf("quorum: open log dir=%s: %w", dir, err)
	}
	s.anchored = s.span
	s.ahead.open(s.span)
	s.anchoring.Go(s.anchorLoop)
	s.anchoring.Go(s.syncLoop)
	return s, nil
}

// asDamage is err, as ErrLogDamaged when the store found a table of the log damaged: its own error
// is that of a damaged journal.
func asDamage(err error) error {
	if errors.Is(err, journal.ErrCorrupt) && !errors.Is(err, ErrLogDamaged) {
		return fmt.Errorf("%w: %w", ErrLogDamaged, err)
	}
	return err
}

// makeLogDir makes the directory and makes its name durable in the parent. The parent may be new
// too, so its name is made durable as well.
func makeLogDir(fs vfs.FS, dir string) error {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	above := fs.PathDir(dir)
	for _, name := range []string{fs.PathDir(above), above} {
		d, err := fs.OpenDir(name)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// verify reads every entry and finds out where the log begins and ends. It fills the tail with the
// newest ones.
func (s *logStore) verify() error {
	return s.stop.Read(func() (err error) {
		it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{logEntryKey},
			UpperBound: []byte{logEntryKey + 1}})
		if err != nil {
			return fmt.Errorf("quorum: read log dir=%s: %w", s.dir, err)
		}
		defer func() {
			if e := it.Close(); e != nil && err == nil {
				err = fmt.Errorf("quorum: read log index=%d: %w", s.span.last+1, e)
			}
		}()
		for it.First(); it.Valid(); it.Next() {
			if err := s.verifyEntry(it); err != nil {
				return err
			}
		}
		return nil
	})
}

// verifyEntry checks the entry under the iterator: its key follows the one before, its value is
// whole.
func (s *logStore) verifyEntry(it *pebble.Iterator) error {
	index, ok := parseLogKey(it.Key())
	last := s.span.last
	if !ok || index == 0 || last != 0 && index != last+1 {
		return fmt.Errorf("quorum: read log key=%x after index=%d: %w", it.Key(), last, ErrLogDamaged)
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return fmt.Errorf("quorum: read log index=%d: %w", index, err)
	}
	var l raft.Log
	if err := parseLogValue(v, index, &l); err != nil {
		return err
	}
	if last == 0 {
		s.span.first = index
	}
	s.span.last, s.span.lastTerm = index, l.Term
	s.tail.Append(&l)
	return nil
}

// checkAnchor compares the log with what the anchor has seen of it. An entry that the anchor
// vouches for and that the log has deleted at its front is covered by a snapshot.
func (s *logStore) checkAnchor(fs vfs.FS) error {
	index, term, found, err := journal.ReadAnchor(fs, s.dir)
	if err != nil {
		return fmt.Errorf("quorum: open log dir=%s: %w", s.dir, err)
	}
	last := s.span.last
	switch {
	case !found && last == 0: // a new log, or its creation was cut short
		return nil
	case !found:
		return fmt.Errorf("quorum: open log dir=%s index=%d: %w", s.dir, last, journal.ErrAnchorMissing)
	case index > last:
		return fmt.Errorf("quorum: open log dir=%s index=%d, anchor has %d: %w", s.dir, last, index,
			ErrLogShortened)
	case !s.span.holds(index): // deleted at the front since
		return nil
	}
	var l raft.Log
	if err := s.lookup(index, &l); err != nil {
		return err
	}
	if l.Term != term {
		return fmt.Errorf("quorum: open log dir=%s index=%d: term %d, anchor has %d: %w", s.dir, index,
			l.Term, term, ErrLogDamaged)
	}
	return nil
}

// IsMonotonic tells the library that the log has no holes.
func (s *logStore) IsMonotonic() bool { return true }

// FirstIndex is the first index of the log, 0 when it is empty.
func (s *logStore) FirstIndex() (uint64, error) { return s.reach().first, s.usable() }

// LastIndex is the last index of the log, 0 when it is empty.
func (s *logStore) LastIndex() (uint64, error) { return s.reach().last, s.usable() }

// reach is the log as readers see it, with what is stored ahead.
func (s *logStore) reach() logSpan {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.span
}

// usable reports why nothing may be done. It returns nil when the log can be used.
func (s *logStore) usable() error {
	if err := s.stop.Err(); err != nil {
		return err
	}
	if s.closed.Load() {
		return ErrLogClosed
	}
	return nil
}

// GetLog copies the entry at index into l. The newest entries come from memory, and share their
// data with every reader. GetLog returns raft.ErrLogNotFound when the log does not reach index. For
// the entry that the newest snapshot stands for it gives index and term, also when the log has
// deleted it. On a member that does not lead it waits for what is stored ahead (settled). Damage
// poisons.
func (s *logStore) GetLog(index uint64, l *raft.Log) error {
	if err := errors.Join(s.usable(), s.settled()); err != nil {
		return err
	}
	if !s.reach().holds(index) {
		if b := s.base.Load(); b != nil && b.index == index {
			*l = raft.Log{Index: b.index, Term: b.term, Type: raft.LogNoop}
			return nil
		}
		return raft.ErrLogNotFound
	}
	err := s.lookup(index, l)
	if err != nil && !s.reach().holds(index) {
		return raft.ErrLogNotFound // deleted while it was read
	}
	if errors.Is(err, ErrLogDamaged) {
		return s.stop.Poison(err) // the only remedy is a new copy of the log from the leader
	}
	return err
}

// lookup reads an entry from the tail or the store, whatever the span says.
func (s *logStore) lookup(index uint64, l *raft.Log) error {
	if s.tail.Get(index, l) {
		return nil
	}
	return s.stop.Read(func() error { return s.read(index, l) })
}

// read reads an entry from the store. One that is not there is damage: the caller knows that the
// log reaches it.
func (s *logStore) read(index uint64, l *raft.Log) error {
	var key [logKeyBytes]byte
	v, closer, err := s.db.Get(putLogKey(key[:], index))
	if errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("quorum: read log index=%d: missing: %w", index, ErrLogDamaged)
	}
	if err != nil {
		return fmt.Errorf("quorum: read log index=%d: %w", index, err)
	}
	err = parseLogValue(v, index, l)
	if e := closer.Close(); e != nil && err == nil {
		err = fmt.Errorf("quorum: read log index=%d: %w", index, e)
	}
	return err
}

// Close syncs what is stored ahead and the anchor, and closes the store. A poisoned one is left as
// it is. A second call returns ErrLogClosed.
func (s *logStore) Close() error {
	if s.closed.Swap(true) {
		return ErrLogClosed
	}
	s.write <- struct{}{} // a call under way ends first
	defer func() { <-s.write }()
	close(s.stopAnchor)
	s.ahead.close()
	s.anchoring.Wait()
	if err := s.syncAnchor(); err != nil {
		return errors.Join(err, s.anchor.Close())
	}
	return errors.Join(s.stop.Close(s.db), s.anchor.Close())
}

// putLogKey writes the key of an entry into key, which has logKeyBytes.
func putLogKey(key []byte, index uint64) []byte {
	key[0] = logEntryKey
	binary.BigEndian.PutUint64(key[1:], index)
	return key
}

func parseLogKey(key []byte) (index uint64, ok bool) {
	if len(key) != logKeyBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(key[1:]), true
}

// logLines is a journal.Logger over one function.
type logLines struct {
	log func(format string, args ...any)
}

// Infof drops messages that are no failures.
func (l logLines) Infof(string, ...any) {}

func (l logLines) Errorf(format string, args ...any) {
	if l.log != nil {
		l.log(format, args...)
	}
}
