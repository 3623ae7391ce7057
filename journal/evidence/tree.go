package evidence

import (
	"encoding/binary"
	"fmt"

	"posttrade/journal/evidence/verify"
)

// A tile holds 256 hashes of one level; the next level of tiles is eight levels of the tree higher.
const (
	tileHashes = 256
	tileBits   = 8
)

// entries is the level of the entry bundles in a path.
const entries = -1

// tree is the big tree as far as it can still change: the tiles at its right edge. One goroutine
// owns it.
type tree struct {
	size   uint64
	levels [][]verify.Hash // of each level the hashes of the tile that is not full
	bundle []byte          // the leaves of the lowest of these
	// put takes a tile: of w hashes, 256 for a full one. The memory is valid until it returns.
	put func(level int, n uint64, w int, data []byte) error
}

// add appends a leaf.
func (t *tree) add(leaf []byte) error {
	t.bundle = append(binary.BigEndian.AppendUint16(t.bundle, uint16(len(leaf))), leaf...)
	t.size++
	h := verify.LeafHash(leaf)
	for level := 0; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, make([]verify.Hash, 0, tileHashes))
		}
		t.levels[level] = append(t.levels[level], h)
		if len(t.levels[level]) < tileHashes {
			return nil
		}
		n := t.size>>(tileBits*(level+1)) - 1
		if level == 0 {
			if err := t.put(entries, n, tileHashes, t.bundle); err != nil {
				return err
			}
			t.bundle = t.bundle[:0]
		}
		if err := t.put(level, n, tileHashes, flat(t.levels[level])); err != nil {
			return err
		}
		h = verify.Root(t.levels[level])
		t.levels[level] = t.levels[level][:0]
	}
}

// partials gives put the tiles that are not full.
func (t *tree) partials(put func(level int, n uint64, w int, data []byte) error) error {
	if len(t.bundle) > 0 {
		if err := put(entries, t.size/tileHashes, int(t.size%tileHashes), t.bundle); err != nil {
			return err
		}
	}
	for level, hashes := range t.levels {
		if len(hashes) == 0 {
			continue
		}
		if err := put(level, t.size>>(tileBits*(level+1)), len(hashes), flat(hashes)); err != nil {
			return err
		}
	}
	return nil
}

// root is the root over all leaves.
func (t *tree) root() verify.Hash {
	var root verify.Hash
	none := true
	for _, hashes := range t.levels {
		// A run of whole subtrees, the smallest on the right.
		for n := len(hashes); n > 0; n &= n - 1 {
			width := n & -n
			sub := verify.Root(append([]verify.Hash(nil), hashes[n-width:n]...))
			if none {
				root, none = sub, false
			} else {
				root = verify.NodeHash(&sub, &root)
			}
		}
	}
	if none {
		return verify.Root(nil)
	}
	return root
}

func flat(hashes []verify.Hash) []byte {
	b := make([]byte, 0, len(hashes)*verify.HashBytes)
	for i := range hashes {
		b = append(b, hashes[i][:]...)
	}
	return b
}

// tilePath is the name of a tile below the folder of the log, as C2SP tlog-tiles has it.
func tilePath(level int, n uint64, w int) string {
	name := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		name = fmt.Sprintf("x%03d/%s", n%1000, name)
	}
	if w < tileHashes {
		name = fmt.Sprintf("%s.p/%d", name, w)
	}
	if level == entries {
		return "tile/entries/" + name
	}
	return fmt.Sprintf("tile/%d/%s", level, name)
}
