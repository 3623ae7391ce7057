package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// tailBlocks is how many blocks Open reads in full at least. It reads more if the anchor lies
// further back.
const tailBlocks = 16

// OpenExisting is Open for a journal that has a genesis already. Without a genesis it makes and
// changes nothing and returns ErrNoGenesis.
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

// finding is what inspect saw.
type finding struct {
	store   bool // the store's directory holds a database
	created bool // with a genesis and an anchor
	genesis []byte
	seed    [chainBytes]byte
	head    point
	tail    *tailImage // nil: there is none
	db      *vault     // open for reading when created is true, else nil
}

// inspect opens the store for reading only and verifies genesis, tail and anchor, and of every
// table what the store itself reads sooner or later. A refused journal is left exactly as found;
// the store of an accepted one stays open.
func inspect(dir string, fs vfs.FS, boot string, l *latch, log Logger) (f finding, err error) {
	store, anchored := fs.PathJoin(dir, storeName), true
	if _, err := fs.Stat(fs.PathJoin(dir, anchorName)); notExist(err) {
		anchored = false
	} else if err != nil {
		return f, fmt.Errorf("journal: stat file=%s: %w", fs.PathJoin(dir, anchorName), err)
	}
	o := storeOptions(fs, l, log)
	o.ReadOnly, o.ErrorIfNotExists = true, true
	if names, err := fs.List(store); !anchored && (notExist(err) || err == nil && len(names) == 0) {
		return f, nil
	}
	db, err := openStore(store, o, l)
	if !anchored && errors.Is(err, pebble.ErrDBDoesNotExist) {
		return f, nil // creation was interrupted before anything was in it
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

// findTail reads the tail and compares it with the store.
func (f *finding) findTail(db *vault, dir string, fs vfs.FS, boot string) (err error) {
	if f.tail, err = readTail(fs, dir); err != nil || f.tail == nil {
		return err
	}
	return f.tail.compare(db, f.seed, f.head, boot)
}

// examine is inspect with the store open.
func examine(db *vault, dir string, fs vfs.FS, boot string, anchored bool) (finding, error) {
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
	if f.genesis, err = anchoredGenesis(db, a, fs.PathJoin(dir, anchorName)); err != nil {
		return f, err
	}
	f.created, f.seed = true, sha256.Sum256(f.genesis)
	if f.seed != a.seed {
		return f, fmt.Errorf("journal: key=g: genesis hash %x, anchor has %x: %w", f.seed, a.seed,
			ErrDiverged)
	}
	f.head, err = checkTail(db, f.seed, a, fs.PathJoin(dir, anchorName))
	return f, err
}

// readGenesis reads and checks the genesis.
func readGenesis(db *vault) ([]byte, error) {
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
func anchoredGenesis(db *vault, a reading, anchorFile string) ([]byte, error) {
	genesis, err := readGenesis(db)
	if errors.Is(err, ErrNoGenesis) {
		err = fmt.Errorf("journal: the store has no key=g, file=%s offset=%d has seen inputSeq=%d: %w",
			anchorFile, a.offset, a.inputSeq, ErrShortened)
	}
	return genesis, err
}

// firstKeyAfterGenesis names the first key that only a used journal has.
func firstKeyAfterGenesis(db *vault) (name string, err error) {
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

// checkTail verifies the last blocks and compares the history with the anchor.
func checkTail(db *vault, seed [chainBytes]byte, a reading, anchorFile string) (point, error) {
	w := newWalker(db, seed)
	defer w.close()
	start, err := tailStart(db, a.inputSeq)
	if err != nil {
		return point{}, err
	}
	met := a.inputSeq == 0
	if met && (a.chain != seed || a.tradeSeq != 0) {
		return point{}, fmt.Errorf("journal: file=%s offset=%d inputSeq=0: %w", anchorFile, a.offset,
			ErrDiverged)
	}
	if start > 0 {
		if err := w.startAt(start); err != nil {
			return point{}, err
		}
		err := w.walk(0, func(b *decoded) error {
			if a.inputSeq != b.last() {
				return nil
			}
			met = true
			if w.at.chain != a.chain || w.at.tradeSeq != a.tradeSeq {
				return fmt.Errorf(
					"journal: key=%s inputSeq=%d tradeSeq=%d chain=%x; file=%s offset=%d tradeSeq=%d chain=%x: %w",
					keyName(newKey(keyCommands, b.first)), b.last(), w.at.tradeSeq, w.at.chain[:4],
					anchorFile, a.offset, a.tradeSeq, a.chain[:4], ErrDiverged)
			}
			return nil
		})
		if err != nil {
			return point{}, err
		}
	}
	head := w.at
	switch {
	case head.inputSeq < a.inputSeq:
		return head, fmt.Errorf(
			"journal: last key=%s ends at inputSeq=%d, file=%s offset=%d has seen inputSeq=%d: %w",
			w.lastKey(), head.inputSeq, anchorFile, a.offset, a.inputSeq, ErrShortened)
	case !met:
		return head, fmt.Errorf(
			"journal: no block ends at inputSeq=%d, as file=%s offset=%d has seen: %w",
			a.inputSeq, anchorFile, a.offset, ErrDiverged)
	}
	return head, checkStrays(db, head)
}

// tailStart is the first sequence of the block to start at, 0 for an empty journal.
func tailStart(db *vault, anchored uint64) (start uint64, err error) {
	var firsts []uint64
	err = iterate(db, []byte{keyCommands}, []byte{keyCommands + 1}, func(it *pebble.Iterator) error {
		for ok := it.Last(); ok; ok = it.Prev() {
			seq, fine := keySeq(it.Key())
			if !fine {
				return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), errSizes)
			}
			firsts = append(firsts, seq)
			if len(firsts) >= tailBlocks && seq <= anchored {
				break
			}
		}
		return nil
	})
	if err != nil || len(firsts) == 0 {
		return 0, err
	}
	return slices.Min(firsts), nil
}

// checkStrays refuses fills and client ids beyond the last command block.
func checkStrays(db *vault, head point) error {
	for _, kind := range []byte{keyFills, keyIDs} {
		err := iterate(db, []byte{kind}, []byte{kind + 1}, func(it *pebble.Iterator) error {
			if !it.Last() {
				if kind == keyFills && head.tradeSeq > db.shelf.end().tradeSeq {
					return fmt.Errorf("journal: no fill block, want tradeSeq=%d: %w", head.tradeSeq, errSizes)
				}
				return nil
			}
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			e, _, err := parseEnvelope(v, kind)
			if err != nil {
				return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), err)
			}
			switch {
			case kind == keyFills && e.last() != head.tradeSeq:
				return fmt.Errorf("journal: key=%s ends at tradeSeq=%d, commands end at %d: %w",
					keyName(it.Key()), e.last(), head.tradeSeq, errSizes)
			case kind == keyIDs && e.link > head.inputSeq:
				return fmt.Errorf("journal: key=%s: commands end at inputSeq=%d: %w",
					keyName(it.Key()), head.inputSeq, errSizes)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
