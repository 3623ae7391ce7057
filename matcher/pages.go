//perf:hot

package matcher

import (
	"math/bits"

	"posttrade/ring"
)

// The prices of a security are the leaves of a radix tree: 64 children a node, six bits of the key
// a step, and nodes only where prices are. A node exists only where two prices differ, so the
// spread of the prices sets the height of the tree: one leaf for 64 neighbouring ticks, one step
// more for 4,096, two for 262,144, ten for the whole of int64.

// node names a page: its shift in the upper 6 bits, its number below. A page of shift s
// distinguishes its children by bits s to s+5 of the key. The children of a leaf are levels, and
// its shift is 0. Numbers start at 1: node 0 is no page.
type node uint32

// A leaf or an inner page has a child for each value of a digit; 64 of them are marked in one word.
// A node has 32 bits: 6 for the shift, which is at most 60, and the rest for the number, so there
// are at most 2^26 pages of a kind.
const (
	fanout    = 64
	digitBits = 6
	numBits   = 26
	numMask   = 1<<numBits - 1
	nowhere   = 1       // the base of leaf 0: no leaf's key has it
	signBit   = 1 << 63 // a key is a price with its sign bit flipped: unsigned order
)

// shift and number split a node. A leaf's shift is 0, so a leaf's node is its number.
func (n node) shift() uint    { return uint(n) >> numBits }
func (n node) number() uint32 { return uint32(n) & numMask }

// digit returns the child of a page with the given shift that the key belongs to.
func digit(key uint64, shift uint) uint32 {
	return uint32(key>>(shift&63)) & (fanout - 1)
}

// level is the queue of resting orders at one price, oldest first. All of them are of one side.
// Four levels share a cache line; neighbouring prices are neighbours in memory.
//
// Invariants (ladder.check): head == 0 exactly when tail == 0 and open == 0; open is the sum of
// leaves from head to tail; an empty level is all zero.
type level struct {
	head, tail ix
	open       int64
}

// page is the head of a leaf or of an inner node.
//
// Invariants (ladder.check): bits marks the levels or children that are not empty and is never 0;
// an inner page has at least two children; base is the lowest key below it.
type page struct {
	// A bit per child: in a leaf the levels that hold an order, in an inner page the children that
	// exist. The lowest and the highest set bit are the best prices below the page.
	bits uint64
	base uint64
	up   node   // the page above, 0 for the root; also links the free list
	tree uint32 // of a leaf in use the number of its ladder's tree, else 0
	_    [8]byte
}

// pages is the memory of all ladders of an engine: levels, leaves and inner nodes by number. It
// never runs out: a leaf holds at least one resting order and there are fewer inner pages than
// leaves, so it reserves both for the largest number of orders. It touches memory only when a page
// is used.
//
// A freed page is all zero except for its link, so it needs no clearing.
type pages struct {
	levels []level // leaf number * 64 + slot
	leaves []page
	inners []page
	kids   []node // inner number * 64 + slot

	freeLeaf, freeInner node
	highLeaf, highInner uint32 // highest numbers ever used
	trees               uint32 // numbers assigned to ladders

	// visits counts the pages that descents and climbs look at. The tests bound it instead of time.
	visits uint64

	arena ring.Arena
}

// newLeaf takes a leaf that was freed last, else the next one that was never used. Its levels are
// all zero: each was vacated before the leaf was freed.
func (g *pages) newLeaf(tree uint32, base uint64) node {
	n := g.freeLeaf
	if n == 0 {
		g.highLeaf++
		n = node(g.highLeaf)
	} else {
		g.freeLeaf = g.leaves[n].up
	}
	g.leaves[n] = page{base: base, tree: tree}
	return n
}

// newInner is newLeaf for an inner page. Its children are all zero, as those of a leaf are.
func (g *pages) newInner(base uint64, shift uint) node {
	n := g.freeInner
	if n == 0 {
		g.highInner++
		n = node(g.highInner)
	} else {
		g.freeInner = g.inners[n].up
	}
	g.inners[n] = page{base: base}
	return n | node(shift<<numBits)
}

// head returns the head of any page.
func (g *pages) head(n node) *page {
	if n.shift() == 0 {
		return &g.leaves[n]
	}
	return &g.inners[n.number()]
}

// adopt makes child the child of the inner page parent at the digit of its base. What was there
// before is not freed: the caller has taken it over.
func (g *pages) adopt(parent, child node) {
	h := g.head(child)
	h.up = parent
	slot := digit(h.base, parent.shift())
	number := parent.number()
	g.kids[number*fanout+slot] = child
	g.inners[number].bits |= 1 << slot
}

// replace puts young in the place of old: in the page above it, or at the root.
func (g *pages) replace(root *node, old, young node) {
	up := g.head(old).up
	if up == 0 {
		*root = young
		g.head(young).up = 0
		return
	}
	g.adopt(up, young)
}

