package blotter

import (
	"errors"

	"posttrade/ring"
)

// MakeResident makes the beginning of every table resident, so that page faults do not delay the
// first rows. Any goroutine.
func (v *Views) MakeResident() error { return v.arena.MakeResident() }

// Resident is how many bytes of the tables are resident. Only the observer may call it.
func (v *Views) Resident() int64 { return v.arena.Resident() }

// NextRef is the number of the next order, according to the observed events. Any goroutine.
func (v *Views) NextRef() uint64 { return uint64(v.orders.lastRef.Load()) + 1 }

// Frontiers are the tables that are filled in the order of order numbers.
func (v *Views) Frontiers() []ring.Frontier {
	o := v.tables.Load().orders // after a growth still the old table: it does no harm
	return []ring.Frontier{
		{Reached: v.NextRef, Lap: uint64(len(o.heads)), MakeRoom: o.makeRoomForHeads},
		{
			Reached: func() uint64 { return uint64(v.orders.high.Load()) + 1 },
			Lap:     uint64(len(o.slots)),
			MakeRoom: func(first, end uint64) error {
				all := uint64(len(o.slots))
				return ring.MakeResident(o.slots, int(min(first, all)), int(min(end, all)))
			},
		},
	}
}

// headsAtOnce is how many heads are made resident together, a power of two.
const headsAtOnce = 1 << 15

// makeRoomForHeads makes the heads of the references [first, end) resident. The rotation per lap
// keeps the heads of a block of references together if the block begins at a multiple of its size.
func (o *orderTable) makeRoomForHeads(first, end uint64) error {
	var all []error
	block := uint64(min(headsAtOnce, len(o.heads)))
	for ref := first &^ (block - 1); ref < end; ref += block {
		at := int(o.headOf(uint32(ref)) &^ uint32(block-1))
		all = append(all, ring.MakeResident(o.heads, at, at+int(block)))
	}
	return errors.Join(all...)
}

// Frontier is the table of fills. next is the trade sequence of the first fill, as long as the
// blotter is empty.
func (b *Blotter) Frontier(next uint64) ring.Frontier {
	return ring.Frontier{
		Reached:  func() uint64 { return max(next, b.LastSeq()+1) },
		Lap:      uint64(len(b.slots)),
		MakeRoom: func(first, end uint64) error { return ring.MakeLapResident(b.slots, first, end) },
	}
}
