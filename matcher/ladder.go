//perf:hot

package matcher

// fillSink receives what a taker does to resting orders, as it happens. It may drop the order that
// a call is about from the pool; it must not touch the ladder.
type fillSink interface {
	// filled: a maker traded qty at px, in ticks. Its leaves are already reduced. If none are left it
	// is off the book, but still in the pool.
	filled(maker ix, px int64, qty int32)
	// prevented: a maker of the taker's own account was taken off the book, with its leaves unchanged.
	// It is still in the pool.
	prevented(maker ix)
}

// top is the best level of one side: its number, 0 when the side is empty, and its price. The price
// is kept beside the number so that a comparison with it reads no page. Of an empty side the price
// means nothing.
type top struct {
	px    int64
	level uint32
}

// ladder is the book of one security: both sides in one tree of prices, which are in ticks and may
// be any int64. It has no limits of its own and allocates nothing; orders and pages are those of
// its engine.
//
// Only the goroutine that owns the engine calls it. newLadder(pool, pages) makes a new one.
//
// Invariants (ladder.check): every bid is below every ask; tops names the highest bid and the
// lowest ask; and the invariants of order, level and page hold.
//
// The first order and the first leaf of the memory belong to no order and no price. Links without a
// target lead there, so the code can follow and write them without a test.
type ladder struct {
	// pool.orders, pages.levels, leaves and kids. Each step saves one load and a bounds check, which
	// is a quarter of the time of a command. Every index comes from this memory itself.
	orders table[ix, order]
	levels table[uint32, level]
	leaves table[uint32, page]
	kids   table[uint32, node]
	tops   [2]top // by side
	root   node
	tree   uint32 // its number among the trees of the pages: its leaves hold it
	pool   *orderPool
	pages  *pages
}

// newLadder returns an empty ladder over the engine's orders and pages.
func newLadder(pool *orderPool, pages *pages) ladder {
	pages.trees++
	l := ladder{tree: pages.trees, pool: pool, pages: pages}
	l.openTables()
	return l
}

// openTables sets what the path reads of the pool and the pages.
func (l *ladder) openTables() {
	l.orders, l.levels = l.pool.hots, tableOf[uint32](l.pages.levels)
	l.leaves, l.kids = tableOf[uint32](l.pages.leaves), tableOf[uint32](l.pages.kids)
}

// kid returns the child of an inner page that a key belongs to, 0 for none. Node 0 has shift 0, so
// a descent that comes to it ends there, at leaf 0, whose base no key has.
func (l *ladder) kid(n node, key uint64) node {
	return *l.kids.at(n.number()*fanout + digit(key, n.shift()))
}

// mirror is 0 for a buyer and all ones for a seller: a^mirror > b^mirror means that price a is
// better than price b for an order resting on that side.
func mirror(side Side) int64 { return -int64(side & 1) }

// best returns the best price of one side in ticks, false when the side is empty.
func (l *ladder) best(side Side) (px int64, ok bool) {
	t := &l.tops[side&1]
	return t.px, t.level != 0
}

// crosses reports whether an order with that side and limit (ticks) would meet a resting one. Whose
// order that is does not matter here: match may take it off the book without a trade.
func (l *ladder) crosses(side Side, limit int64) bool {
	t, m := &l.tops[side.Opposite()&1], mirror(side)
	return t.level != 0 && t.px^m <= limit^m
}

// price returns the price in ticks of an order that rests.
func (l *ladder) price(i ix) int64 { return l.pages.price(l.orders.at(i).level) }

// rest puts an order behind the others at a price. The caller has matched it: its leaves are at
// least 1 and the price does not cross. Stores through a link without a target go to order 0.
//
// The descent to the leaf begins at n: the root, or the result of start, which may save the
// descent. It follows the digits of the key without comparing and compares only at its end: one
// load a step. When it ends at the leaf of another price, plant finds the right one or makes it.
func (l *ladder) rest(i ix, side Side, tickPx int64, n node) {
	key := uint64(tickPx) ^ signBit
	for n.shift() != 0 {
		n = l.kid(n, key)
	}
	leaf := l.leaves.at(uint32(n))
	if leaf.base != key&^(fanout-1) {
		n = l.pages.plant(&l.root, l.tree, key)
		leaf = l.leaves.at(uint32(n))
	}
	slot := uint32(key) % fanout
	at := uint32(n)*fanout + slot
	leaf.bits |= 1 << slot

	o, lv := l.orders.at(i), l.levels.at(at)
	tail, head := lv.tail, lv.head
	o.setSide(side)
	o.level = at
	o.next = 0
	o.prev = tail
	l.orders.at(tail).next = i
	if head == 0 {
		head = i
	}
	lv.head = head
	lv.tail = i
	lv.open += int64(o.leaves)
	t, m := &l.tops[side&1], mirror(side)
	if tickPx^m > t.px^m || t.level == 0 {
		t.px, t.level = tickPx, at
	}
}

// way follows the digits of a key from the root: to its leaf, if there is one, else to a leaf of
// another price or to node 0.
func (l *ladder) way(key uint64) node {
	n := l.root
	for n.shift() != 0 {
		n = l.kid(n, key)
	}
	return n
}

// start returns where rest may begin when a leaf was the right one some commands ago: that leaf if
// it still belongs to this ladder, else the root. The leaf may have been freed and used again for
// another price of this ladder; rest compares its base and finds that out.
func (l *ladder) start(leaf uint32) node {
	if l.leaves.at(leaf).tree == l.tree {
		return node(leaf)
	}
	return l.root
}

