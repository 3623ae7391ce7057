package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"posttrade/journal/transfer"
)

// receivingName marks a journal that is being received.
const receivingName = "receiving"

// receiveBatch is about how many bytes of blocks go to the store at a time.
const receiveBatch = 1 << 20

// A slow disk must not turn a large journal into a large heap: when as much as these memtables hold
// waits for the disk, the stream waits too.
const (
	receiveMemTable  = 8 << 20
	receiveMemTables = 2
)

// Errors of receiving.
var (
	// ErrUnfinished: the directory holds a journal that was not received in full.
	ErrUnfinished = errors.New("journal was not received in full")
	// ErrNotEmpty: a journal is received into an empty directory only.
	ErrNotEmpty = errors.New("directory is not empty")
)

// Received says what Receive has written: the genesis, and the head.
type Received struct {
	Genesis  []byte
	InputSeq uint64 // head
	TradeSeq uint64
}

// Receive writes the stream of a Transfer as a new journal into dir, which is made if need be, with
// its parents. When it returns nil, everything is on stable storage, also the names of what was
// made, and Open finds a journal with that head, as after a clean close.
//
// Everything is verified on the way: framing, checksums, the chain, that neither sequence has a
// hole, that fills and client ids belong to their commits, the snapshot's files, and the hash over
// the stream.
//
//   - While Receive works, dir holds a file "receiving". It is made durable before anything else
//     and removed, durably, when everything is done. While it exists, Open refuses dir
//     (ErrUnfinished), at whatever moment the power went, and another Receive deletes what is there
//     and starts again.
//   - Errors: ErrNotEmpty, ErrLocked: dir is unchanged. transfer.ErrNotWhole and r's own error:
//     nothing is left in dir but its lock file. An error of the disk is as final as in an open
//     journal: ErrPoisoned is returned, o.Fatal is called, and the mark stays. If removing the mark
//     was the last thing to do, the journal is complete.
//   - Cost: what is received is written once, without a log, and read ahead of the disk by at most
//     four memtables. Receive blocks; any goroutine. r must end where the stream does.
func Receive(dir string, r io.Reader, o Options) (Received, error) {
	return ReceiveAll(dir, 0, o, r)
}

// ReceiveAll is Receive of a journal that comes in several streams: a Transfer, then one of
// TransferAfter for each part that follows. With a limit it takes the commands up to that sequence,
// which the streams must reach. It reads the rest of that stream to verify it, and none behind it.
// A commit that goes beyond the limit is packed again without what comes behind it.
func ReceiveAll(dir string, limit uint64, o Options, streams ...io.Reader) (Received, error) {
	rc, err := newReceiver(dir, o, streams)
	if err != nil {
		return Received{}, err
	}
	rc.verifier.limit = limit
	return rc.all()
}

// receiveSection is Receive of what follows a commit alone. What it writes is a store of these
// blocks, and no journal that can be opened.
func receiveSection(dir string, seed [chainBytes]byte, from point, r io.Reader, o Options) error {
	rc, err := newReceiver(dir, o, []io.Reader{r})
	if err != nil {
		return err
	}
	if from.inputSeq > 0 {
		rc.verifier.base(seed, from.exported())
	}
	_, err = rc.all()
	return err
}

// newReceiver returns a receiver that has touched nothing yet.
func newReceiver(dir string, o Options, streams []io.Reader) (*receiver, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	rc := &receiver{
		dir: dir, fs: o.FS, boot: o.boot, log: o.Logger, latch: newLatch(o.Fatal), streams: streams,
	}
	rc.verifier.to = rc
	return rc, nil
}

// all receives everything, or leaves nothing.
//
// What dir holds on the way, beside its lock file:
//
//	receiving                             begun: another Receive starts again
//	receiving, store, snapshots           commits, then the snapshot come in
//	receiving, store, snapshots, anchor   all of it is durable
//	store, snapshots, anchor              a journal that Open takes
func (r *receiver) all() (_ Received, err error) {
	if err := r.lockEmpty(); err != nil {
		return Received{}, err
	}
	defer func() { err = errors.Join(err, r.lock.Close()) }()
	if err := r.receive(); err != nil {
		return Received{}, errors.Join(err, r.discard())
	}
	at := r.verifier.walk.at
	return Received{r.verifier.genesis, at.inputSeq, at.tradeSeq}, nil
}

// refuseUnfinished refuses a journal that was not received in full.
func refuseUnfinished(fs vfs.FS, dir string) error {
	name := fs.PathJoin(dir, receivingName)
	marked, err := exists(fs, name)
	if err == nil && marked {
		err = fmt.Errorf("journal: file=%s: %w", name, ErrUnfinished)
	}
	return err
}

// exists reports whether there is a file under name.
func exists(fs vfs.FS, name string) (bool, error) {
	_, err := fs.Stat(name)
	if err == nil || notExist(err) {
		return err == nil, nil
	}
	return false, fmt.Errorf("journal: stat file=%s: %w", name, err)
}

