//perf:hot

package matcher

import "posttrade/ring"

// ix is an order in the pool, 0 none. It takes four bytes where a pointer takes eight, holds
// nothing for the garbage collector to follow, and allows an order of half a cache line.
type ix uint32

// order is the hot half of a resting order: all that matching and cancelling read and write.
//
// Invariants (orderPool.check): a live record has ref != 0, is not forgotten, and is in its home or
// on its chain; level != 0 exactly while the order rests, and then next and prev are
// its neighbours in the queue of that level and leaves is at least 1.
type order struct {
	next, prev ix     // neighbours at the level, older is prev; next links the free list too
	chain      ix     // the next guest of the same chain; at home the number of the retirement
	level      uint32 // leaf*64 + slot of the level it rests on, 0 = not on the book
	ref        uint32 // the caller's reference, 0 = free
	account    uint32
	leaves     int32
	tag        uint32 // security << 8 | status << 4 | side
}

// orderCold is the half of an order that matching does not touch.
type orderCold struct {
	limit int64 // limit price, x 1e6
	// The last fill, x 1e6 and whole units; both 0 before the first.
	lastPx int64
	// Event times in epoch milliseconds: of the order's own command, and of the last one that changed
	// it.
	created int64
	updated int64
	stamp   uint64 // priority: renewed by a replace that loses its place
	qty     int32
	lastQty int32

	accountID  uint32 // as the command names them: those of a refused order may not exist
	securityID uint32
	reason     RiskReason
	_          uint8
	era        uint16 // of the reference: the upper bits of the order's number
	_          [4]byte
}

// maxSecurity is the highest security id that an order's tag can hold: 24 bits beside status and
// side.
const maxSecurity = 1<<24 - 1

// side, status and security are the parts of tag: bit 0, bits 4 to 7, and from bit 8 on. A set
// function leaves the other parts.
func (o *order) side() Side          { return Side(o.tag & 1) }
func (o *order) setSide(s Side)      { o.tag = o.tag&^1 | uint32(s&1) }
func (o *order) status() OrderStatus { return OrderStatus(o.tag >> 4 & 15) }
func (o *order) security() uint32    { return o.tag >> 8 }
func (o *order) rests() bool         { return o.level != 0 }
func (o *order) setStatus(s OrderStatus) {
	o.tag = o.tag&^0xf0 | uint32(s&15)<<4
}

// orderPool holds the open orders of an engine, by index and by reference. One goroutine owns it.
// It allocates nothing after its construction, and touches memory only as orders come: an idle pool
// costs next to nothing. The first order belongs to no caller: a ladder writes there through links
// without a target.
//
// An order's home is its reference modulo the number of homes, so consecutive orders lie side by
// side, and finding one is one load. When an order that is a whole lap older still has the home,
// the new order gets a guest room. So does an order of a Book whose references do not ascend, since
// its home would be far from the memory of the orders before it. Guest rooms are used again newest
// first, and found through a table of chains that has as many chains as guest rooms were ever used:
// orders and table take as little memory as the largest number of guests needs.
//
// The pool keeps a terminal order for a number of later retirements. An order at home is then
// forgotten without being touched: its retirement number says that it is. The next order that has
// the home takes it. That is at most a lap later, so the numbers may wrap around.
type orderPool struct {
	// One line of the cache has all that a Book reads of the pool for an order at home.
	newest uint32 // the last reference that a Book was given
	steady uint32 // 0 to steadyMost: how often these references have ascended lately
	away   int    // orders in guest rooms
	count  int    // orders taken and neither dropped nor forgotten
	room   int    // the largest number of orders

	hots   table[ix, order] // orders and colds again, for the path
	chills table[ix, orderCold]
	homes  uint32      // a power of two
	orders []order     // by ix: first the unused one, then the homes, then the guest rooms
	colds  []orderCold // by ix
	guests []ix        // heads of chains, by chainOf
	chains uint32      // how many there are: the guest rooms ever used
	wide   uint32      // a power of two less 1, at least chains-1 and less than twice that
	free   ix          // released guest rooms, linked by next
	high   ix          // highest guest room ever used

	retired uint32 // the next retirement number
	keeps   uint32 // how many retired orders the pool keeps

	arena ring.Arena
}

// homeOf returns the home of a reference, from 1: order 0 is the unused one. Reference 0, which no
// order has, has a home too, so the path can ask without a test.
func (p *orderPool) homeOf(ref uint32) ix { return ix(ref&(p.homes-1)) + 1 }

// chainOf returns where the chain of a reference starts among the guests. Chains are split one by
// one, in turns, so a part of them is still without its second half.
func (p *orderPool) chainOf(ref uint32) *ix {
	at := spread(ref) & p.wide
	if at >= p.chains {
		at &= p.wide >> 1
	}
	return &p.guests[at]
}

// spread is a hash whose lower bits depend on all bits of a reference.
func spread(ref uint32) uint32 { return uint32(uint64(ref) * 0xff51afd7ed558ccd >> 32) }

// take returns a fresh order with the given reference, zero in all else, or false when the pool is
// full. The reference is not 0 and not in the pool; take does not look for it. The cold half is not
// cleared.
func (p *orderPool) take(ref uint32) (ix, bool) {
	if p.count == p.room {
		return 0, false
	}
	p.count++
	i := p.homeOf(ref)
	o := p.hot(i)
	if p.taken(o) {
		return p.lodge(ref), true
	}
	*o = order{ref: ref}
	return i, true
}

