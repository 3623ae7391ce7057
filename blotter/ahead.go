//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// keysAhead is how many keys before its own a slot of the ring of keys is fetched.
const keysAhead = 8

// AheadOf fetches where the rows of an event to come are found: the heads of its key's and
// its order's chains, and of a fill the position. It takes nothing in and waits for nothing.
// Observer only.
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

// CloseTo fetches the row of the order that an event to come is about. It takes nothing in
// and waits for nothing. Observer only.
func (v *Views) CloseTo(ev *matcher.Event) {
	o := &v.orders
	row := unsafe.Pointer(&o.slots[uint32(o.heads[o.headOf(ev.OrderRef)])])
	ring.Prefetch(row, unsafe.Add(row, 64), nil, nil)
}
