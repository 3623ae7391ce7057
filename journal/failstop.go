package journal

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// FailStop applies this package's rule for a failing disk to another store: the first failed write
// or sync, or a failure of the store's own background work, is final. FailStop remembers it,
// reports it once to the Fatal hook, and returns it from every call from then on. Nothing is
// retried.
//
// A caller makes every call into the store through it:
//
//   - Open and Close for the store itself,
//   - Write for what changes it, Read for what does not,
//   - Poison for a failure that it meets elsewhere, of a file that belongs to the store.
//
// Any goroutine, any number of calls at the same time.
type FailStop struct {
	latch *latch
	log   Logger
}

// NewFailStop returns a FailStop without a failure. fatal is called once, on the goroutine that
// meets the first failure; nil means one line on stderr and exit 1. A nil log drops everything.
func NewFailStop(fatal func(error), log Logger) *FailStop {
	if fatal == nil {
		fatal = exit
	}
	if log == nil {
		log = discardLogger{}
	}
	return &FailStop{latch: newLatch(fatal), log: log}
}

// Err is nil until the first failure, then ErrPoisoned with the cause.
func (f *FailStop) Err() error { return f.latch.Err() }

// Failed is closed with the first failure. A goroutine that waits for the store must wait for it
// too: after a failure the store may never answer.
func (f *FailStop) Failed() <-chan struct{} { return f.latch.dead }

// Poison makes cause the first failure, unless there was one, and returns the first.
func (f *FailStop) Poison(cause error) error { return f.latch.Poison(cause) }

// Options are the settings of a store under the rule, those of the journal's own
// store: a log of many records that is written once and read rarely. The caller
// may change sizes; format, logger, listener and file system stay as they are.
func (f *FailStop) Options(fs vfs.FS) *pebble.Options { return storeOptions(fs, f.latch, f.log) }

// Open opens the store in dir, making the directory if need be. A new store is made and then opened
// a second time: its first log predates the store's own format mark and would be less well
// protected. o comes from Options. Blocks; after a failure it returns that at once.
func (f *FailStop) Open(dir string, o *pebble.Options) (db *pebble.DB, err error) {
	opened := make(chan *pebble.DB, 1)
	err = f.await(func() error {
		db, err := openTwice(dir, o)
		opened <- db
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("journal: open store=%s: %w", dir, err)
	}
	return <-opened, nil
}

// openTwice is Open without its wait. The directory's name is durable before the store is made in
// it.
func openTwice(dir string, o *pebble.Options) (*pebble.DB, error) {
	if err := o.FS.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := syncDir(o.FS, o.FS.PathDir(dir)); err != nil {
		return nil, err
	}
	found, err := pebble.Peek(dir, o.FS)
	if err == nil && !found.Exists {
		var db *pebble.DB
		if db, err = pebble.Open(dir, o); err == nil {
			err = db.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return pebble.Open(dir, o)
}

// Close closes a store that Open has opened. A poisoned one is left as it is.
func (f *FailStop) Close(db *pebble.DB) error {
	if err := f.await(db.Close); err != nil {
		return fmt.Errorf("journal: close store: %w", err)
	}
	return nil
}

// Write runs a call that changes the store. After a failure it returns the first failure, also when
// the store reports success.
func (f *FailStop) Write(call func() error) error {
	err := f.await(call)
	if err != nil {
		return f.latch.Poison(err)
	}
	return nil
}

// await runs a call into the store unless something has failed. It returns even when the call never
// does: where the Fatal hook returns (tests), a goroutine that meets the failure inside the store
// stops there and keeps the locks that it holds.
func (f *FailStop) await(call func() error) error {
	if err := f.latch.Err(); err != nil {
		return err
	}
	if err := f.latch.await(call); err != nil {
		return err
	}
	return f.latch.Err()
}

// Read runs a call that only reads the store, on the caller's goroutine. The caller judges its
// error: damage that a read meets does not poison.
func (f *FailStop) Read(call func() error) error {
	if err := f.latch.Err(); err != nil {
		return err
	}
	return guard(call)
}

// Anchor records, in a file beside a store, how far a log in that store has reached, so that a lost
// end of the log is noticed. The file has the bytes of the journal's own anchor, with an index and
// a term in the place of the sequences.
type Anchor struct{ a *anchor }

// ReadAnchor returns the farthest entry that the anchor in dir vouches for; found is false when
// there is no anchor. ErrAnchorDamaged: there is one, and nothing can be read from it.
func ReadAnchor(fs vfs.FS, dir string) (index, term uint64, found bool, err error) {
	if _, err := fs.Stat(fs.PathJoin(dir, anchorName)); notExist(err) {
		return 0, 0, false, nil
	}
	r, err := readAnchor(fs, dir, "")
	if err != nil {
		return 0, 0, false, err
	}
	return r.inputSeq, r.tradeSeq, true, nil
}

// OpenAnchor opens the anchor in dir, or makes it, and sets it to an entry that is on disk, synced.
// What it said before is gone, so the caller has compared it (ReadAnchor). Close ends it.
func OpenAnchor(fs vfs.FS, dir string, index, term uint64) (*Anchor, error) {
	_, _, found, err := ReadAnchor(fs, dir)
	if err != nil {
		return nil, err
	}
	var a *anchor
	entry := point{inputSeq: index, tradeSeq: term}
	if found {
		a, err = openAnchor(fs, dir, [chainBytes]byte{}, "", slotSynced, entry, 0, 0)
	} else {
		a, err = createAnchor(fs, dir, [chainBytes]byte{}, "", slotSynced, entry, 0)
	}
	if err != nil {
		return nil, err
	}
	return &Anchor{a}, nil
}

// Raise vouches for an entry that is on disk, without a sync: the record survives the process. One
// write; it may run beside Sync.
func (a *Anchor) Raise(index, term uint64) error {
	return a.a.Hot(point{inputSeq: index, tradeSeq: term})
}

// Sync vouches for an entry that is on disk, with a sync: the record survives the machine.
func (a *Anchor) Sync(index, term uint64) error {
	return a.a.Sync(point{inputSeq: index, tradeSeq: term})
}

// Lower durably withdraws what was recorded of entries behind index. It comes before their
// deletion. No Raise or Sync may be under way.
func (a *Anchor) Lower(index, term uint64) error {
	return a.a.reset(point{inputSeq: index, tradeSeq: term})
}

// Close closes the file. The anchor stays as it is.
func (a *Anchor) Close() error { return a.a.Close() }