// References ascend while nearly each is at most smallStep above the one before it. A small step
// counts 1, up to steadyMost, and another one unsteady less: one that starts anew changes nothing.
const (
	smallStep  = 16
	unsteady   = 4
	steadyFrom = 16
	steadyMost = steadyFrom + 2*unsteady
)

// ascends counts a Book's reference and reports whether references ascend. While they do not,
// orders lodge in guest rooms even when their homes are free: scattered homes would touch a page of
// memory each.
func (p *orderPool) ascends(ref uint32) bool {
	step := ref - p.newest
	p.newest = ref
	if step-1 >= smallStep {
		p.steady -= min(p.steady, unsteady)
	} else if p.steady < steadyMost {
		p.steady++
	}
	return p.steady >= steadyFrom
}

// taken reports that a home has an order: one that has neither been dropped nor forgotten.
func (p *orderPool) taken(o *order) bool { return o.ref != 0 && !p.forgotten(o) }

// forgotten reports that an order at home was retired, and as many after it as the pool keeps. It
// is for orders at home only: a guest's chain is a link. The difference of the numbers is right
// also after they have wrapped around.
func (p *orderPool) forgotten(o *order) bool {
	return o.status().Terminal() && p.retired-uint32(o.chain) > p.keeps
}

// retire keeps a terminal order. gone is the one that is forgotten for it, 0 for none: a guest's
// room is free at once, and an order at home stays as it is until the home is taken. The count is
// right in both cases.
func (p *orderPool) retire(i, gone ix) {
	if i <= ix(p.homes) {
		p.hot(i).chain = ix(p.retired)
	}
	p.retired++
	switch {
	case gone > ix(p.homes):
		p.leave(gone)
	case gone != 0:
		p.count--
	}
}

// lodge is the slow path of take: another order has the home.
func (p *orderPool) lodge(ref uint32) ix {
	i := p.free
	if i == 0 {
		p.high++
		i = p.high
		p.split()
	} else {
		p.free = p.orders[i].next
	}
	head := p.chainOf(ref)
	p.orders[i] = order{ref: ref, chain: *head}
	*head = i
	p.away++
	return i
}

// split adds a chain for a guest room that is used for the first time, and gives it its part of the
// chain that has had both. A chain has one guest on average, so this costs about as much as a find.
func (p *orderPool) split() {
	n := p.chains
	p.chains++
	if n > p.wide {
		p.wide = p.wide<<1 | 1
	}
	if n == 0 {
		return
	}
	young := &p.guests[n]
	for at := &p.guests[n&(p.wide>>1)]; *at != 0; {
		i := *at
		o := &p.orders[i]
		if spread(o.ref)&p.wide != n {
			at = &o.chain
			continue
		}
		*at = o.chain
		o.chain = *young
		*young = i
	}
}

// drop forgets an order that is not on the book; its ix is free for another one. Nothing but the
// reference is cleared at home, because take and the path write the rest.
func (p *orderPool) drop(i ix) {
	if i > ix(p.homes) {
		p.leave(i)
		return
	}
	p.count--
	p.hot(i).ref = 0
}

// leave is the slow path of drop: the order is a guest. It takes the order out of its chain, which
// costs the orders before it there, and puts its room at the head of the free list.
func (p *orderPool) leave(i ix) {
	p.count--
	o := &p.orders[i]
	at := p.chainOf(o.ref)
	for *at != i {
		at = &p.orders[*at].chain
	}
	*at = o.chain
	o.ref, o.chain = 0, 0
	o.next = p.free
	p.free = i
	p.away--
}

// find returns the order of a reference, 0 when there is none; no order has reference 0. A retained
// order is found, a forgotten one is not. One load when the order is at home.
func (p *orderPool) find(ref uint32) ix {
	if i := p.homeOf(ref); p.hot(i).ref == ref && ref != 0 && !p.forgotten(p.hot(i)) {
		return i
	}
	return p.findGuest(ref)
}

// findGuest is the slow path of find.
func (p *orderPool) findGuest(ref uint32) ix {
	if p.away == 0 {
		return 0
	}
	i := *p.chainOf(ref)
	for i != 0 && p.orders[i].ref != ref {
		i = p.orders[i].chain
	}
	return i
}

// hot and cold are the two halves of an order.
func (p *orderPool) hot(i ix) *order      { return p.hots.at(i) }
func (p *orderPool) cold(i ix) *orderCold { return p.chills.at(i) }

// live returns how many orders are in the pool; full reports that it takes no more.
func (p *orderPool) live() int  { return p.count }
func (p *orderPool) full() bool { return p.count == p.room }

// each calls f for every order in the pool, in no defined order, until f returns false. It visits
// every home and every guest room that was ever used, so its cost follows the capacity. It is for
// snapshots, checks and growth.
func (p *orderPool) each(f func(ix) bool) {
	for i := ix(1); i <= p.high; i++ {
		o := &p.orders[i]
		if o.ref != 0 && (i > ix(p.homes) || !p.forgotten(o)) && !f(i) {
			return
		}
	}
}
