package quorum

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"posttrade/journal"
)

// A snapshot of the consensus library is a small record on this member: up to this index of the
// log, the member's journal holds the commands up to this sequence. A member that needs the journal
// is sent the whole of it behind the record.
//
//	the stream:  magic "PTQS", version u32, sequence u64, then nothing, or a journal transfer
const (
	snapshotMagic  = "PTQS"
	snapshotHeader = 16
	recordSuffix   = ".snapshot"
)

// keptSnapshots is how many records stay: the newest one counts.
const keptSnapshots = 2

// ErrSnapshot reports a snapshot record or stream that cannot be read.
var ErrSnapshot = errors.New("unreadable snapshot")

// Storage is where a received journal goes. Its calls block for the disk.
type Storage interface {
	// Receive writes a journal transfer beside the journal, whole and durable.
	Receive(r io.Reader) error
	// Install puts a received journal in the place of the member's own. Without a received journal it
	// does nothing.
	Install() error
}

// Transfer is a journal on its way to another member.
type Transfer interface {
	io.ReadCloser
	Size() int64
}

// snapshotRecord is the content of a record's file, as JSON: up to entry Index of term Term, the
// journal has the commands up to Sequence.
type snapshotRecord struct {
	Index, Term        uint64
	Configuration      []byte // as the library encodes it
	ConfigurationIndex uint64
	Sequence           uint64
}

// snapshotStore is the library's store of snapshots: a file for each record. A record's file is the
// only proof that the log may be cut off before its index, so it is durable before the library
// learns of it.
type snapshotStore struct {
	fs       vfs.FS
	dir      string
	storage  Storage
	journal  ownJournal
	received atomic.Pointer[string] // the snapshot with a journal that waits to be installed

	mu sync.Mutex // one writer of records at a time
	// the snapshot that came with a journal, until the library has opened it; guarded by mu
	restoring string
}

// ownJournal is the member's journal, as snapshots see it.
type ownJournal interface {
	// has is the last command that was handed to the journal.
	has() uint64
	// stable waits until the journal has everything up to a sequence on stable storage.
	stable(sequence uint64) error
	// begins tells the log which entry the newest record stands for.
	begins(index, term uint64)
	// transfer is the whole journal as it is now.
	transfer() (Transfer, error)
	// fail ends the member: its disk has failed.
	fail(err error)
}

// openSnapshots makes the directory if need be. It reads no record yet.
func openSnapshots(fs vfs.FS, dir string, storage Storage, own ownJournal) (*snapshotStore, error) {
	if err := makeLogDir(fs, dir); err != nil {
		return nil, fmt.Errorf("quorum: snapshots: %w", err)
	}
	return &snapshotStore{fs: fs, dir: dir, storage: storage, journal: own}, nil
}

// name orders records by index and term; it is the snapshot's id, too.
func (r *snapshotRecord) name() string { return fmt.Sprintf("%016x-%016x", r.Index, r.Term) }

func (r *snapshotRecord) meta() *raft.SnapshotMeta {
	return &raft.SnapshotMeta{
		Version: raft.SnapshotVersionMax, ID: r.name(), Index: r.Index, Term: r.Term,
		Size: snapshotHeader, Configuration: raft.DecodeConfiguration(r.Configuration),
		ConfigurationIndex: r.ConfigurationIndex,
	}
}

// records reads all records, the newest first. One that cannot be read is an error: ErrSnapshot.
func (s *snapshotStore) records() (list []snapshotRecord, err error) {
	names, err := s.fs.List(s.dir)
	if err != nil {
		return nil, fmt.Errorf("quorum: snapshots: %w", err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, recordSuffix) {
			continue
		}
		text, err := readFile(s.fs, s.fs.PathJoin(s.dir, name))
		if err != nil {
			return nil, fmt.Errorf("quorum: snapshot %s: %w", name, err)
		}
		var r snapshotRecord
		if err := json.Unmarshal(text, &r); err != nil || r.name()+recordSuffix != name {
			return nil, fmt.Errorf("quorum: snapshot %s: %w", name, ErrSnapshot)
		}
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b snapshotRecord) int { return cmp.Compare(b.name(), a.name()) })
	return list, nil
}

// newest is the record from which this member continues, the zero value for none.
func (s *snapshotStore) newest() (snapshotRecord, error) {
	list, err := s.records()
	if err != nil || len(list) == 0 {
		return snapshotRecord{}, err
	}
	return list[0], nil
}

// List implements the library's interface.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	list, err := s.records()
	metas := make([]*raft.SnapshotMeta, len(list))
	for i := range list {
		metas[i] = list[i].meta()
	}
	return metas, err
}

// Create implements the library's interface: it returns a sink for a record of this member's own,
// or for a stream from the leader. While a received journal waits to be installed there is none:
// nothing may be recorded of a state that is about to be replaced.
func (s *snapshotStore) Create(_ raft.SnapshotVersion, index, term uint64, c raft.Configuration,
	at uint64, _ raft.Transport) (raft.SnapshotSink, error) {
	if s.received.Load() != nil {
		return nil, errReplaced
	}
	return &snapshotSink{store: s, record: snapshotRecord{
		Index: index, Term: term, Configuration: raft.EncodeConfiguration(c), ConfigurationIndex: at,
	}}, nil
}

