package journal

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"unsafe"

	"github.com/cockroachdb/pebble/v2"

	"posttrade/matcher"
	"posttrade/ring"
)

// iterate runs f with an iterator over [lower, upper), nil for no bound, and joins the errors of f,
// of the iterator and of its closing. While f runs, the iterator pins the memtables and tables that
// it reads: f must not run long. Its keys and values hold until it moves.
func iterate(db *blockStore, lower, upper []byte, f func(*pebble.Iterator) error) error {
	return guard(func() (err error) {
		it, err := db.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
		if err != nil {
			return fmt.Errorf("journal: iterate: %w", err)
		}
		defer func() { // f may panic
			if closeErr := it.Close(); closeErr != nil && !errors.Is(err, closeErr) {
				err = errors.Join(err, fmt.Errorf("journal: iterate: %w", closeErr))
			}
		}()
		err = f(it)
		if itErr := it.Error(); itErr != nil && !errors.Is(err, itErr) {
			err = errors.Join(err, fmt.Errorf("journal: iterate from key=%s: %w", keyName(lower), itErr))
		}
		return err
	})
}

// get reads one key. The value holds until closer is closed; there is no closer after an error.
// pebble.ErrNotFound comes back as it is.
func get(db *blockStore, key []byte) (v []byte, closer io.Closer, err error) {
	err = guard(func() error {
		v, closer, err = db.Get(key)
		return err
	})
	return v, closer, err
}

// decoded is one commit, unpacked, in memory of the walker that gave it, valid until the walker
// gives the next one. Its fields fills and ids hide the counts of the envelope that have the same
// names.
type decoded struct {
	envelope
	commands []matcher.Command
	fills    []matcher.Fill
	ids      ClientIDs

	// What ids read from; kept so that the next commit may use its memory.
	idBytes []byte
	stored  uint64 // bytes of all its blocks in the store
}

// walker reads commits in order and checks everything about them: checksum,
// contiguity, chain, and that fills and client ids are those of the commit.
//
// What it checks of each commit, in this order:
//
//   - The key and the envelope: checksum and sizes, and that the block begins behind the one
//     before, in commands and in trades.
//   - The records: that they unpack to their size, that the chain over them is the envelope's, and
//     that each carries its sequence.
//   - Fills and client ids: that they are there in number, name this commit, and hang on its chain.
//
// It does not ask whether the fills are those that the commands give: Verify does. One goroutine.
type walker struct {
	db   *blockStore
	seed [chainBytes]byte
	// The end of the last commit read: what the next one must follow.
	at point
	// The first sequence of that commit, for messages; 0: none has been read.
	lastAt uint64
	unpack *unpacker
	// Lets other goroutines run between two steps of the walk under way.
	breath ring.Breather
	block  *decoded
	// Leave fills and ids unread: they are as much again.
	bare   bool
	adrift bool // what is before the next block is not known: what it follows is not checked

	// get reads a block that belongs to the commit being read: from db, unless set otherwise.
	get func(key []byte) ([]byte, io.Closer, error)
}

// newWalker returns a walker that stands before the first commit. close frees what it holds.
func newWalker(db *blockStore, seed [chainBytes]byte) *walker {
	return &walker{
		db: db, seed: seed, at: point{chain: seed}, unpack: newUnpacker(), block: &decoded{},
		get: func(key []byte) ([]byte, io.Closer, error) {
			seq, _ := keySeq(key) // it is a key of a block
			from, _, _, err := db.of(key[0], seq)
			if err != nil {
				return nil, nil, err
			}
			return get(from, key)
		},
	}
}

// close frees the memory of the unpacker. The walker may be used again afterwards.
func (w *walker) close() { w.unpack.close() }

// lastKey names the key of the last command block read.
func (w *walker) lastKey() string {
	if w.lastAt == 0 {
		return "none"
	}
	return keyName(newKey(keyCommands, w.lastAt))
}

// startAt makes the commit that begins with sequence first the next one, taking the chain from the
// block before it. It trusts that block's envelope, of which it checks the checksum but not what it
// follows; the end of an archive is in the store. ErrArchived: the block before is in an archive
// that cannot be read.
func (w *walker) startAt(first uint64) error {
	if first == 1 {
		return nil
	}
	if end, ok := w.db.archives.ended(first - 1); ok {
		w.at = end // without the archive
		return nil
	}
	e, err := commandsAt(w.db, first-1)
	if err != nil {
		return err
	}
	w.at, w.lastAt = point{inputSeq: e.last(), tradeSeq: e.lastTrade(), chain: e.chain}, e.first
	return nil
}

