package verify

import (
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"
)

// Read reads a file of a log by its name below the log: checkpoint, tile/0/000. The error of a file
// that is not there wraps fs.ErrNotExist.
//
// Any other error counts as unreadable, so nothing is proven and nothing refuted.
type Read func(name string) ([]byte, error)

// Extension is what a comparison of two heads has shown: the older one is a prefix of the newer
// one.
type Extension struct {
	Old, New Checkpoint
	// Upto is the last command that the comparison covers: behind it there is the older head's open
	// leaf, whose records are in no tile.
	Upto uint64
	// Behind are the files of a folder that New does not cover as a whole, ascending: nothing is
	// proven of what it does not cover.
	Behind []string
}

// TwoSnapshots is the sequence of a snapshot of which the two heads name different files; 0: there
// is none. It is no contradiction: another build may write the same state as other bytes, and heads
// of two members, or of a restored log, are then as different.
func (e *Extension) TwoSnapshots() uint64 {
	if e.Old.Snapshot == e.New.Snapshot && !e.Old.Names(&e.New) {
		return e.New.Snapshot
	}
	return 0
}

// String is one line for people.
func (e *Extension) String() string {
	text := fmt.Sprintf("the head at sequence %d is a prefix of the log %s at sequence %d", e.Old.Head,
		e.New.Origin, e.New.Head)
	if e.Upto < e.Old.Head {
		text += fmt.Sprintf("; sequences %d to %d were in its open leaf and are not compared: "+
			"a bundle of them proves them", e.Upto+1, e.Old.Head)
	}
	if seq := e.TwoSnapshots(); seq > 0 {
		text += fmt.Sprintf("; of the snapshot at sequence %d they name two files, SHA-256 %x and %x: "+
			"of two builds, or of two states", seq, e.Old.SnapshotSHA256, e.New.SnapshotSHA256)
	}
	return text
}

// compareHeads finds what two heads say against each other without a tile. A shorter newer head is
// a refusal: a log only grows.
func compareHeads(old, new *Checkpoint) error {
	switch {
	case old.Origin != new.Origin:
		return refuse("", BlameOld, "it is of the log %q, the newer one of %q", old.Origin, new.Origin)
	case new.Size < old.Size || new.Head < old.Head:
		return refuse(fmt.Sprintf("sequence %d", new.Head+1), BlameLog,
			"the log ends at sequence %d, the older head covers %d: its tail is cut off", new.Head, old.Head)
	case new.Size == old.Size && new.Root != old.Root:
		return twoRoots(old, new)
	case new.Head == old.Head && new.HeadRoot != old.HeadRoot:
		return refuse(fmt.Sprintf("sequences %d to %d", headFloor(old.Size)+1, old.Head), BlameLog,
			"two heads at sequence %d have the roots %x and %x", old.Head, old.HeadRoot, new.HeadRoot)
	}
	return nil
}

// twoRoots refuses two heads of one size with two roots.
func twoRoots(old, new *Checkpoint) error {
	return refuse(covered(old.Size), BlameLog, "two heads of %d leaves have the roots %x and %x",
		old.Size, old.Root, new.Root)
}

// covered names the commands that the leaves of a tree cover.
func covered(size uint64) string { return fmt.Sprintf("sequences 1 to %d", headFloor(size)) }

// extension is the result of a comparison that holds.
func extension(old, new *Checkpoint) *Extension {
	e := &Extension{Old: *old, New: *new, Upto: headFloor(old.Size)}
	if old.Head == new.Head {
		e.Upto = old.Head
	}
	return e
}

// Extends proves that the log of a newer note continues that of an older one. It reads only the
// tiles that the proof needs, and believes none of them. Both notes must be signed.
//
// The error is a *Refusal, or wraps ErrRead when a tile cannot be read.
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

// blame names another culprit in a Refusal: Open does not know which of two notes it has opened.
func blame(err error, culprit string) error {
	var refused *Refusal
	if errors.As(err, &refused) {
		return &Refusal{Where: refused.Where, Why: refused.Why, Blames: culprit}
	}
	return err
}

// IsPrefix proves that the tree of old is the beginning of the tree of new. An empty tree is that
// of any; two trees of one size have one root. It costs some tiles, not all.
func IsPrefix(old, new *Checkpoint, read Read) error {
	switch {
	case old.Size == new.Size && old.Root != new.Root:
		return twoRoots(old, new)
	case old.Size == 0 || old.Size == new.Size:
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