// receiver is one Receive, on one goroutine. It is the target of its verifier.
type receiver struct {
	dir  string
	fs   vfs.FS
	boot string
	log  Logger
	lock io.Closer
	// The first failure of the disk; it is as final as an open journal's.
	latch *latch

	// In the order of the history.
	streams  []io.Reader
	verifier streamVerifier
	// From begin until finish; nil when it has not been opened, or is closed.
	db *blockStore
	// Blocks that the store has not been given yet.
	batch *pebble.Batch
}

// lockEmpty takes the directory's lock. It refuses a directory that is not empty, unless the mark
// says that what is there was not received in full.
func (r *receiver) lockEmpty() error {
	if err := makeDir(r.fs, r.dir); err != nil {
		return err
	}
	var err error
	if r.lock, err = lockDir(r.fs, r.dir); err != nil {
		return err
	}
	names, err := r.fs.List(r.dir)
	if err != nil {
		err = fmt.Errorf("journal: list dir=%s: %w", r.dir, err)
	} else if !slices.Contains(names, receivingName) &&
		slices.ContainsFunc(names, func(n string) bool { return n != LockName }) {
		err = fmt.Errorf("journal: receive dir=%s: %w", r.dir, ErrNotEmpty)
	}
	if err != nil {
		return errors.Join(err, r.lock.Close())
	}
	return nil
}

// receive does everything between the lock and its release. Streams behind the limit are not read.
func (r *receiver) receive() error {
	if err := r.latch.write(r.mark); err != nil {
		return err
	}
	defer r.verifier.close()
	for _, stream := range r.streams {
		if err := r.verifier.read(stream); err != nil {
			return err
		}
		if r.verifier.full() {
			break
		}
	}
	if end := r.verifier.walk.at.inputSeq; end < r.verifier.limit {
		return fmt.Errorf("journal: receive dir=%s: the history ends at inputSeq=%d, want %d: %w", r.dir,
			end, r.verifier.limit, transfer.ErrNotWhole)
	}
	return r.latch.write(r.finish)
}

