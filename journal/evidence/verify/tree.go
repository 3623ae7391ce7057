package verify

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// A tile holds 256 hashes of one level; the next level of tiles is eight levels of the tree higher.
// Both numbers are those of C2SP tlog-tiles.
const (
	TileHashes = 256
	TileBits   = 8
)

// Entries is the level of the entry bundles in a path, and EntryBytes the length of a leaf in one:
// two bytes of length, then the leaf. Entry bundles hold the leaves themselves, hash tiles their
// hashes.
const (
	Entries    = -1
	EntryBytes = 2 + LeafBytes
)

// Tree is the big tree as far as it can still change: the tiles at its right edge. One goroutine
// owns it.
//
// Memory is one tile a level and one bundle, whatever the number of leaves. The tiles to the left
// are full: Put has had them, and the tree does not need them.
type Tree struct {
	Size   uint64   // leaves
	levels [][]Hash // of each level the hashes of the tile that is not full
	bundle []byte   // the leaves of the lowest of these
	// Put takes a tile: number n of its level, of w hashes, 256 for a full one. level is Entries for a
	// bundle of leaves. The memory is valid until it returns.
	Put func(level int, n uint64, w int, data []byte) error
}

// Add appends a leaf, and gives Put every tile that it fills, the bundle first and the lowest level
// before the higher ones. The error is that of Put; the tree must not be used after it.
func (t *Tree) Add(leaf []byte) error {
	t.bundle = append(binary.BigEndian.AppendUint16(t.bundle, uint16(len(leaf))), leaf...)
	t.Size++
	h := LeafHash(leaf)
	for level := 0; ; level++ {
		if level == len(t.levels) {
			t.levels = append(t.levels, make([]Hash, 0, TileHashes))
		}
		t.levels[level] = append(t.levels[level], h)
		if len(t.levels[level]) < TileHashes {
			return nil
		}
		n := t.Size>>(TileBits*(level+1)) - 1
		if level == 0 {
			if err := t.Put(Entries, n, TileHashes, t.bundle); err != nil {
				return err
			}
			t.bundle = t.bundle[:0]
		}
		if err := t.Put(level, n, TileHashes, flat(t.levels[level])); err != nil {
			return err
		}
		h = Root(t.levels[level])
		t.levels[level] = t.levels[level][:0]
	}
}

// Partials gives put the tiles that are not full. The tree stays as it is. A head of this size
// needs exactly these tiles and the full ones.
func (t *Tree) Partials(put func(level int, n uint64, w int, data []byte) error) error {
	if len(t.bundle) > 0 {
		if err := put(Entries, t.Size/TileHashes, int(t.Size%TileHashes), t.bundle); err != nil {
			return err
		}
	}
	for level, hashes := range t.levels {
		if len(hashes) == 0 {
			continue
		}
		if err := put(level, t.Size>>(TileBits*(level+1)), len(hashes), flat(hashes)); err != nil {
			return err
		}
	}
	return nil
}

// Root is the root over all leaves; of an empty tree it is the hash of nothing. It hashes what the
// tiles at the right edge hold, whatever the size.
func (t *Tree) Root() Hash {
	var root Hash
	none := true
	for _, hashes := range t.levels {
		// A run of whole subtrees, the smallest on the right.
		for n := len(hashes); n > 0; n &= n - 1 {
			width := n & -n
			sub := Root(append([]Hash(nil), hashes[n-width:n]...))
			if none {
				root, none = sub, false
			} else {
				root = NodeHash(&sub, &root)
			}
		}
	}
	if none {
		return Root(nil)
	}
	return root
}

// flat is a tile's bytes: its hashes side by side.
func flat(hashes []Hash) []byte {
	b := make([]byte, 0, len(hashes)*HashBytes)
	for i := range hashes {
		b = append(b, hashes[i][:]...)
	}
	return b
}

// TilePath is the name of a tile below the folder of the log, as C2SP tlog-tiles has it.
//
// n is written in groups of three digits, all but the last with an x: 1234 is x001/234. A partial
// tile ends with .p/ and its width.
func TilePath(level int, n uint64, w int) string {
	name := fmt.Sprintf("%03d", n%1000)
	for n /= 1000; n > 0; n /= 1000 {
		name = fmt.Sprintf("x%03d/%s", n%1000, name)
	}
	if w < TileHashes {
		name = fmt.Sprintf("%s.p/%d", name, w)
	}
	if level == Entries {
		return "tile/entries/" + name
	}
	return fmt.Sprintf("tile/%d/%s", level, name)
}

// ParseTile is the inverse of TilePath. Only what TilePath writes is ok: a path comes from a
// client, and no other one may reach the file system.
func ParseTile(path string) (level int, n uint64, w int, ok bool) {
	rest, isTile := strings.CutPrefix(path, "tile/")
	first, rest, _ := strings.Cut(rest, "/")
	level, w = Entries, TileHashes
	if first != "entries" {
		l, err := strconv.Atoi(first)
		if err != nil || l < 0 || l > 7 {
			return 0, 0, 0, false
		}
		level = l
	}
	number, width, partial := strings.Cut(rest, ".p/")
	if partial {
		v, err := strconv.Atoi(width)
		if err != nil || v < 1 || v >= TileHashes {
			return 0, 0, 0, false
		}
		w = v
	}
	for _, digits := range strings.Split(number, "/") {
		digits = strings.TrimPrefix(digits, "x")
		v, err := strconv.ParseUint(digits, 10, 64)
		if err != nil || len(digits) != 3 || n > 1<<50 {
			return 0, 0, 0, false
		}
		n = n*1000 + v
	}
	return level, n, w, isTile && TilePath(level, n, w) == path
}

// Clone returns a copy of the tree as it is now, for readers on other goroutines. It has no Put and
// no leaves, so it cannot go on: it is for Root and Edge.
func (t *Tree) Clone() *Tree {
	c := &Tree{Size: t.Size}
	for _, hashes := range t.levels {
		c.levels = append(c.levels, append([]Hash(nil), hashes...))
	}
	return c
}

// Edge returns the hashes of a tile that is not full yet; false when the tile is another one or has
// fewer hashes.
func (t *Tree) Edge(level int, n uint64, w int) ([]byte, bool) {
	if level < 0 || level >= len(t.levels) || n != t.Size>>(TileBits*(level+1)) ||
		w > len(t.levels[level]) {
		return nil, false
	}
	return flat(t.levels[level][:w]), true
}