// plant returns the leaf of key and makes it if there is none. It is the slow path of a ladder that
// needs a level: unlike rest it compares at every step. There are three ways to make a leaf: as the
// root of an empty tree, below an inner page that has no child at the digit, or beside a page that
// does not share the key's upper digits (part).
//
// The steps are bounded by the digits of a key, eleven.
func (g *pages) plant(root *node, tree uint32, key uint64) node {
	n := *root
	if n == 0 {
		*root = g.newLeaf(tree, key&^(fanout-1))
		return *root
	}
	for {
		g.visits++
		h := g.head(n)
		shift := n.shift()
		if apart := h.base ^ key; apart>>(shift+digitBits) != 0 {
			return g.part(root, n, tree, key, apart)
		}
		if shift == 0 {
			return n
		}
		kid := g.kids[n.number()*fanout+digit(key, shift)]
		if kid == 0 {
			leaf := g.newLeaf(tree, key&^(fanout-1))
			g.adopt(n, leaf)
			return leaf
		}
		n = kid
	}
}

// part puts an inner page in the place of page n, with n and a new leaf for key below it. apart is
// the bits in which the keys of the two differ. The new page branches at the highest digit that
// differs, so no page is ever made at which nothing branches.
func (g *pages) part(root *node, n node, tree uint32, key, apart uint64) node {
	shift := uint(bits.Len64(apart)-1) / digitBits * digitBits
	over := shift + digitBits
	inner := g.newInner(key>>over<<over, shift)
	leaf := g.newLeaf(tree, key&^(fanout-1))
	g.replace(root, n, inner)
	g.adopt(inner, n)
	g.adopt(inner, leaf)
	return leaf
}

// prune removes a leaf after its last level has become empty, and the page above it when only one
// child is left there: that child takes its place. So an inner page always has two children, and
// there are fewer inner pages than leaves.
func (g *pages) prune(root *node, leaf node) {
	h := &g.leaves[leaf]
	up, base := h.up, h.base
	h.up, h.tree = g.freeLeaf, 0
	g.freeLeaf = leaf
	if up == 0 {
		*root = 0
		return
	}
	g.visits++
	number, slot := up.number(), digit(base, up.shift())
	parent := &g.inners[number]
	g.kids[number*fanout+slot] = 0
	parent.bits &^= 1 << slot
	if parent.bits&(parent.bits-1) != 0 {
		return
	}
	// One child is left: it takes the place of the page, which is freed all zero but for its link.
	last := &g.kids[number*fanout+uint32(bits.TrailingZeros64(parent.bits))]
	g.replace(root, up, *last)
	*last = 0
	parent.bits = 0
	parent.up = g.freeInner
	g.freeInner = node(number)
}

// above returns the next occupied level over a level, 0 when there is none. Usually it is in the
// same leaf: one load. The level itself need not be occupied, but its leaf must be in use.
func (g *pages) above(at uint32) uint32 {
	if m := g.leaves[at/fanout].bits & (^uint64(1) << (at % fanout)); m != 0 {
		return at&^(fanout-1) | uint32(bits.TrailingZeros64(m))
	}
	return g.climbAbove(at / fanout)
}

// below returns the next occupied level under a level, 0 when there is none.
func (g *pages) below(at uint32) uint32 {
	if m := g.leaves[at/fanout].bits & (1<<(at%fanout) - 1); m != 0 {
		return at&^(fanout-1) | uint32(bits.Len64(m)-1)
	}
	return g.climbBelow(at / fanout)
}

// climbAbove is the slow path of above: it goes up to a page that has a later child, then down
// along the first children.
func (g *pages) climbAbove(leaf uint32) uint32 {
	h := &g.leaves[leaf]
	base, n := h.base, h.up
	for n != 0 {
		g.visits++
		p := &g.inners[n.number()]
		if m := p.bits & (^uint64(1) << digit(base, n.shift())); m != 0 {
			return g.lowest(g.kids[n.number()*fanout+uint32(bits.TrailingZeros64(m))])
		}
		n = p.up
	}
	return 0
}

// climbBelow is the slow path of below: up to a page that has an earlier child, then down along the
// last children.
func (g *pages) climbBelow(leaf uint32) uint32 {
	h := &g.leaves[leaf]
	base, n := h.base, h.up
	for n != 0 {
		g.visits++
		p := &g.inners[n.number()]
		if m := p.bits & (1<<digit(base, n.shift()) - 1); m != 0 {
			return g.highest(g.kids[n.number()*fanout+uint32(bits.Len64(m)-1)])
		}
		n = p.up
	}
	return 0
}

// lowest returns the lowest occupied level below a page. The page is not empty: every page in use
// has at least one occupied level below it.
func (g *pages) lowest(n node) uint32 {
	for n.shift() != 0 {
		g.visits++
		m := g.inners[n.number()].bits
		n = g.kids[n.number()*fanout+uint32(bits.TrailingZeros64(m))]
	}
	return uint32(n)*fanout + uint32(bits.TrailingZeros64(g.leaves[n].bits))
}

// highest returns the highest occupied level below a page.
func (g *pages) highest(n node) uint32 {
	for n.shift() != 0 {
		g.visits++
		m := g.inners[n.number()].bits
		n = g.kids[n.number()*fanout+uint32(bits.Len64(m)-1)]
	}
	return uint32(n)*fanout + uint32(bits.Len64(g.leaves[n].bits)-1)
}

// price returns the price of a level in ticks: the base of its leaf with its slot as the last
// digit. The price of level 0, which is no level, means nothing.
func (g *pages) price(at uint32) int64 {
	return int64((g.leaves[at/fanout].base | uint64(at%fanout)) ^ signBit)
}