// commandsAt returns the envelope of the last command block that begins at a sequence or before it,
// wherever that block is. It checks the block's checksum alone. ErrArchived: it is in an archive
// that cannot be read.
func commandsAt(db *blockStore, inputSeq uint64) (e envelope, err error) {
	from, _, _, err := db.of(keyCommands, inputSeq)
	if err != nil {
		return e, err
	}
	behind := newKey(keyCommands, inputSeq+1)
	err = iterate(from, []byte{keyCommands}, behind,
		func(it *pebble.Iterator) error {
			if !it.Last() {
				return fmt.Errorf("journal: no block before key=%s: %w", keyName(behind), errSizes)
			}
			v, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			if e, _, err = parseEnvelope(v, keyCommands); err != nil {
				return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), err)
			}
			return nil
		})
	return e, err
}

// seek makes the commit that holds inputSeq the next one. Cost: two searches in the store, and the
// envelope of the block before.
func (w *walker) seek(inputSeq uint64) error {
	if inputSeq <= 1 {
		return nil
	}
	db, _, _, err := w.db.of(keyCommands, inputSeq)
	if err != nil {
		return err
	}
	var first uint64
	err = iterate(db, []byte{keyCommands}, newKey(keyCommands, inputSeq+1),
		func(it *pebble.Iterator) error {
			if !it.Last() {
				return nil
			}
			seq, ok := keySeq(it.Key())
			if !ok {
				return fmt.Errorf("journal: key=%s: %w", keyName(it.Key()), errSizes)
			}
			first = seq
			return nil
		})
	if err != nil {
		return err
	}
	if first == 0 {
		return fmt.Errorf("journal: no block holds inputSeq=%d: %w", inputSeq, errSizes)
	}
	return w.startAt(first)
}

// blocksPerIterator bounds how long one iterator pins memtables and tables.
const blocksPerIterator = 256

// errEnough ends an iteration without being an error.
var errEnough = errors.New("enough")

// walk reads commits from where the walker stands up to and including the one that holds limit (0 =
// the last one there is) and gives each, whole, to f. The commits of archives come first, then
// those of the store; a limit that the history does not reach is no error of walk.
//
// errors.Is finds an error of f in what comes back; other errors name the key. What could not be
// read is behind at, so the caller knows where the damage begins.
func (w *walker) walk(limit uint64, f func(*decoded) error) error {
	w.breath = ring.NewBreather()
	for {
		n, from := 0, []byte{keyCommands}
		if w.at.inputSeq > 0 {
			from = newKey(keyCommands, w.at.inputSeq+1)
		}
		db, end, archive, err := w.db.of(keyCommands, w.at.inputSeq+1)
		if err != nil {
			return err
		}
		err = iterate(db, from, []byte{keyCommands + 1}, func(it *pebble.Iterator) error {
			for ok := it.First(); ok; ok = it.Next() {
				if limit > 0 && w.at.inputSeq >= limit {
					return nil
				}
				v, err := it.ValueAndErr()
				if err != nil {
					return fmt.Errorf("journal: read key=%s: %w", keyName(it.Key()), err)
				}
				if err := w.read(it.Key(), v); err != nil {
					return err
				}
				if err := f(w.block); err != nil {
					return err
				}
				if n++; n == blocksPerIterator {
					return errEnough
				}
			}
			return nil
		})
		if err == nil && archive && w.at.inputSeq < end.inputSeq &&
			(limit == 0 || w.at.inputSeq < limit) {
			err = endsEarly(w.at.inputSeq, end.inputSeq)
		}
		if err == nil && archive && w.at == end && (limit == 0 || end.inputSeq < limit) {
			continue // with the next archive, or the store
		}
		if !errors.Is(err, errEnough) {
			return err
		}
	}
}