// mark makes the mark, then empties the directory around it.
func (r *receiver) mark() error {
	name := r.fs.PathJoin(r.dir, receivingName)
	f, err := r.fs.Create(name, writeCategory)
	if err != nil {
		return fmt.Errorf("journal: create file=%s: %w", name, err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("journal: sync file=%s: %w", name, err)
	}
	return r.clear() // an unfinished attempt has a mark that is durable already
}

// clear removes what an earlier attempt has left, except mark and lock, and syncs the directory.
func (r *receiver) clear() error {
	names, err := r.fs.List(r.dir)
	if err != nil {
		return fmt.Errorf("journal: list dir=%s: %w", r.dir, err)
	}
	for _, name := range names {
		if name == LockName || name == receivingName {
			continue
		}
		path := r.fs.PathJoin(r.dir, name)
		if err := r.fs.RemoveAll(path); err != nil {
			return fmt.Errorf("journal: remove file=%s: %w", path, err)
		}
	}
	return syncDir(r.fs, r.dir)
}

// unmark removes the mark: from here on the journal counts as received in full.
func (r *receiver) unmark() error {
	name := r.fs.PathJoin(r.dir, receivingName)
	if err := r.fs.Remove(name); err != nil {
		return fmt.Errorf("journal: remove file=%s: %w", name, err)
	}
	return syncDir(r.fs, r.dir)
}

// begin opens the store. The store has no log: until the flush at the end an interrupted store is
// discarded anyway.
func (r *receiver) begin(genesis []byte) (err error) {
	o := storeOptions(r.fs, r.latch, r.log)
	o.DisableWAL = true
	o.MemTableSize, o.MemTableStopWritesThreshold = receiveMemTable, receiveMemTables
	if r.db, err = openStore(r.fs.PathJoin(r.dir, storeName), o, r.latch); err != nil {
		return r.latch.Poison(err)
	}
	r.batch = r.db.NewBatch()
	return r.put([]byte{keyGenesis}, genesis)
}

// committed hands the batch to the store when it is large enough.
func (r *receiver) committed() error {
	if r.batch.Len() < receiveBatch {
		return nil
	}
	return r.apply()
}

// put adds a block to the batch.
func (r *receiver) put(key, value []byte) error {
	if err := r.batch.Set(key, value, nil); err != nil {
		return fmt.Errorf("journal: receive key=%s: %w", keyName(key), err)
	}
	return nil
}

// apply hands the batch to the store's memory. It waits when too much of that waits for the disk.
func (r *receiver) apply() error {
	err := r.latch.write(func() error { return r.db.Apply(r.batch, pebble.NoSync) })
	if err != nil {
		return err
	}
	if err := r.batch.Close(); err != nil {
		return r.latch.Poison(fmt.Errorf("journal: release batch: %w", err))
	}
	r.batch = r.db.NewBatch()
	return nil
}

// file writes one file of the snapshot, syncs it and compares its hash. Its path is below dir: the
// verifier has checked the name.
func (r *receiver) file(in *transfer.Reader, s SnapshotFile) error {
	dir := r.fs.PathJoin(r.dir, snapshotsName)
	if err := r.latch.write(func() error { return r.fs.MkdirAll(dir, 0o700) }); err != nil {
		return err
	}
	w := &fileWriter{latch: r.latch, name: r.fs.PathJoin(r.dir, s.Path), sum: sha256.New()}
	var err error
	if w.f, err = r.fs.Create(w.name, writeCategory); err != nil {
		return w.failed("create", err)
	}
	err = in.Copy(w, uint64(s.Bytes))
	if err == nil {
		err = w.failed("sync", w.f.Sync())
	}
	if closeErr := w.f.Close(); err == nil {
		err = w.failed("close", closeErr)
	}
	if err == nil {
		err = s.same(in, w.sum.Sum(nil))
	}
	return err
}

// filed makes the names of the snapshot's files durable.
func (r *receiver) filed() error {
	dir := r.fs.PathJoin(r.dir, snapshotsName)
	return r.latch.write(func() error { return syncDir(r.fs, dir) })
}

// fileWriter writes and hashes. A failed write is a failure of the disk.
type fileWriter struct {
	latch *latch
	name  string
	f     vfs.File
	sum   hash.Hash
}

func (w *fileWriter) Write(p []byte) (int, error) {
	// The file system may change p while writing it.
	w.sum.Write(p)
	n, err := w.f.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return n, w.failed("write", err)
}

// failed turns an error of the file into the journal's error, and is nil for none.
func (w *fileWriter) failed(verb string, err error) error {
	if err == nil {
		return nil
	}
	return w.latch.Poison(fmt.Errorf("journal: %s file=%s: %w", verb, w.name, err))
}

// finish drops older snapshots and makes everything durable, in this order: blocks, anchor, the
// absence of the mark.
func (r *receiver) finish() error {
	if err := r.db.Apply(r.batch, pebble.NoSync); err != nil {
		return fmt.Errorf("journal: receive inputSeq=%d: %w", r.verifier.walk.at.inputSeq, err)
	}
	if err := r.batch.Close(); err != nil {
		return fmt.Errorf("journal: release batch: %w", err)
	}
	r.batch = nil
	if err := r.dropSnapshots(); err != nil {
		return err
	}
	if err := r.db.Flush(); err != nil {
		return fmt.Errorf("journal: flush inputSeq=%d: %w", r.verifier.walk.at.inputSeq, err)
	}
	err := r.db.Close()
	r.db = nil
	if err != nil {
		return fmt.Errorf("journal: close store: %w", err)
	}
	if err := r.latch.Err(); err != nil {
		return err // an error of the store's own work
	}
	a, err := createAnchor(r.fs, r.dir, r.verifier.walk.seed, r.boot, slotSynced, r.verifier.walk.at,
		0)
	if err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	return r.unmark()
}

// dropSnapshots drops all but the newest snapshots: every stream brings one.
func (r *receiver) dropSnapshots() error {
	list, _, err := listSnapshots(r.db) // the verifier has read each manifest
	if err != nil || len(list) <= snapshotsKept {
		return err
	}
	for _, s := range list[snapshotsKept:] {
		if err := r.db.Delete(newKey(keySnapshot, s.InputSeq), pebble.NoSync); err != nil {
			return fmt.Errorf("journal: drop snapshot inputSeq=%d: %w", s.InputSeq, err)
		}
		paths := []string{s.State.Path}
		if s.Views != nil {
			paths = append(paths, s.Views.Path)
		}
		for _, path := range paths {
			if err := r.fs.Remove(r.fs.PathJoin(r.dir, path)); err != nil {
				return fmt.Errorf("journal: remove file=%s: %w", r.fs.PathJoin(r.dir, path), err)
			}
		}
	}
	return syncDir(r.fs, r.fs.PathJoin(r.dir, snapshotsName))
}

// discard removes everything that a failed attempt has written. When the disk has failed, nothing
// more is done to it: the mark stays and says that the journal is unfinished.
func (r *receiver) discard() error {
	if r.latch.Err() != nil {
		return nil
	}
	if r.batch != nil {
		if err := r.batch.Close(); err != nil {
			return r.latch.Poison(fmt.Errorf("journal: release batch: %w", err))
		}
	}
	if r.db != nil {
		if err := closeStore(r.db, r.latch); err != nil {
			return r.latch.Poison(err)
		}
	}
	return r.latch.write(func() error { return errors.Join(r.clear(), r.unmark()) })
}
