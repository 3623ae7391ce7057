package blotter

import (
	"posttrade/matcher"
	"posttrade/ring"
)

// orderRoom are the tables that depend on the room for orders, where they are to be larger. Those
// that stay are the present ones.
type orderRoom struct {
	orderTable
	retained []uint32
	levels   []level
	keys     keys
}

// orderRoom carves the larger tables.
func (v *Views) orderRoom(was, to matcher.OrderRoom) orderRoom {
	a, o := &v.arena, &v.orders
	r := orderRoom{o.orderTable, o.retained, v.levels.all, v.keys}
	if to.Open > was.Open || to.Retained > was.Retained {
		r.orderTable = newOrderTable(a, to.Open, to.Retained)
	}
	if to.Retained > was.Retained {
		r.retained = ring.Carve[uint32](a, to.Retained)
	}
	if to.Open > was.Open {
		r.levels = ring.Carve[level](a, to.Open+spareLevels)
	}
	if to.Keys > was.Keys {
		r.keys = newKeys(a, to.Keys)
	}
	return r
}

// moveOrders moves orders, levels and keys to larger tables. Orders and levels keep their places,
// which others name. The old tables stay as they are for those who read them.
func (v *Views) moveOrders(to *orderRoom) {
	o := &v.orders
	if len(to.slots) > len(o.slots) {
		to.takeOver(&o.orderTable, o.top)
		o.orderTable = to.orderTable
	}
	if len(to.retained) > len(o.retained) {
		for i := range o.kept {
			to.retained[i] = o.retainedAt(i)
		}
		o.retained, o.oldest = to.retained, 0
	}
	if len(to.levels) > len(v.levels.all) {
		copy(to.levels, v.levels.all[:v.levels.top+1])
		v.levels.all = to.levels
	}
	if len(to.keys.slots) > len(v.keys.slots) {
		for i := range v.keys.count {
			row := *v.keys.oldest(i)
			to.keys.remember(&row)
		}
		v.keys = to.keys
	}
}

// takeOver copies the rows of a smaller table, and chains them anew: the number of chains is
// another. No reader knows the new table yet, so it takes no lock.
func (o *orderTable) takeOver(from *orderTable, top uint32) {
	for at := uint32(1); at <= top; at++ {
		row := &o.slots[at].row
		*row = from.slots[at].row
		if row.Ref != 0 {
			head := &o.heads[o.headOf(row.Ref)]
			row.next = uint32(*head)
			*head = uint64(row.Ref)<<32 | uint64(at)
		}
	}
}