// remove takes a resting order off the book. The order stays in the pool with its leaves unchanged,
// and the caller settles its reservation. Its cost does not depend on the length of the queue.
func (l *ladder) remove(i ix) {
	o := l.orders.at(i)
	at, next, prev := o.level, o.next, o.prev
	lv := l.levels.at(at)
	l.orders.at(prev).next = next
	l.orders.at(next).prev = prev
	head, tail := lv.head, lv.tail
	if head == i {
		head = next
	}
	if tail == i {
		tail = prev
	}
	lv.head = head
	lv.tail = tail
	lv.open -= int64(o.leaves)
	o.level = 0
	if head == 0 {
		l.vacate(at, o.side())
	}
}

// vacate clears a level that has lost its last order. It finds the side's next best level first,
// from the page as it still is, and gives the page back when it was the last level there.
func (l *ladder) vacate(at uint32, side Side) {
	g := l.pages
	if t := &l.tops[side&1]; t.level == at {
		t.level = l.worse(side, at)
		t.px = g.price(t.level)
	}
	leaf := l.leaves.at(at / fanout)
	leaf.bits &^= 1 << (at % fanout)
	if leaf.bits == 0 {
		g.prune(&l.root, node(at/fanout))
	}
}

// reduce takes quantity off a resting order, which keeps its place: 0 < by < leaves. The caller
// releases what was reserved for it.
func (l *ladder) reduce(i ix, by int32) {
	o := l.orders.at(i)
	o.leaves -= by
	l.levels.at(o.level).open -= int64(by)
}

// match trades a taker against the other side, best price first and oldest order first, up to limit
// (ticks; math.MaxInt64 and math.MinInt64 for a buyer and a seller at any price), and returns what
// is left of qty. It takes resting orders of owner (0 = no owner) off the book and does not trade
// with them. A fill has the maker's price.
//
// The cost follows the orders that it meets. The sink may drop the order of a call, so match reads
// the head of the level again after every call and nothing of the order.
func (l *ladder) match(side Side, limit int64, qty int32, owner uint32, s fillSink) (left int32) {
	t, m := &l.tops[side.Opposite()&1], mirror(side)
	for qty > 0 && t.level != 0 && t.px^m <= limit^m {
		px, lv := t.px, l.levels.at(t.level)
		for i := lv.head; i != 0 && qty > 0; i = lv.head {
			o := l.orders.at(i)
			if o.account == owner && owner != 0 {
				l.remove(i)
				s.prevented(i)
				continue
			}
			traded := min(qty, o.leaves)
			qty -= traded
			o.leaves -= traded
			lv.open -= int64(traded)
			if o.leaves == 0 {
				l.shift(lv, o)
			}
			s.filled(i, px, traded)
		}
	}
	return qty
}

// shift takes the filled first order o off its level.
func (l *ladder) shift(lv *level, o *order) {
	at, next := o.level, o.next
	o.level = 0
	lv.head = next
	l.orders.at(next).prev = 0
	if next == 0 {
		lv.tail = 0
		l.vacate(at, o.side())
	}
}

// fillable reports whether match would fill all of qty, and changes nothing. It stops as soon as
// the quantity is enough. Without an owner it looks at levels only, with one at each order, because
// orders of the owner do not trade.
func (l *ladder) fillable(side Side, limit int64, qty int32, owner uint32) bool {
	against := side.Opposite() & 1
	need, m := int64(qty), mirror(side)
	for at := l.tops[against].level; at != 0; at = l.worse(against, at) {
		if l.pages.price(at)^m > limit^m {
			return false
		}
		lv := l.levels.at(at)
		if owner == 0 {
			need -= lv.open
		} else {
			for i := lv.head; i != 0 && need > 0; i = l.orders.at(i).next {
				if o := l.orders.at(i); o.account != owner {
					need -= int64(o.leaves)
				}
			}
		}
		if need <= 0 {
			return true
		}
	}
	return false
}

// worse returns the next occupied level behind one of the same side, 0 when that was the last.
func (l *ladder) worse(side Side, at uint32) uint32 {
	g := l.pages
	if side == Buy {
		return g.below(at)
	}
	return g.above(at)
}

// eachLevel calls f for every price of a side, in ticks, best first, until f returns false. It
// walks the queues to count the orders, so it must not be on the path of an order.
func (l *ladder) eachLevel(side Side, f func(px, qty int64, orders int) bool) {
	for at := l.tops[side&1].level; at != 0; at = l.worse(side&1, at) {
		qty, orders := l.queue(at)
		if !f(l.pages.price(at), qty, orders) {
			return
		}
	}
}

// queue returns the open quantity of a level and walks it to count its orders.
func (l *ladder) queue(at uint32) (qty int64, orders int) {
	lv := l.levels.at(at)
	for i := lv.head; i != 0; i = l.orders.at(i).next {
		orders++
	}
	return lv.open, orders
}

// eachOrder calls f for every order of a side, best price first and oldest first at a price, until
// f returns false. f must not touch the ladder: a caller that removes orders collects them first.
func (l *ladder) eachOrder(side Side, f func(i ix) bool) {
	for at := l.tops[side&1].level; at != 0; at = l.worse(side&1, at) {
		for i := l.levels.at(at).head; i != 0; i = l.orders.at(i).next {
			if !f(i) {
				return
			}
		}
	}
}
