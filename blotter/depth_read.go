package blotter

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"

	"posttrade/ring"
)

// A reader copies a side of a book branch by branch. It copies each branch whole under the side's
// lock, which takes well below a microsecond. So a few tries are enough however fast the book
// changes, and the writer does no work for the copy. The copies are of different moments. While a
// reader reads, the writer notes every change of a level. The reader applies to each copy the
// changes since that copy, up to the end of one command; then all copies are of that moment.
//
// The versions of a side's lock number its changes. A hole in the numbers of the noted changes
// means that some were not noted, which may happen to the first ones after a reader has begun. The
// reader then begins again.

const (
	// copyTries bounds the tries for one branch, and momentTries bounds those for a whole book. After
	// them the reader asks the writer for the book. It does not wait longer for a writer that has lost
	// its core in the middle of a change.
	copyTries   = 256
	momentTries = 8
	// endTries bounds the wait for the end of a command of which a part is copied.
	endTries = 64
)

// copied is a level with its place in the order of its side: its rank.
type copied struct {
	key uint64
	Level
}

// sideCopy is a reader's unfinished copy of a side of a book. Its levels ascend by key, so best
// first; a later piece begins where the one before ended.
type sideCopy struct {
	side    uint32
	levels  []copied
	copies  int    // branches
	version uint64 // of the side when the first branch was copied
	until   uint64 // keys from here on are not copied, unless ends
	ends    bool   // no keys follow
	newest  uint64 // command of the newest change in any copy
}

// bookCopy is a reader's unfinished copy of a book, on the reader's own memory. Both sides are from
// one set of tables.
type bookCopy struct {
	at    *tables // from which the copies are made
	sides [2]sideCopy
	leaf  [fanout]copied
	most  int // levels per side that the reader wants
}

// readDepth copies a book as it is after a command. It returns false when it fails, for example
// because the writer has stopped in the middle of a command or of a change. While it runs the
// writer notes its changes, which costs the writer a few stores each.
func (v *Views) readDepth(security uint32, d *Depth) bool {
	users := &v.levels.changes.users
	users.Add(1)
	defer users.Add(-1)
	b := bookCopy{most: cap(d.Bids)}
	for range momentTries {
		if sequence, ok := b.take(v, security); ok {
			d.Sequence = sequence
			d.Bids, d.Asks = b.sides[0].best(d.Bids), b.sides[1].best(d.Asks)
			return true
		}
	}
	return false
}

// take makes one try and returns the last command that the copy of the book contains.
func (b *bookCopy) take(v *Views, security uint32) (sequence uint64, ok bool) {
	b.at = v.tables.Load()
	if int(security<<1|1) >= len(b.at.trees) {
		return 0, false // the security was registered after that
	}
	first := v.levels.changes.head.Load()
	for i := range b.sides {
		s := &b.sides[i]
		*s = sideCopy{side: security<<1 | uint32(i), levels: s.levels[:0]}
		for !s.ends && len(s.levels) < b.most+fanout { // changes may remove some levels
			if !b.copyPiece(s) {
				return 0, false
			}
		}
	}
	if sequence, ok = v.endOf(max(b.sides[0].newest, b.sides[1].newest)); !ok {
		return 0, false
	}
	for i := range b.sides {
		s := &b.sides[i]
		if !s.bringUp(&v.levels, &b.at.trees[s.side], first, sequence) ||
			len(s.levels) < b.most && !s.ends {
			return 0, false
		}
	}
	return sequence, v.tables.Load() == b.at // else the tables were moved during the copy
}

// endOf waits for the end of a command and returns the last command that has ended, which may be a
// later one.
func (v *Views) endOf(command uint64) (applied uint64, ok bool) {
	for range endTries {
		if applied = v.Applied(); applied >= command {
			return applied, true
		}
		runtime.Gosched()
	}
	return 0, false
}

