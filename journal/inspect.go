package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// OpenExisting is Open for a journal that has a genesis already. Without a genesis it makes and
// changes nothing and returns ErrNoGenesis. It reads the journal twice: once by a view, which
// leaves no file behind, and once with the lock.
func OpenExisting(dir string, o Options) (*Journal, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	j, err := Read(dir, VerifyOptions{FS: o.FS, ArchiveDir: o.ArchiveDir, boot: o.boot})
	if err == nil {
		err = j.Close()
	}
	if err != nil {
		return nil, err
	}
	return Open(dir, o)
}

// existing refuses a directory without a store before anything touches it: taking a lock leaves
// files behind, and so does opening a store, even for reading only.
func existing(fs vfs.FS, dir string) error {
	names, err := fs.List(fs.PathJoin(dir, storeName))
	switch {
	case notExist(err):
		return fmt.Errorf("journal: open dir=%s: %w: %w", dir, ErrNoGenesis, err)
	case err != nil:
		return fmt.Errorf("journal: open dir=%s: %w", dir, err)
	case len(names) == 0:
		return fmt.Errorf("journal: open dir=%s: %w: its store is empty", dir, ErrNoGenesis)
	}
	return nil
}

// finding is what inspect saw. The zero value is a directory without a journal.
type finding struct {
	store   bool // the store's directory holds a database
	created bool // with a genesis and an anchor
	genesis []byte
	seed    [chainBytes]byte
	// The end of the last block in the store.
	head   point
	anchor reading
	tail   *tailImage  // nil: there is none
	db     *blockStore // open for reading when created is true, else nil
}

// inspect opens the store for reading only and verifies genesis, tail and anchor, and of every
// table what the store itself reads sooner or later. A refused journal is left exactly as found;
// the store of an accepted one stays open.
//
// Neither store nor anchor: a new journal. An anchor without a store is a lost history and refused,
// because the anchor is made after the genesis.
func inspect(dir string, fs vfs.FS, boot string, l *latch, log Logger) (f finding, err error) {
	store, anchored := fs.PathJoin(dir, storeName), true
	if _, err := fs.Stat(fs.PathJoin(dir, anchorName)); notExist(err) {
		anchored = false
	} else if err != nil {
		return f, fmt.Errorf("journal: stat file=%s: %w", fs.PathJoin(dir, anchorName), err)
	}
	o := storeOptions(fs, l, log)
	o.ReadOnly, o.ErrorIfNotExists = true, true
	if names, err := fs.List(store); notExist(err) || err == nil && len(names) == 0 {
		if anchored {
			err = fmt.Errorf("journal: open store=%s: it is missing or empty, and file=%s is there: %w",
				store, fs.PathJoin(dir, anchorName), ErrShortened)
		} else {
			err = nil
		}
		return f, err
	}
	db, err := openStore(store, o, l)
	if !anchored && errors.Is(err, pebble.ErrDBDoesNotExist) {
		return f, nil // creation was interrupted before anything was in it
	}
	if errors.Is(err, pebble.ErrDBDoesNotExist) {
		return f, fmt.Errorf("%w: %w", err, ErrCorrupt) // the anchor says that there was one
	}
	if err != nil {
		return f, err
	}
	f, err = examine(db, dir, fs, boot, anchored)
	f.db = db
	if err == nil {
		err = checkTables(db, fs, store, o)
	}
	if err == nil && f.created {
		err = f.findTail(db, dir, fs, boot)
	}
	if err != nil || !f.created {
		err = errors.Join(explained(err, db, fs, store), f.release(l))
	}
	return f, err
}

// findTail reads the tail and compares it with anchor and store. Afterwards tail.beyond has what
// the store lacks.
func (f *finding) findTail(db *blockStore, dir string, fs vfs.FS, boot string) (err error) {
	if f.tail, err = readTail(fs, dir); err != nil {
		return err
	}
	if err = f.anchor.has(f.tail, fs.PathJoin(dir, tailName)); err != nil || f.tail == nil {
		return err
	}
	return f.tail.compare(db, f.seed, f.head, boot)
}

// examine is inspect with the store open. The anchor must be of the same genesis (ErrDiverged), and
// the history must reach it (ErrShortened).
//
// What anchor and store say together:
//
//	anchor   store
//	no       empty, or a genesis alone   making it was cut short: a new journal
//	no       more than a genesis         ErrAnchorMissing
//	yes      no genesis                  ErrShortened
//	yes      another genesis             ErrDiverged
//	yes      its genesis                 the last blocks are compared (settled, checkTail)
func examine(db *blockStore, dir string, fs vfs.FS, boot string, anchored bool) (finding, error) {
	f := finding{store: true}
	if !anchored {
		// Only the first moments of a new journal look like this.
		key, err := firstKeyAfterGenesis(db)
		if err != nil {
			return f, err
		}
		if key != "" {
			return f, fmt.Errorf("journal: file=%s: store holds key=%s: %w",
				fs.PathJoin(dir, anchorName), key, ErrAnchorMissing)
		}
		return f, nil
	}
	a, err := readAnchor(fs, dir, boot)
	if err != nil {
		return f, err
	}
	f.anchor = a
	if f.genesis, err = anchoredGenesis(db, a, fs.PathJoin(dir, anchorName)); err != nil {
		return f, err
	}
	f.created, f.seed = true, sha256.Sum256(f.genesis)
	if f.seed != a.seed {
		return f, fmt.Errorf("journal: key=g: genesis hash %x, anchor has %x: %w", f.seed, a.seed,
			ErrDiverged)
	}
	f.anchor = a.settled(db, func() *tailImage {
		t, err := readTail(fs, dir)
		if err != nil || a.has(t, "") != nil {
			return nil
		}
		return t
	})
	f.head, err = checkTail(db, f.seed, f.anchor, fs.PathJoin(dir, anchorName))
	return f, err
}

// readGenesis reads and checks the genesis. ErrNoGenesis: there is none; ErrCorrupt: it is not what
// was written.
func readGenesis(db *blockStore) ([]byte, error) {
	v, closer, err := get(db, []byte{keyGenesis})
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, fmt.Errorf("journal: key=g: %w", ErrNoGenesis)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: read key=g: %w", err)
	}
	genesis, err := parseGenesis(v)
	if err != nil {
		err = fmt.Errorf("journal: read key=g: %w", err)
	}
	return genesis, errors.Join(err, closer.Close())
}

// anchoredGenesis is readGenesis for a store with an anchor. The anchor is made after the genesis,
// so a store with an anchor and no genesis has lost its history.
func anchoredGenesis(db *blockStore, a reading, anchorFile string) ([]byte, error) {
	genesis, err := readGenesis(db)
	if errors.Is(err, ErrNoGenesis) {
		err = fmt.Errorf("journal: the store has no key=g, file=%s offset=%d has seen inputSeq=%d: %w",
			anchorFile, a.offset, a.inputSeq, ErrShortened)
	}
	return genesis, err
}

// firstKeyAfterGenesis names the first key that only a used journal has; empty when there is none.
func firstKeyAfterGenesis(db *blockStore) (name string, err error) {
	err = iterate(db, nil, nil, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			if k := it.Key(); len(k) != 1 || k[0] != keyGenesis {
				name = keyName(k)
				return nil
			}
		}
		return nil
	})
	return name, err
}
