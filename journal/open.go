package journal

import (
	"errors"
	"fmt"
	"sync"
)

// Open opens the journal in dir, making the directory if need be. A new journal has no genesis:
// Create comes next. Open first reads an existing journal without changing it. Whatever does not
// hold is an error that names file or key and sequence, and everything is left as found.
//
//   - ErrLocked: another process has it. ErrUnfinished: it was not received in full. ErrDurability.
//   - ErrShortened, ErrDiverged, ErrAnchorMissing, ErrAnchorDamaged, ErrTailDamaged, ErrCorrupt:
//     what was acknowledged is not all there, or not what it was. AcceptHistory is the operator's
//     way out; a retry is none.
//   - Cost: what inspect reads; then the commands that only the tail has go into the store, synced.
func Open(dir string, o Options) (*Journal, error) {
	j, err := Prepare(dir, o)
	if err != nil {
		return nil, err
	}
	if err := j.Begin(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// Prepare is the first half of Open: it takes the lock and reads, and changes no byte of an
// existing journal. The journal that it returns can be read, including the commands that only the
// tail has. So a start can recover from it, compare it with what lies beside it, and refuse. Begin
// is the second half; Close without Begin leaves everything as found.
func Prepare(dir string, o Options) (_ *Journal, err error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	j := newJournal(dir, o)
	if o.Durability == DurabilityOS || o.Tail {
		j.lazy = newLazyFS(o.FS)
		j.fs = j.lazy
	}
	if j.sealer.packer, err = newPacker(o.Codec); err != nil {
		return nil, err
	}
	if err := makeDir(o.FS, dir); err != nil {
		return nil, err
	}
	if j.lock, err = lockDir(o.FS, dir); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.abandon())
		}
	}()
	if err := refuseUnfinished(o.FS, dir); err != nil {
		return nil, err
	}
	if j.found, err = inspect(dir, o.FS, o.boot, j.latch, o.Logger); err != nil {
		return nil, withCopied(err, o.FS, dir)
	}
	j.copied = copied(o.FS, dir)
	if j.found.db != nil {
		j.found.db.archives.locate(o.FS, o.ArchiveDir)
	}
	if !j.found.created {
		if err := noTail(o.FS, dir); err != nil {
			return nil, err
		}
	}
	j.show()
	return j, nil
}

// newJournal is a journal of which nothing has been read yet.
func newJournal(dir string, o Options) *Journal {
	return &Journal{
		dir: dir, o: o, fs: o.FS, latch: newLatch(o.Fatal), stop: make(chan struct{}),
	}
}

// show makes the history that was found readable: Head is its end, including what only the tail
// has.
func (j *Journal) show() {
	if !j.found.created {
		return
	}
	j.db, j.genesis, j.seed = j.found.db, j.found.genesis, j.found.seed
	j.setHead(j.found.end())
}

// setHead makes p every head of the journal. No other goroutine may use the journal meanwhile.
func (j *Journal) setHead(p point) {
	j.given, j.tip, j.safe, j.stablePoint = p, p, p, p
	j.applied.Store(int64(p.inputSeq))
	j.durable.Store(int64(p.inputSeq))
	j.answered.Store(int64(p.inputSeq))
	j.stable.Store(int64(p.inputSeq))
}

// Begin opens the store for writing, starts the committer and puts what only the tail has into the
// store. What has been read from the journal stays valid. After an error only Close may be called.
// No other goroutine may use the journal meanwhile. ErrReading: it has begun already, or was opened
// by Read.
//
// The order: the store, then the anchor at the store's head, then the committer, and the tail last,
// because its commands are appended like any others.
func (j *Journal) Begin() (err error) {
	if j.begun || j.lock == nil {
		return fmt.Errorf("journal: begin dir=%s: %w", j.dir, ErrReading)
	}
	found := j.found
	if err := j.roomForTail(found.tail); err != nil {
		return err
	}
	if j.db != nil {
		db := j.db
		j.db = nil
		if err := closeStore(db, j.latch); err != nil {
			return err
		}
	}
	j.walkers = sync.Pool{} // they have read the store that is closed now
	j.found = finding{}
	if err := j.openForWriting(found); err != nil {
		return err
	}
	if found.created {
		// Opening a store rewrites what was in its logs, synced: all of it is stable.
		j.setHead(found.head)
		j.anchor, err = openAnchor(j.o.FS, j.dir, j.seed, j.o.boot, j.slotPromise(), found.head,
			found.anchor.run, found.anchor.last)
		if err != nil {
			return err
		}
	}
	j.start()
	j.begun = true
	markOpen(j.o.FS, j.dir)
	return j.takeTail(found.tail)
}

// openForWriting opens the store. A new one is opened twice: its first log
// predates the store's own format mark and would be less well protected.
func (j *Journal) openForWriting(found finding) (err error) {
	store := j.fs.PathJoin(j.dir, storeName)
	options := storeOptions(j.fs, j.latch, j.o.Logger)
	if !found.store {
		db, err := openStore(store, options, j.latch)
		if err != nil {
			return err
		}
		if err := closeStore(db, j.latch); err != nil {
			return err
		}
		if err := syncDir(j.o.FS, j.dir); err != nil {
			return err
		}
	}
	options.ErrorIfNotExists = true
	if j.db, err = openStore(store, options, j.latch); err == nil {
		j.db.archives.locate(j.o.FS, j.o.ArchiveDir)
	}
	return err
}

// abandon closes what was opened for reading, or by a Begin that has failed. After a failure the
// store is left open. The lock goes last.
func (j *Journal) abandon() error {
	var err error
	if j.db != nil && j.latch.Err() == nil {
		err = closeStore(j.db, j.latch)
	}
	if j.anchor != nil {
		err = errors.Join(err, j.anchor.Close())
	}
	if v, pinned := j.o.FS.(*view); pinned {
		v.close()
	}
	if j.lock != nil {
		err = errors.Join(err, j.lock.Close())
	}
	return err
}

// end is the end of the history, including the tail; the chain is the store's, so it is not that of
// the end when the tail has more.
func (f *finding) end() point {
	p := f.head
	if f.tail != nil && len(f.tail.beyond) > 0 {
		last := &f.tail.beyond[len(f.tail.beyond)-1]
		p.inputSeq, p.tradeSeq = last.last(), last.lastTrade()
	}
	return p
}

// release closes the store of an inspection that is not kept.
func (f *finding) release(l *latch) error {
	db := f.db
	f.db = nil
	if db == nil {
		return nil
	}
	return closeStore(db, l)
}
