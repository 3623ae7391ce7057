//perf:hot

package blotter

import (
	"math/bits"

	"posttrade/ring"
)

// The levels of one side of a book are the leaves of a B+ tree ordered from the best price to the
// worst. Prices may lie anywhere in the int64 range and any distance apart: cost and memory depend
// on the number of levels only.

// fanout is the most entries of a node: one look compares with all of them. A node with fewer than
// fewest entries looks for a neighbour to merge with. mostMerged leaves a merged node room to grow,
// so that a level that comes and goes does not split and merge at every turn. maxHeight is far
// beyond the height that any number of levels needs.
const (
	fanout     = 32
	fewest     = 8
	mostMerged = 24
	maxHeight  = 16
)

// branch is a node. In a leaf, kids are levels and keys are their ranks. In a node above, kids are
// nodes; keys[i] is at most every key below kids[i] and above every key below kids[i-1]. keys[0] of
// a node above is never read.
type branch struct {
	count uint32
	_     uint32
	keys  [fanout]uint64
	kids  [fanout]uint32
}

// tree is one side of a book. The zero tree is empty. The writer changes it only between Begin and
// End of its lock.
type tree struct {
	root   uint32 // branch, 0 = empty
	height uint32 // 1 = the root is a leaf
	count  int64  // levels

	lock     ring.SeqLock // of all levels and branches of the side
	inputSeq uint64       // command of the last change
}

// branches is the memory of all trees. The first branch is never used; a free branch links the next
// in kids[0]. A reader may follow a link into a branch that was freed meanwhile: it copies without
// harm, and the side's lock tells it to start again.
type branches struct {
	all  []branch
	free uint32
	top  uint32 // highest ever used
	// path is the path to the leaf of the last search: the branches by height - 1, and which kid of
	// each was taken.
	path [maxHeight]step
}

// step is one branch of a path, and the place of the kid that was taken.
type step struct {
	branch uint32
	kid    uint32
}

// upTo returns how many of the keys from place from on are at most key. It compares with all of
// them, which takes less time than one mispredicted branch of a bisection.
func (b *branch) upTo(key uint64, from uint32) uint32 {
	var above uint64
	for _, k := range b.keys[from:b.count] {
		_, borrow := bits.Sub64(key, k, 0)
		above += borrow
	}
	return b.count - from - uint32(above)
}

// search finds the level of a key, 0 if there is none, and stores the path to it in path. Writer
// only: readers have a search of their own that trusts nothing (copyLeaf).
func (m *branches) search(t *tree, key uint64) uint32 {
	at := t.root
	if at == 0 {
		return 0
	}
	for h := t.height - 1; h > 0; h-- {
		b := &m.all[at]
		kid := b.upTo(key, 1)
		m.path[h%maxHeight] = step{branch: at, kid: kid}
		at = b.kids[kid%fanout]
	}
	leaf := &m.all[at]
	n := leaf.upTo(key, 0)
	if n == 0 { // below all of them
		m.path[0] = step{branch: at}
		return 0
	}
	m.path[0] = step{branch: at, kid: n - 1}
	if leaf.keys[(n-1)%fanout] != key {
		return 0
	}
	return leaf.kids[(n-1)%fanout]
}

// insert adds the level of a key, directly after a search that did not find it: it uses the path. A
// full branch is split, from the leaf upwards as far as branches are full; a split root makes the
// tree higher.
func (m *branches) insert(t *tree, key uint64, level uint32) {
	t.count++
	if t.root == 0 {
		store(&t.root, m.take())
		store(&t.height, 1)
		m.all[t.root].insert(0, key, level)
		return
	}
	kid := level
	for h := uint32(0); h < t.height; h++ {
		s := m.path[h]
		b := &m.all[s.branch]
		to := s.kid + 1
		if h == 0 && key < b.keys[0] {
			to = 0
		}
		if b.count < fanout {
			b.insert(to, key, kid)
			return
		}
		right := m.split(b)
		if to <= b.count {
			b.insert(to, key, kid)
		} else {
			m.all[right].insert(to-b.count, key, kid)
		}
		key, kid = m.all[right].keys[0], right
	}
	old := t.root
	store(&t.root, m.take())
	b := &m.all[t.root]
	store(&b.count, 1)
	store(&b.kids[0], old)
	b.insert(1, key, kid)
	store(&t.height, t.height+1)
}