// read unpacks and checks one commit, and makes it the walker's block. Only when everything holds
// does the walker's place move. Errors of content are ErrCorrupt.
func (w *walker) read(key, value []byte) error {
	b := w.block
	e, payload, err := parseEnvelope(value, keyCommands)
	if err != nil {
		return fmt.Errorf("journal: key=%s inputSeq=%d: %w", keyName(key), w.at.inputSeq+1, err)
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("journal: key=%s inputSeq=%d: %w", keyName(key), w.at.inputSeq+1,
			fmt.Errorf(format, args...))
	}
	seq, ok := keySeq(key)
	if !ok || seq != e.first {
		return bad("envelope starts at %d: %w", e.first, errSizes)
	}
	if e.first != w.at.inputSeq+1 {
		return bad("block starts at %d, the one before ends at %d: %w", e.first, w.at.inputSeq, errSizes)
	}
	if e.link != w.at.tradeSeq+1 && !w.adrift {
		return bad("trade sequence %d, the one before ends at %d: %w", e.link, w.at.tradeSeq, errSizes)
	}
	b.envelope, b.stored = e, uint64(len(value))
	b.commands = resize(b.commands, int(e.count))
	raw := recordsOf(b.commands)
	if err := w.unpack.unpack(raw, &e, payload); err != nil {
		return bad("%w", err)
	}
	w.breath.Breathe()
	if !w.adrift && !w.unpack.follows(&e, &w.at.chain, value, raw) {
		return bad("chain %x does not follow: %w", e.chain[:4], errChecksum)
	}
	w.breath.Breathe()
	for i := range b.commands {
		if got, want := b.commands[i].InputSeq, e.first+uint64(i); got != want {
			return bad("record %d has inputSeq %d, want %d: %w", i, got, want, errSizes)
		}
	}
	if w.bare {
		b.fills, b.ids = b.fills[:0], ClientIDs{}
	} else {
		if err := w.companions(b); err != nil {
			return err
		}
	}
	w.at = point{inputSeq: e.last(), tradeSeq: e.lastTrade(), chain: e.chain}
	w.lastAt, w.adrift = e.first, false
	return nil
}

// companions reads the fill and the client-id block of the commit, if its command block says that
// it has them. A block that is missing is an error: the three were written in one batch.
func (w *walker) companions(b *decoded) error {
	b.fills = b.fills[:0]
	if b.envelope.fills > 0 {
		// The memory is for as many fills as the block of fills itself has, not as many as the command
		// block says.
		err := w.companion(keyFills, b.link, b.envelope.fills, b, func(e *envelope) []byte {
			b.fills = resize(b.fills, int(e.count))
			return fillBytesOf(b.fills)
		})
		if err != nil {
			return err
		}
		for i := range b.fills {
			if got, want := b.fills[i].TradeSeq, b.link+uint64(i); got != want {
				return fmt.Errorf("journal: key=%s: record %d has tradeSeq %d, want %d: %w",
					keyName(newKey(keyFills, b.link)), i, got, want, errSizes)
			}
		}
	}
	b.ids = ClientIDs{}
	if b.envelope.ids > 0 {
		err := w.companion(keyIDs, b.first, b.envelope.ids, b, func(e *envelope) []byte {
			b.idBytes = resize(b.idBytes, int(e.raw))
			return b.idBytes
		})
		if err != nil {
			return err
		}
		b.ids = ClientIDs{first: b.first, raw: b.idBytes}
		if err := b.ids.check(b.last(), b.envelope.ids); err != nil {
			return fmt.Errorf("journal: key=%s: %w", keyName(newKey(keyIDs, b.first)), err)
		}
	}
	return nil
}

// companion reads one block that belongs to b's commit. room gives the memory that the payload is
// unpacked into, once its size is known.
func (w *walker) companion(kind byte, seq uint64, count uint32, b *decoded,
	room func(*envelope) []byte) error {
	key := newKey(kind, seq)
	v, closer, err := w.get(key)
	if err != nil {
		return fmt.Errorf("journal: read key=%s of inputSeq=%d: %w", keyName(key), b.first, err)
	}
	b.stored += uint64(len(v))
	err = func() error {
		e, payload, err := parseEnvelope(v, kind)
		if err != nil {
			return err
		}
		if e.first != seq || e.count != count || e.link != b.first {
			return fmt.Errorf("first %d count %d of commit %d, want %d, %d, %d: %w",
				e.first, e.count, e.link, seq, count, b.first, errSizes)
		}
		raw := room(&e)
		if err := w.unpack.unpack(raw, &e, payload); err != nil {
			return err
		}
		w.breath.Breathe()
		if !w.unpack.follows(&e, &b.chain, v, raw) {
			return fmt.Errorf("chain %x does not follow its commands: %w", e.chain[:4], errChecksum)
		}
		w.breath.Breathe()
		return nil
	}()
	if err != nil {
		err = fmt.Errorf("journal: key=%s of inputSeq=%d: %w", keyName(key), b.first, err)
	}
	return errors.Join(err, closer.Close())
}

// resize returns a slice of n elements in s's memory if it is large enough. The elements have any
// values.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// recordsOf is the commands' own memory, in wire order on a little-endian machine: writing to it
// fills the commands without a copy.
func recordsOf(c []matcher.Command) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c))), len(c)*recordBytes)
}

// fillBytesOf is the fills' own memory.
func fillBytesOf(f []matcher.Fill) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*recordBytes)
}
