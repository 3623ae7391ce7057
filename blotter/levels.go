//perf:hot

package blotter

import (
	"posttrade/matcher"
	"posttrade/ring"
)

// level is the sum of the orders that rest at one price of one side of one security.
//
// Invariants (Views.check): orders is at least 1 while the level is in its tree.
type level struct {
	px     int64
	qty    int64  // sum of leaves
	orders uint32 // 0 = free; qty then links the free list
	side   uint32 // security << 1 | side: the tree it is in
}

// levels is the aggregated book of every security. The writer changes a side under its tree's lock,
// and readers copy it piece by piece (depth_read.go). A level is taken from one pool for all books:
// there can be as many as resting orders.
type levels struct {
	all      []level // the first is never used
	free     uint32
	top      uint32 // highest ever used
	trees    []tree // by security << 1 | side
	branches branches
	now      *uint64 // the command being observed
	changes  *changes
}

// changed ends a change of the level at px, which began with Begin of the side's lock, and notes it
// for readers.
func (l *levels) changed(side uint32, px, qty int64, orders uint32) {
	t := &l.trees[side]
	ring.StoreRelease(&t.inputSeq, *l.now)
	if l.changes.users.Load() != 0 {
		under, _ := t.lock.Read()
		l.changes.note(&change{
			side: uint64(side), px: uint64(px), qty: uint64(qty), orders: uint64(orders),
			inputSeq: *l.now, version: under + 1,
		})
	}
	t.lock.End()
}

// rank orders the prices of a side from best to worst: the prices of buyers are reversed, and those
// of both sides are shifted so that unsigned order is the order of rank.
func rank(side uint32, px int64) uint64 {
	turn := uint64(side&1) - 1 // all ones for a buyer
	return uint64(px) ^ turn ^ 1<<63
}

// add adds an order with the quantity leaves to the level of its price and returns the level, which
// the order's row keeps. A price without a level gets one. The search comes before the lock, so
// that readers wait only for the change itself.
func (l *levels) add(security uint32, side matcher.Side, px int64, leaves int32) uint32 {
	tree := security<<1 | uint32(side&1)
	key := rank(tree, px)
	t := &l.trees[tree]
	at := l.branches.search(t, key)
	t.lock.Begin()
	if at == 0 {
		at = l.take()
		l.all[at].reset(px, tree)
		l.branches.insert(t, key, at)
	}
	lv := &l.all[at]
	store(&lv.qty, lv.qty+int64(leaves))
	store(&lv.orders, lv.orders+1)
	l.changed(tree, px, lv.qty, lv.orders)
	return at
}

// reduce subtracts quantity from a level; the order stays. A part of it was filled.
func (l *levels) reduce(at uint32, qty int32) {
	lv := &l.all[at]
	l.trees[lv.side].lock.Begin()
	store(&lv.qty, lv.qty-int64(qty))
	l.changed(lv.side, lv.px, lv.qty, lv.orders)
}

// leave removes an order, with its remaining quantity, from its level. The last order takes the
// level out of its tree and frees it. A reader that still copies the free level finds that the
// side's lock has changed.
func (l *levels) leave(at uint32, leaves int32) {
	lv := &l.all[at]
	t := &l.trees[lv.side]
	t.lock.Begin()
	store(&lv.qty, lv.qty-int64(leaves))
	store(&lv.orders, lv.orders-1)
	if lv.orders != 0 {
		l.changed(lv.side, lv.px, lv.qty, lv.orders)
		return
	}
	l.branches.search(t, rank(lv.side, lv.px))
	l.branches.remove(t)
	store(&lv.qty, int64(l.free))
	l.free = at
	l.changed(lv.side, lv.px, 0, 0)
}

// reset makes a free level the level of a price, without orders. It clears the link of the free
// list, which lies in qty.
func (lv *level) reset(px int64, side uint32) {
	store(&lv.px, px)
	store(&lv.qty, 0)
	store(&lv.orders, 0)
	store(&lv.side, side)
}

// take returns a free level. There is a level for every order that can rest.
func (l *levels) take() uint32 {
	at := l.free
	if at != 0 {
		l.free = uint32(l.all[at].qty)
		return at
	}
	l.top++
	return l.top
}