// split moves the worse half of a full branch to a new one.
func (m *branches) split(b *branch) uint32 {
	right := m.take()
	r := &m.all[right]
	const half = fanout / 2
	move(r.keys[:half], b.keys[half:])
	move(r.kids[:half], b.kids[half:])
	store(&b.count, half)
	store(&r.count, half)
	return right
}

// remove removes a key, directly after the search that found it. A branch that has become small
// merges with a neighbour, from the leaf upwards; a root with one kid gives its place to the kid.
func (m *branches) remove(t *tree) {
	t.count--
	s := m.path[0]
	m.all[s.branch].remove(s.kid)
	for h := uint32(1); h < t.height; h++ {
		b := &m.all[m.path[h-1].branch]
		if b.count >= fewest || !m.merge(m.path[h], h == 1) {
			break
		}
	}
	for t.height > 1 && m.all[t.root].count == 1 {
		old := t.root
		store(&t.root, m.all[old].kids[0])
		store(&t.height, t.height-1)
		m.put(old)
	}
	if m.all[t.root].count == 0 {
		m.put(t.root)
		store(&t.root, 0)
		store(&t.height, 0)
	}
}

// merge joins the kid at s with a neighbour when both fit in one branch, or
// drops it when it is empty. It reports whether the branch at s has lost an entry.
func (m *branches) merge(s step, leaves bool) bool {
	up := &m.all[s.branch]
	small := m.all[up.kids[s.kid]].count
	switch {
	case small == 0:
		m.put(up.kids[s.kid])
		up.remove(s.kid)
	case s.kid+1 < up.count && small+m.all[up.kids[s.kid+1]].count <= mostMerged:
		m.join(up, s.kid, leaves)
	case s.kid > 0 && small+m.all[up.kids[s.kid-1]].count <= mostMerged:
		m.join(up, s.kid-1, leaves)
	default:
		return false
	}
	return true
}

// join appends the kid after the given one to it.
func (m *branches) join(up *branch, kid uint32, leaves bool) {
	left, right := &m.all[up.kids[kid]], up.kids[kid+1]
	r := &m.all[right]
	if !leaves {
		store(&r.keys[0], up.keys[kid+1])
	}
	move(left.keys[left.count:], r.keys[:r.count])
	move(left.kids[left.count:], r.kids[:r.count])
	store(&left.count, left.count+r.count)
	m.put(right)
	up.remove(kid + 1)
}

// insert puts an entry at place to of a branch that is not full.
func (b *branch) insert(to uint32, key uint64, kid uint32) {
	move(b.keys[to+1:b.count+1], b.keys[to:b.count])
	move(b.kids[to+1:b.count+1], b.kids[to:b.count])
	store(&b.keys[to], key)
	store(&b.kids[to], kid)
	store(&b.count, b.count+1)
}

// remove closes the gap of an entry.
func (b *branch) remove(at uint32) {
	move(b.keys[at:], b.keys[at+1:b.count])
	move(b.kids[at:], b.kids[at+1:b.count])
	store(&b.count, b.count-1)
}

// take returns an empty branch. There is one for every two levels and one for every side; merging
// keeps the number in use below that (see newLevels).
func (m *branches) take() uint32 {
	at := m.free
	if at != 0 {
		m.free = m.all[at].kids[0]
	} else {
		m.top++
		at = m.top
	}
	store(&m.all[at].count, 0)
	return at
}

// put frees a branch.
func (m *branches) put(at uint32) {
	store(&m.all[at].kids[0], m.free)
	m.free = at
}
