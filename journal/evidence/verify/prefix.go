package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/mod/sumdb/tlog"
)

// Read reads a file of a log by its name below the log: checkpoint, tile/0/000. The error of a file
// that is not there wraps fs.ErrNotExist.
type Read func(name string) ([]byte, error)

// Extension is what a comparison of two heads has shown.
type Extension struct {
	Old, New Checkpoint
	// Upto is the last command that the comparison covers: behind it there is the older head's open
	// leaf, whose records are in no tile.
	Upto uint64
}

// String is one line for people.
func (e *Extension) String() string {
	text := fmt.Sprintf("the head at sequence %d is a prefix of the log %s at sequence %d", e.Old.Head,
		e.New.Origin, e.New.Head)
	if e.Upto < e.Old.Head {
		text += fmt.Sprintf("; sequences %d to %d were in its open leaf and are not compared: "+
			"a bundle of them proves them", e.Upto+1, e.Old.Head)
	}
	return text
}

// compareHeads finds what two heads say against each other without a tile.
func compareHeads(old, new *Checkpoint) error {
	switch {
	case old.Origin != new.Origin:
		return refuse("", BlameOld, "it is of the log %q, the newer one of %q", old.Origin, new.Origin)
	case new.Size < old.Size || new.Head < old.Head:
		return refuse(fmt.Sprintf("sequence %d", new.Head+1), BlameLog,
			"the log ends at sequence %d, the older head covers %d: its tail is cut off", new.Head, old.Head)
	case new.Size == old.Size && new.Root != old.Root:
		return refuse(covered(old.Size), BlameLog, "two heads of %d leaves have the roots %x and %x",
			old.Size, old.Root, new.Root)
	case new.Head == old.Head && new.HeadRoot != old.HeadRoot:
		return refuse(fmt.Sprintf("sequences %d to %d", headFloor(old.Size)+1, old.Head), BlameLog,
			"two heads at sequence %d have the roots %x and %x", old.Head, old.HeadRoot, new.HeadRoot)
	}
	return nil
}

// covered names the commands that the leaves of a tree cover.
func covered(size uint64) string { return fmt.Sprintf("sequences 1 to %d", headFloor(size)) }

func extension(old, new *Checkpoint) *Extension {
	e := &Extension{Old: *old, New: *new, Upto: headFloor(old.Size)}
	if old.Head == new.Head {
		e.Upto = old.Head
	}
	return e
}

// Extends proves that the log of a newer note continues that of an older one. It reads only the
// tiles that the proof needs, and believes none of them.
func (k *Keys) Extends(oldNote, newNote []byte, read Read) (*Extension, error) {
	old, _, err := k.Open(oldNote)
	if err != nil {
		return nil, blame(err, BlameOld)
	}
	new, _, err := k.Open(newNote)
	if err != nil {
		return nil, err
	}
	if err := compareHeads(&old, &new); err != nil {
		return nil, err
	}
	if err := IsPrefix(&old, &new, read); err != nil {
		return nil, err
	}
	return extension(&old, &new), nil
}

// blame names another culprit in a Refusal.
func blame(err error, culprit string) error {
	var refused *Refusal
	if errors.As(err, &refused) {
		return &Refusal{Where: refused.Where, Why: refused.Why, Blames: culprit}
	}
	return err
}

// IsPrefix proves that the tree of old is the beginning of the tree of new.
func IsPrefix(old, new *Checkpoint, read Read) error {
	if old.Size == 0 || old.Size == new.Size {
		return nil
	}
	tiles := NewTiles(new, read)
	proof, err := tlog.ProveTree(int64(new.Size), int64(old.Size), tiles)
	if err != nil {
		return tiles.failed(err)
	}
	if err := tlog.CheckTree(proof, int64(new.Size), tlog.Hash(new.Root), int64(old.Size),
		tlog.Hash(old.Root)); err != nil {
		return refuse(covered(old.Size), BlameLog,
			"the first %d leaves of the log do not lead to the older head's root: history was rewritten",
			old.Size)
	}
	return nil
}

// Tiles reads the hashes of a head's tree from tiles, which prove themselves against the head. It
// is a tlog.HashReader.
type Tiles struct {
	tlog.HashReader
	read Read
	err  error // of read
}

// NewTiles returns the hashes of a head's tree.
func NewTiles(head *Checkpoint, read Read) *Tiles {
	t := &Tiles{read: read}
	t.HashReader = tlog.TileHashReader(tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Root)},
		tileReader{t})
	return t
}

