package matcher

import "posttrade/ring"

// growOrders moves the tables of orders, of the pages of books and of idempotency keys to larger
// ones. Every order, level and page keeps its index, so no link changes. An error leaves the engine
// as it was, except that the pool may have more room than the engine uses.
func (e *Engine) growOrders(to OrderRoom) error {
	was, a := e.Capacities().OrderRoom, &e.arena
	if to == was {
		return nil
	}
	scratch, kept, known := e.scratch, e.retired.ring, e.keys
	if to.Open > was.Open {
		scratch = ring.Carve[uint32](a, to.Open)
	}
	if to.Retained > was.Retained {
		kept = ring.Carve[uint32](a, to.Retained)
	}
	if to.Keys > was.Keys {
		known = newKeys(a, to.Keys, e.keys.salt)
	}
	if err := a.Err(); err != nil {
		return err
	}
	if err := e.orders.grow(to.Open + to.Retained + 1); err != nil {
		return err
	}
	if err := e.ladders[0].pages.grow(to.Open); err != nil {
		return err
	}
	if to.Keys > was.Keys {
		known.takeOver(&e.keys)
	}
	if to.Retained > was.Retained {
		e.orders.keep(to.Retained)
		for i := range e.retired.count {
			kept[i] = uint32(e.retired.at(i))
		}
		e.retired.ring, e.retired.next = kept, e.retired.count
	}
	e.scratch, e.keys, e.maxOpen = scratch, known, to.Open
	e.openTables()
	return nil
}

// openTables sets what the path reads of the pool and the pages, in the engine and in every book.
func (e *Engine) openTables() {
	g := e.ladders[0].pages
	e.levels, e.leaves = tableOf[uint32](g.levels), tableOf[uint32](g.leaves)
	for i := range e.ladders {
		e.ladders[i].openTables()
	}
}

// takeOver remembers the entries of a smaller memory, oldest first, so that they are forgotten in
// the same order. Both have one salt.
func (k *keys) takeOver(from *keys) {
	for i := range from.count {
		entry := from.place(i)
		// Entries of one key may differ in their accounts. Only the slot matters: all are new here.
		_, slot := k.find(entry.family(), entry.key, 0)
		k.remember(slot, entry.key, entry.ref, entry.decision)
	}
}

// grow makes room for more orders. The number of homes stays, so every order keeps its place; the
// pool of the next start has more homes. Until then the orders beyond the homes are guests. No
// decision depends on that.
func (p *orderPool) grow(room int) error {
	if room == p.room {
		return nil
	}
	homes := int(p.homes)
	orders := ring.Carve[order](&p.arena, 1+homes+room)
	colds := ring.Carve[orderCold](&p.arena, 1+homes+room)
	guests := ring.Carve[ix](&p.arena, room)
	if err := p.arena.Err(); err != nil {
		return err
	}
	used := int(p.high) + 1
	copy(orders, p.orders[:used])
	copy(colds, p.colds[:used])
	copy(guests, p.guests[:p.chains])
	p.orders, p.colds, p.guests, p.room = orders, colds, guests, room
	p.hots, p.chills = tableOf[ix](orders), tableOf[ix](colds)
	return nil
}

// keep makes the pool keep more retired orders. Those that it has forgotten must not come back, so
// they leave their homes.
func (p *orderPool) keep(retired int) {
	for i := range p.orders[1 : 1+p.homes] {
		if o := &p.orders[1+i]; o.ref != 0 && p.forgotten(o) {
			o.ref = 0
		}
	}
	p.keeps = uint32(retired)
}

// grow makes room for the levels of more resting orders. Numbers of pages stay, so no link between
// them changes; every ladder must open its tables again.
func (g *pages) grow(capacity int) error {
	if capacity+1 == len(g.leaves) {
		return nil
	}
	levels := ring.Carve[level](&g.arena, (capacity+1)*fanout)
	leaves := ring.Carve[page](&g.arena, capacity+1)
	inners := ring.Carve[page](&g.arena, capacity+1)
	kids := ring.Carve[node](&g.arena, (capacity+1)*fanout)
	if err := g.arena.Err(); err != nil {
		return err
	}
	copy(levels, g.levels[:(g.highLeaf+1)*fanout])
	copy(leaves, g.leaves[:g.highLeaf+1])
	copy(inners, g.inners[:g.highInner+1])
	copy(kids, g.kids[:(g.highInner+1)*fanout])
	g.levels, g.leaves, g.inners, g.kids = levels, leaves, inners, kids
	return nil
}