// copyPiece copies the next branch of levels of a side: the one to which s.until belongs. It takes
// over only the levels from there on, because the branch may have merged with the one copied
// before. It returns false when every try met a change.
func (b *bookCopy) copyPiece(s *sideCopy) bool {
	t := &b.at.trees[s.side]
	for range copyTries {
		version, still := t.lock.Read()
		if !still {
			ring.Pause()
			continue
		}
		n, until, more := b.at.copyLeaf(t, s.until, &b.leaf)
		command := atomic.LoadUint64(&t.inputSeq)
		if t.lock.Retry(version) {
			continue
		}
		if s.copies == 0 {
			s.version = version
		}
		s.copies++
		for i := range b.leaf[:n] {
			c := &b.leaf[i]
			c.key = rank(s.side, c.Px)
			if c.key >= s.until {
				s.levels = append(s.levels, *c)
			}
		}
		s.until, s.ends, s.newest = until, !more, max(s.newest, command)
		return true
	}
	return false
}

// copyLeaf copies the levels of the branch to which a key belongs, and returns the key at which the
// next branch begins. The side may change meanwhile, so the values read are only copied, and not
// used, until the lock has been checked again.
func (from *tables) copyLeaf(t *tree, key uint64, to *[fanout]copied) (
	n int, until uint64, more bool) {
	all, levels := from.branches, from.levels
	at := atomic.LoadUint32(&t.root)
	if at == 0 {
		return 0, 0, false
	}
	for h := min(atomic.LoadUint32(&t.height), maxHeight); h > 1; h-- {
		b := &all[int(at)%len(all)]
		count := min(atomic.LoadUint32(&b.count), fanout)
		kid := uint32(0)
		for next := uint32(1); next < count; next++ {
			if bound := atomic.LoadUint64(&b.keys[next]); bound > key {
				until, more = bound, true
				break
			}
			kid = next
		}
		at = atomic.LoadUint32(&b.kids[kid])
	}
	leaf := &all[int(at)%len(all)]
	count := min(atomic.LoadUint32(&leaf.count), fanout)
	for i := range count {
		lv := &levels[int(atomic.LoadUint32(&leaf.kids[i]))%len(levels)]
		to[i].Level = Level{Px: loadInt(&lv.px), Qty: loadInt(&lv.qty),
			Orders: atomic.LoadUint32(&lv.orders)}
	}
	return int(count), until, more
}

// loadInt loads a number that store has stored, while the writer may be storing another one.
func loadInt(n *int64) int64 { return atomic.LoadInt64(n) }

// bringUp brings all copies to the end of a command by applying the changes from number first on. A
// change states its level in full, so applying it to a later copy does no harm as long as the last
// change of the level is applied last. It returns false when a change is missing.
func (s *sideCopy) bringUp(l *levels, t *tree, first int64, command uint64) bool {
	// Read after command has ended: none of its changes lies beyond.
	now, _ := t.lock.Read()
	last := now &^ 1
	version := s.version // the version after the change applied last
	head := l.changes.head.Load()
	var is change
	for at := first; at < head && version < last; at++ {
		l.changes.read(at, &is)
		if !l.changes.keeps(at) {
			return false
		}
		if is.side != uint64(s.side) || is.version <= version {
			continue
		}
		if is.version != version+2 {
			return false
		}
		version += 2
		if is.inputSeq <= command {
			s.apply(&is)
		}
	}
	return version == last
}

// apply sets a level to the state in a change. A level without orders goes. A change beyond what
// has been copied is left out: the copy ends before it.
func (s *sideCopy) apply(is *change) {
	key := rank(s.side, int64(is.px))
	if !s.ends && key >= s.until {
		return
	}
	at, found := slices.BinarySearchFunc(s.levels, key,
		func(c copied, key uint64) int { return cmp.Compare(c.key, key) })
	switch {
	case is.orders == 0 && found:
		s.levels = slices.Delete(s.levels, at, at+1)
	case is.orders == 0:
	case !found:
		s.levels = slices.Insert(s.levels, at, copied{key: key})
		fallthrough
	default:
		s.levels[at].Level = Level{Px: int64(is.px), Qty: int64(is.qty), Orders: uint32(is.orders)}
	}
}

// best appends the best levels to dst until it is full.
func (s *sideCopy) best(dst []Level) []Level {
	for i := range s.levels[:min(len(s.levels), cap(dst)-len(dst))] {
		dst = append(dst, s.levels[i].Level)
	}
	return dst
}
