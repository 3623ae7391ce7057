package verify

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"
)

// Tiles reads the hashes of a head's tree from tiles, which prove themselves against the head: a
// hash that it gives leads to the root. It is a tlog.HashReader. One goroutine uses it.
type Tiles struct {
	// HashReader gives a hash only after it has led the tile to the root
	tlog.HashReader
	read Read
	// err is the last error of read: package tlog hides it behind one of its own.
	err error
}

// NewTiles returns the hashes of a head's tree. It reads nothing yet.
func NewTiles(head *Checkpoint, read Read) *Tiles {
	t := &Tiles{read: read}
	t.HashReader = tlog.TileHashReader(tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Root)},
		tileReader{t})
	return t
}

// Leaf proves the data of a leaf: that its hash is the one at its place in the tree. It blames the
// bundle, which is what gives leaves to compare.
func (t *Tiles) Leaf(index uint64, data []byte) error {
	hashes, err := t.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(index))})
	if err != nil {
		return t.failed(err)
	}
	if Hash(hashes[0]) != LeafHash(data) {
		first, count := LeafRange(index)
		where := fmt.Sprintf("leaf %d, sequences %d to %d", index, first, first+count-1)
		return refuse(where, BlameBundle, "its records lead to another leaf than that of the tree")
	}
	return nil
}

// failed words an error of the hash reader: a tile that cannot be read, or one that is wrong.
//
// A wrong length is known already as a Refusal and passes as it is.
func (t *Tiles) failed(err error) error {
	var refused *Refusal
	if errors.As(t.err, &refused) {
		return t.err
	}
	if t.err != nil {
		return fmt.Errorf("%w: %w", ErrRead, t.err)
	}
	return refuse("", BlameTiles, "they do not lead to the root of the head: %v", err)
}

// tileReader reads tiles for package tlog, and keeps the error.
type tileReader struct{ t *Tiles }

// Height implements tlog.TileReader.
func (tileReader) Height() int { return TileBits }

// SaveTiles implements tlog.TileReader.
func (tileReader) SaveTiles([]tlog.Tile, [][]byte) {}

// ReadTiles implements tlog.TileReader.
func (r tileReader) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	list := make([][]byte, len(tiles))
	for i, tile := range tiles {
		data, err := readTile(r.t.read, tile.L, uint64(tile.N), tile.W)
		if err != nil {
			r.t.err = err
			return nil, err
		}
		list[i] = data
	}
	return list, nil
}

// readTile reads a tile; of a partial one the full one has the beginning, and may have taken its
// place. A tile of another length than its name says is a Refusal with the byte at which it ends,
// or should.
func readTile(read Read, level int, n uint64, w int) ([]byte, error) {
	size := w * HashBytes
	if level == Entries {
		size = w * EntryBytes
	}
	name := TilePath(level, n, w)
	data, err := read(name)
	if errors.Is(err, fs.ErrNotExist) && w < TileHashes {
		data, err = read(TilePath(level, n, TileHashes))
		if err == nil && len(data) >= size {
			return data[:size], nil
		}
	}
	if err != nil {
		return nil, err
	}
	if len(data) != size {
		return nil, &Refusal{Where: fmt.Sprintf("%s byte %d", name, min(len(data), size)),
			Why: fmt.Sprintf("it has %d bytes, want %d", len(data), size), Blames: BlameTiles}
	}
	return data, nil
}