// Leaf proves the data of a leaf.
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

// readTile reads a tile; of a partial one the full one has the beginning.
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

// Folder proves a whole folder of a log: every byte of every tile that its head covers, names being
// all files below tile/. With an older note it also proves that its head is a prefix; nil: none.
func (k *Keys) Folder(oldNote []byte, names []string, read Read) (*Extension, error) {
	text, err := read("checkpoint")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	head, _, err := k.Open(text)
	if err != nil {
		return nil, err
	}
	old := head
	if oldNote != nil {
		if old, _, err = k.Open(oldNote); err != nil {
			return nil, blame(err, BlameOld)
		}
		if err := compareHeads(&old, &head); err != nil {
			return nil, err
		}
	}
	f := folder{read: read, head: &head, old: &old, pending: map[string]bool{}}
	for _, name := range names {
		f.pending[name] = true
	}
	if err := f.check(); err != nil {
		return nil, err
	}
	return extension(&old, &head), nil
}

// folder builds the tree of a folder from its entry bundles and compares every tile with it.
type folder struct {
	read      Read
	head, old *Checkpoint
	tree      Tree
	pending   map[string]bool // files that have not been compared
}

func (f *folder) check() error {
	f.tree.Put = f.compare
	if err := f.atOld(); err != nil {
		return err
	}
	for index := uint64(0); index < f.head.Size; {
		w := int(min(f.head.Size-index, TileHashes))
		bundle, err := f.bundle(index/TileHashes, w)
		if err != nil {
			return err
		}
		for ; len(bundle) > 0; bundle = bundle[EntryBytes:] {
			if err := f.leaf(index, bundle[:EntryBytes]); err != nil {
				return err
			}
			index++
		}
	}
	if err := f.tree.Partials(f.compare); err != nil {
		return err
	}
	if root := f.tree.Root(); root != f.head.Root {
		return refuse(covered(f.head.Size), BlameTiles, "they lead to the root %x, the head has %x", root,
			f.head.Root)
	}
	return nil
}

// bundle reads an entry bundle.
func (f *folder) bundle(n uint64, w int) ([]byte, error) {
	data, err := readTile(f.read, Entries, n, w)
	var refused *Refusal
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("%w: %w", ErrRead, err)
	}
	return data, err
}

// leaf adds an entry: its length in two bytes, then the leaf.
func (f *folder) leaf(index uint64, entry []byte) error {
	where := fmt.Sprintf("%s entry %d", TilePath(Entries, index/TileHashes, TileHashes),
		index%TileHashes)
	if length := int(entry[0])<<8 | int(entry[1]); length != LeafBytes {
		return refuse(where, BlameTiles, "a leaf of %d bytes, want %d", length, LeafBytes)
	}
	if _, err := ParseLeaf(index, entry[2:]); err != nil {
		return refuse(where, BlameTiles, "%v", err)
	}
	if err := f.tree.Add(entry[2:]); err != nil {
		return err
	}
	return f.atOld()
}

// atOld compares the root at the size of the older head.
func (f *folder) atOld() error {
	if f.tree.Size != f.old.Size {
		return nil
	}
	if root := f.tree.Root(); root != f.old.Root {
		if f.old.Size == f.head.Size {
			return nil // the head says the same, and check says what is wrong
		}
		return refuse(covered(f.old.Size), BlameLog,
			"the first %d leaves of the log lead to %x, the older head has %x: history was rewritten",
			f.old.Size, root, f.old.Root)
	}
	return nil
}

// compare compares a tile with what the leaves give, and every narrower one of the same place.
func (f *folder) compare(level int, n uint64, w int, data []byte) error {
	unit := len(data) / w
	found := false
	for width := 1; width <= TileHashes; width++ {
		name := TilePath(level, n, width)
		if !f.pending[name] {
			continue
		}
		delete(f.pending, name)
		text, err := f.read(name)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRead, err)
		}
		covers := min(width, w) * unit // what is behind the head is not covered by it
		if len(text) != width*unit || !bytes.Equal(text[:covers], data[:covers]) {
			return refuse(fmt.Sprintf("%s byte %d", name, differs(text, data)), BlameTiles,
				"it is not what the leaves give")
		}
		found = found || width >= w
	}
	if !found {
		return fmt.Errorf("%w: %s: %w", ErrRead, TilePath(level, n, w), fs.ErrNotExist)
	}
	return nil
}

// differs is the first byte in which a and b differ.
func differs(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
