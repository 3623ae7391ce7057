package matcher

import (
	"fmt"
	"math/bits"
)

// check returns an error that names the first documented invariant of ladder, page, level and order
// that does not hold. It visits everything, so it is for tests.
func (l *ladder) check() error {
	c := ladderCheck{ladder: l}
	if l.root != 0 {
		if up := l.pages.head(l.root).up; up != 0 {
			return fmt.Errorf("ladder: root %x has page %x above it", l.root, up)
		}
		if err := c.page(l.root); err != nil {
			return err
		}
	}
	if c.inners >= max(c.leaves, 1) {
		return fmt.Errorf("ladder: %d inner pages over %d leaves", c.inners, c.leaves)
	}
	for side, want := range c.tops {
		// The price of an empty side means nothing.
		if got := l.tops[side]; got.level != want.level || want.level != 0 && got.px != want.px {
			return fmt.Errorf("ladder: best of side %d is %+v, want %+v", side, got, want)
		}
	}
	if bid, ask := c.tops[Buy], c.tops[Sell]; bid.level != 0 && ask.level != 0 && bid.px >= ask.px {
		return fmt.Errorf("ladder: crossed at rest: bid %d, ask %d", bid.px, ask.px)
	}
	return nil
}

// ladderCheck walks a ladder from the lowest price to the highest, and counts what the pages hold.
// tops is what the ladder's own tops must be: the highest bid and the lowest ask that the walk has
// met.
type ladderCheck struct {
	*ladder
	leaves, inners int
	orders         int
	tops           [2]top
}

// page checks a page and everything below it. Every child must lie at the digit of its own base and
// share the page's key above that digit; else a descent, which does not compare, would end at a
// leaf of another price.
func (c *ladderCheck) page(n node) error {
	h := c.pages.head(n)
	shift := n.shift()
	if h.bits == 0 {
		return fmt.Errorf("page %x: empty", n)
	}
	if below := shift + digitBits; h.base>>below<<below != h.base {
		return fmt.Errorf("page %x: base %x is not its lowest key", n, h.base)
	}
	if shift == 0 {
		c.leaves++
		if h.tree != c.tree {
			return fmt.Errorf("leaf %x: of ladder %d, want %d", n, h.tree, c.tree)
		}
		return c.leaf(n, h)
	}
	c.inners++
	if bits.OnesCount64(h.bits) < 2 {
		return fmt.Errorf("page %x: inner with one child", n)
	}
	for slot := range uint32(fanout) {
		kid := c.pages.kids[n.number()*fanout+slot]
		if (kid != 0) != (h.bits>>slot&1 == 1) {
			return fmt.Errorf("page %x slot %d: child %x, bits %x", n, slot, kid, h.bits)
		}
		if kid == 0 {
			continue
		}
		k := c.pages.head(kid)
		switch {
		case k.up != n:
			return fmt.Errorf("page %x: above it is %x, want %x", kid, k.up, n)
		case kid.shift() >= shift:
			return fmt.Errorf("page %x: child %x is not lower", n, kid)
		case digit(k.base, shift) != slot:
			return fmt.Errorf("page %x slot %d: child with base %x", n, slot, k.base)
		case (k.base^h.base)>>(shift+digitBits) != 0:
			return fmt.Errorf("page %x base %x: child with base %x", n, h.base, k.base)
		}
		if err := c.page(kid); err != nil {
			return err
		}
	}
	return nil
}

// leaf checks the 64 levels of a leaf against the bits that mark the occupied ones. An empty level
// must be all zero: rest does not clear it.
func (c *ladderCheck) leaf(n node, h *page) error {
	for slot := range uint32(fanout) {
		at := uint32(n)*fanout + slot
		lv := &c.pages.levels[at]
		if (lv.head != 0) != (h.bits>>slot&1 == 1) {
			return fmt.Errorf("level %d: head %d, bits %x", at, lv.head, h.bits)
		}
		if lv.head == 0 {
			if *lv != (level{}) {
				return fmt.Errorf("level %d: empty but %+v", at, *lv)
			}
			continue
		}
		if err := c.level(at, lv); err != nil {
			return err
		}
	}
	return nil
}

