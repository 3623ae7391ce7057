package evidence

import (
	"context"
	"errors"
	"fmt"

	"posttrade/journal/evidence/verify"
)

// resume returns a follower that stands where the files of the log end, if they agree with each
// other and with the newest signed head. If they do not, or there are none, it returns one at the
// beginning: it finds out which file contradicts the journal, and makes those that are missing.
//
// whole says that it begins at the beginning, so that following it compares everything. The files
// are first read without writing; only when they agree is the tree built on from them.
func (l *Log) resume(ctx context.Context) (f *follower, whole bool, err error) {
	size := l.published().Size
	usable := false
	if size > 1 && l.verifyNewest() == nil {
		if f, err = l.feed(size, l.compareTile); err != nil && !isContradiction(err) {
			return nil, false, err
		}
		usable = err == nil && f.tree.Size == size
		err = errors.Join(closeOf(f), ctx.Err())
		if err != nil && ctx.Err() != nil {
			return nil, false, err
		}
	}
	n := uint64(0)
	if usable {
		n = size
	}
	if f, err = l.feed(n, l.put); err == nil && n == 0 {
		err = f.genesis()
	}
	if err == nil {
		err = f.begin(ctx)
	}
	if err != nil {
		return nil, false, errors.Join(err, closeOf(f))
	}
	return f, n == 0, nil
}

// closeOf is close of a follower that may be nil.
func closeOf(f *follower) error {
	if f == nil {
		return nil
	}
	return f.close()
}

// errUsable: the files cannot be gone on from.
var errUsable = errors.New("a leaf is not in the files")

// feed builds a tree from the entry bundles, up to a number of leaves.
//
// The roots of the published heads are compared on the way, so a changed entry is found at the next
// head. The tree has fewer leaves than asked for where an entry bundle is missing. Cost: it reads
// and hashes all entries; no command is replayed.
func (l *Log) feed(size uint64, put func(int, uint64, int, []byte) error) (f *follower, err error) {
	if f, err = l.newFollower(put); err != nil {
		return nil, err
	}
	err = l.eachEntry(size, func(index uint64, leaf []byte) error {
		if _, err := verify.ParseLeaf(index, leaf); err != nil {
			return fmt.Errorf("%w: %w: %w", errUsable, err, ErrContradiction)
		}
		if err := f.tree.Add(leaf); err != nil {
			return err
		}
		for f.due && f.published.at.Size == f.tree.Size {
			if err := f.compareRoot(); err != nil {
				return err
			}
			if f.published.at.Head > f.behind() && f.tree.Size == size {
				return nil // compared when the shadow comes there
			}
			if err := f.nextKept(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// eachEntry gives the leaves in the entry bundles to f, up to size or to the first that is missing.
// f may use the bytes until it returns: they lie in the bundle, each behind its length of two
// bytes.
func (l *Log) eachEntry(size uint64, f func(index uint64, leaf []byte) error) error {
	for index := uint64(0); index < size; {
		w := int(min(size-index, verify.TileHashes))
		bundle, err := l.dir.tile(verify.Entries, index/verify.TileHashes, w)
		if errors.Is(err, ErrNoTile) {
			return nil
		}
		if err != nil {
			return err
		}
		for ; len(bundle) > 0; bundle = bundle[verify.EntryBytes:] {
			if err := f(index, bundle[2:verify.EntryBytes]); err != nil {
				return err
			}
			index++
		}
	}
	return nil
}

// compareTile is put without writing. A tile that is missing is no contradiction: it is made again.
func (l *Log) compareTile(level int, n uint64, w int, data []byte) error {
	found, err := l.dir.tile(level, n, w)
	if errors.Is(err, ErrNoTile) {
		return nil
	}
	if err == nil && string(found) != string(data) {
		err = fmt.Errorf("evidence: %s: %w", verify.TilePath(level, n, w), ErrContradiction)
	}
	return err
}

// isContradiction reports an error that stops the log; any other one is tried again.
func isContradiction(err error) bool { return errors.Is(err, ErrContradiction) }