// Open implements the library's interface. It gives the record, and this member's journal as it is
// now, which holds everything up to the record, and maybe more of what is agreed. For a snapshot
// that has just come, which the library opens to restore it, Open gives the record alone: its
// journal is in the storage already, and this member may have none of its own yet.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	list, err := s.records()
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(list, func(r snapshotRecord) bool { return r.name() == id })
	if i < 0 {
		return nil, nil, fmt.Errorf("quorum: snapshot %s: %w", id, oserror.ErrNotExist)
	}
	header := bytes.NewReader(appendHeader(nil, list[i].Sequence))
	if s.restores(id) {
		return list[i].meta(), io.NopCloser(header), nil
	}
	t, err := s.journal.transfer()
	if err != nil {
		return nil, nil, fmt.Errorf("quorum: snapshot %s: %w", id, err)
	}
	meta := list[i].meta()
	meta.Size += t.Size()
	return meta, streamOut{io.MultiReader(header, t), t}, nil
}

// restores reports, once, that this member itself restores the snapshot. Later openings of it are
// for other members, which need the journal too.
func (s *snapshotStore) restores(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.restoring == id
	if own {
		s.restoring = ""
	}
	return own
}

// streamOut is a header and a transfer.
type streamOut struct {
	io.Reader
	io.Closer
}

func appendHeader(b []byte, sequence uint64) []byte {
	b = append(b, snapshotMagic...)
	b = binary.LittleEndian.AppendUint32(b, 1)
	return binary.LittleEndian.AppendUint64(b, sequence)
}

func readHeader(b []byte) (sequence uint64, err error) {
	if len(b) != snapshotHeader || string(b[:4]) != snapshotMagic ||
		binary.LittleEndian.Uint32(b[4:]) != 1 {
		return 0, fmt.Errorf("quorum: snapshot header: %w", ErrSnapshot)
	}
	return binary.LittleEndian.Uint64(b[8:]), nil
}

// put makes a record durable and drops old ones. Its failure is a failure of the disk, as final as
// one of the log's. The journal must have on stable storage what the record stands for.
func (s *snapshotStore) put(r *snapshotRecord) error {
	err := s.write(r)
	if err != nil {
		s.journal.fail(err)
	}
	return err
}

// write is put without its consequence. The log learns of the newest record before an older one is
// removed.
func (s *snapshotStore) write(r *snapshotRecord) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := journal.ReplaceFile(s.fs, s.dir, r.name()+recordSuffix, text); err != nil {
		return fmt.Errorf("quorum: snapshot %s: %w", r.name(), err)
	}
	list, err := s.records()
	if err != nil {
		return err
	}
	s.journal.begins(list[0].Index, list[0].Term)
	for _, old := range list[min(len(list), keptSnapshots):] {
		if old.name() == r.name() {
			continue // the library is about to open it, however old it is
		}
		if err := s.fs.Remove(s.fs.PathJoin(s.dir, old.name()+recordSuffix)); err != nil {
			return fmt.Errorf("quorum: snapshot %s: %w", old.name(), err)
		}
	}
	return nil
}

// snapshotSink takes a stream: a header alone for a record of this member's own, a header and a
// journal from the leader. The journal goes to the storage as it comes, unless this member has all
// of it.
//
// Two kinds of streams come, and both leave a record:
//
//	from fsmSnapshot.Persist   a header: Close waits until the journal is stable up to its sequence
//	from the leader            a header and a journal: Close waits until the storage has it, durable
type snapshotSink struct {
	store  *snapshotStore
	record snapshotRecord
	header []byte
	skip   bool // what follows the header is not needed

	journal  *io.PipeWriter // of a stream with more than a header
	received chan error
}

func (k *snapshotSink) ID() string { return k.record.name() }

// Write takes the next bytes of the stream. It blocks while the storage writes: a slow disk slows
// the leader's sending.
func (k *snapshotSink) Write(b []byte) (n int, err error) {
	if missing := snapshotHeader - len(k.header); missing > 0 {
		n = min(missing, len(b))
		if k.header = append(k.header, b[:n]...); len(k.header) == snapshotHeader {
			if k.record.Sequence, err = readHeader(k.header); err != nil {
				return n, err
			}
			k.skip = k.record.Sequence <= k.store.journal.has()
		}
	}
	if n == len(b) || k.skip {
		return len(b), nil
	}
	if k.journal == nil {
		k.receive()
	}
	m, err := k.journal.Write(b[n:])
	return n + m, err
}

// receive starts the goroutine that reads the journal from the stream. It ends with the pipe: Close
// and Cancel wait for it.
func (k *snapshotSink) receive() {
	r, w := io.Pipe()
	k.journal, k.received = w, make(chan error, 1)
	go func() {
		err := k.store.storage.Receive(r)
		if err == nil { // Receive may not have read the end of the stream
			_, err = io.Copy(io.Discard, r)
		}
		r.CloseWithError(err)
		k.received <- err
	}()
}

// Close makes the written data durable: first the journal that the record stands for, then the
// record. It blocks for that. An error of the stream or of the storage leaves no record; one of
// writing the record ends the member.
func (k *snapshotSink) Close() error {
	if len(k.header) < snapshotHeader {
		return fmt.Errorf("quorum: snapshot %s ends after %d bytes: %w", k.ID(), len(k.header),
			ErrSnapshot)
	}
	if k.journal != nil {
		k.journal.Close()
		if err := <-k.received; err != nil {
			return err
		}
		k.journal = nil
		id := k.ID()
		k.store.received.Store(&id)
		k.store.mu.Lock()
		k.store.restoring = id
		k.store.mu.Unlock()
	} else if err := k.store.journal.stable(k.record.Sequence); err != nil {
		return err
	}
	return k.store.put(&k.record)
}

// errCanceled ends the reader of a stream that is cancelled.
var errCanceled = errors.New("snapshot given up")

// Cancel drops what was written: Storage sees an error in its stream, and keeps nothing.
func (k *snapshotSink) Cancel() error {
	if k.journal != nil {
		k.journal.CloseWithError(errCanceled)
		<-k.received
		k.journal = nil
	}
	return nil
}