// level checks the queue at one price: its links in both directions, its sum, and that the pool
// finds every order of it by reference. The count of orders ends a walk over links that form a
// ring.
func (c *ladderCheck) level(at uint32, lv *level) error {
	side := c.pool.hot(lv.head).side()
	var open int64
	var prev ix
	for i := lv.head; i != 0; i = c.pool.hot(i).next {
		o := c.pool.hot(i)
		switch {
		case o.level != at:
			return fmt.Errorf("order ref=%d: level %d, found at %d", o.ref, o.level, at)
		case o.prev != prev:
			return fmt.Errorf("order ref=%d: previous %d, want %d", o.ref, o.prev, prev)
		case o.leaves < 1:
			return fmt.Errorf("order ref=%d: rests with leaves %d", o.ref, o.leaves)
		case o.side() != side:
			return fmt.Errorf("order ref=%d: side %d on a level of side %d", o.ref, o.side(), side)
		case c.pool.find(o.ref) != i:
			return fmt.Errorf("order ref=%d: is %d, found %d", o.ref, i, c.pool.find(o.ref))
		}
		open += int64(o.leaves)
		prev = i
		if c.orders++; c.orders > c.pool.live() {
			return fmt.Errorf("level %d: its orders form a ring", at)
		}
	}
	if lv.tail != prev || lv.open != open {
		return fmt.Errorf("level %d: tail %d open %d, want %d and %d", at, lv.tail, lv.open, prev, open)
	}
	px := c.pages.price(at)
	if t := &c.tops[side]; t.level == 0 || side == Buy { // ascending: the last bid, the first ask
		t.px, t.level = px, at
	}
	return nil
}

// check returns an error that names the first documented invariant of the pool that does not hold.
// Besides the invariants of single orders it accounts for every guest room: each is either on a
// chain or on the free list.
func (p *orderPool) check() error {
	home, away, free := 0, 0, 0
	for i := ix(1); i <= ix(p.homes); i++ {
		ref := p.orders[i].ref
		if !p.taken(&p.orders[i]) {
			continue
		}
		if home++; p.homeOf(ref) != i {
			return fmt.Errorf("pool: order ref=%d in the home %d, its own is %d", ref, i, p.homeOf(ref))
		}
	}
	for slot := range p.guests {
		for i := p.guests[slot]; i != 0; i = p.orders[i].chain {
			if ref := p.orders[i].ref; i <= ix(p.homes) || ref == 0 || p.chainOf(ref) != &p.guests[slot] {
				return fmt.Errorf("pool: order %d ref=%d on the chain of slot %d", i, ref, slot)
			}
			if away++; away > p.away {
				return fmt.Errorf("pool: more orders on chains than the %d away", p.away)
			}
		}
	}
	if p.chains != uint32(p.high)-p.homes {
		return fmt.Errorf("pool: %d chains for %d guest rooms", p.chains, uint32(p.high)-p.homes)
	}
	for i := p.free; i != 0; i = p.orders[i].next {
		if i <= ix(p.homes) || p.orders[i].ref != 0 {
			return fmt.Errorf("pool: order %d ref=%d is on the free list", i, p.orders[i].ref)
		}
		if free++; free > p.room {
			return fmt.Errorf("pool: the free list has a ring")
		}
	}
	if away != p.away || home+away != p.count || away+free != int(p.high)-int(p.homes) {
		return fmt.Errorf("pool: %d at home, %d away, %d free; counted %d, away %d, guest rooms used %d",
			home, away, free, p.count, p.away, int(p.high)-int(p.homes))
	}
	return nil
}

// check returns an error when the book or its memory breaks an invariant. For a book that is alone
// in its memory it also checks that every order in the pool rests: a Book drops an order as soon as
// it is finished.
func (b *Book) check() error {
	if err := b.ladder.check(); err != nil {
		return err
	}
	if err := b.ladder.pool.check(); err != nil {
		return err
	}
	if b.memory == nil {
		return nil
	}
	resting := 0
	for side := range Side(2) {
		b.ladder.eachOrder(side, func(ix) bool { resting++; return true })
	}
	if resting != b.Len() {
		return fmt.Errorf("book: %d orders rest, %d are in the pool", resting, b.Len())
	}
	return nil
}
