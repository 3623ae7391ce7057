//perf:hot

package blotter

import "posttrade/matcher"

// level is what rests at one price of one side of one security.
//
// Invariants (Views.check): orders is at least 1 while it is in its tree.
type level struct {
	px     int64
	qty    int64  // sum of leaves
	orders uint32 // 0 = free; qty then links the free list
	side   uint32 // security << 1 | side: the tree it is in
}

// levels is the aggregated book of every security. Writer only: readers get
// copies (depth.go).
type levels struct {
	all      []level // the first is never used
	free     uint32
	top      uint32 // highest ever used
	trees    []tree // by security << 1 | side
	branches branches
}

// rank orders the prices of a side from best to worst: a buyer's are turned
// round, and both are moved so that unsigned order is theirs.
func rank(side uint32, px int64) uint64 {
	turn := uint64(side&1) - 1 // all ones for a buyer
	return uint64(px) ^ turn ^ 1<<63
}

// add puts an order of leaves onto the level of its price and returns the level.
func (l *levels) add(security uint32, side matcher.Side, px int64, leaves int32) uint32 {
	tree := security<<1 | uint32(side&1)
	key := rank(tree, px)
	at := l.branches.search(&l.trees[tree], key)
	if at == 0 {
		at = l.take()
		l.all[at] = level{px: px, side: tree}
		l.branches.insert(&l.trees[tree], key, at)
	}
	lv := &l.all[at]
	lv.qty += int64(leaves)
	lv.orders++
	return at
}

// reduce takes quantity off a level; the order stays.
func (l *levels) reduce(at uint32, qty int32) { l.all[at].qty -= int64(qty) }

// leave takes an order with what it has left off its level.
func (l *levels) leave(at uint32, leaves int32) {
	lv := &l.all[at]
	lv.qty -= int64(leaves)
	if lv.orders--; lv.orders != 0 {
		return
	}
	t := &l.trees[lv.side]
	l.branches.search(t, rank(lv.side, lv.px))
	l.branches.remove(t)
	lv.qty = int64(l.free)
	l.free = at
}

// take returns a free level: there is one for every order that can rest.
func (l *levels) take() uint32 {
	at := l.free
	if at != 0 {
		l.free = uint32(l.all[at].qty)
		return at
	}
	l.top++
	return l.top
}
