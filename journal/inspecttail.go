package journal

import (
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// tailBlocks is how many blocks Open reads in full at least. It reads more if the anchor lies
// further back. They are the blocks that were written last, which a power cut may have damaged; the
// rest is for Verify and the scrub.
const tailBlocks = 16

// checkTail verifies the last blocks and compares the history with the anchor: a block must end
// where the anchor's point is, with its chain and its tradeSeq. The blocks behind that point are
// verified too, and the end of the last one is the head. (This tail is the end of the store's
// history, not the file of that name.)
//
// Blocks before the last tailBlocks are not read: the chain of the first one that is read is taken
// from the block before it. Verify reads all.
func checkTail(db *blockStore, seed [chainBytes]byte, a reading, anchorFile string) (point, error) {
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

// tailStart is the first sequence of the block to start at, 0 for an empty journal: tailBlocks
// back, or as far as the block that holds the anchor's sequence.
func tailStart(db *blockStore, anchored uint64) (start uint64, err error) {
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

// checkStrays refuses fills and client ids beyond the last command block, and a last fill block
// that ends before the head's tradeSeq. A batch is applied as a whole, so either shows that a block
// has been lost.
func checkStrays(db *blockStore, head point) error {
	for _, kind := range []byte{keyFills, keyIDs} {
		err := iterate(db, []byte{kind}, []byte{kind + 1}, func(it *pebble.Iterator) error {
			if !it.Last() {
				if kind == keyFills && head.tradeSeq > db.archives.end().tradeSeq {
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
