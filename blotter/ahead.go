//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// keysAhead is how many keys ahead of its use a slot of the ring of keys is fetched.
const keysAhead = 8

// AheadOf prefetches the memory through which a coming event finds its rows: the heads of the
// chains of its key and its order and, for a fill, the position. It changes nothing and does not
// wait. Observer only.
func (v *Views) AheadOf(ev *matcher.Event) {
	o, k := &v.orders, &v.keys
	order := unsafe.Pointer(&o.heads[o.headOf(ev.OrderRef)])
	if ev.Kind == matcher.EventFilled {
		if account := v.accounts.find(ev.AccountID); account >= 0 {
			ring.Prefetch(order, unsafe.Pointer(v.positions.at(account, ev.SecurityID)), nil, nil)
		}
		return
	}
	key := &k.heads[k.headOf(0, uint64(ev.Cmd().PriceTicks))]
	slot := min(int(k.next)+keysAhead, len(k.slots)-1)
	ring.Prefetch(order, unsafe.Pointer(key), unsafe.Pointer(&k.slots[slot]), nil)
}

// CloseTo prefetches the row of the order that a coming event is about. It changes nothing and does
// not wait. Observer only.
func (v *Views) CloseTo(ev *matcher.Event) {
	o := &v.orders
	row := unsafe.Pointer(&o.slots[uint32(o.heads[o.headOf(ev.OrderRef)])])
	ring.Prefetch(row, unsafe.Add(row, 64), nil, nil)
}
