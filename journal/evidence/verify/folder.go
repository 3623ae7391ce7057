package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// Folder proves a whole folder of a log: every byte of every tile that its head covers, names being
// all its files but checkpoint. With an older note it also proves that its head is a prefix; nil:
// none.
//
// The error is a *Refusal, or wraps ErrRead. Files behind the head, which a running log has, and
// those that are no tiles are not judged, and named in the result. So is a tile of which the head
// covers only the beginning. Cost: it reads every file once and hashes every leaf.
func (k *Keys) Folder(oldNote []byte, names []string, read Read) (*Extension, error) {
	text, err := read("checkpoint")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	if !LooksLikeNote(text) {
		return nil, fmt.Errorf("%w: its checkpoint is not a note", ErrRead)
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
	x := extension(&old, &head)
	x.Behind = slices.Sorted(maps.Keys(f.pending))
	return x, nil
}

// folder builds the tree of a folder from its entry bundles and compares every tile with it. The
// leaves are the ground: they lead to the signed root, so each byte of any other tile follows from
// them.
type folder struct {
	read Read
	// head is the folder's own, old the one that was kept; the same one when none was given.
	head, old *Checkpoint
	// tree is built from the entry bundles; its Put compares.
	tree Tree
	// pending has the names of files that have not been compared.
	pending map[string]bool
}

// check adds the leaves one after the other. The tree gives each full tile to compare as it is
// made, and the partial ones at the end.
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

// bundle reads an entry bundle: w leaves, each with its length.
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
//
// A tile that no file has is an error: the log is not whole. A file may be wider than the head
// needs; only the part that the head covers is compared, and the file stays pending for the rest.
func (f *folder) compare(level int, n uint64, w int, data []byte) error {
	unit := len(data) / w
	found := false
	for width := 1; width <= TileHashes; width++ {
		name := TilePath(level, n, width)
		if !f.pending[name] {
			continue
		}
		if width <= w {
			delete(f.pending, name)
		}
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
