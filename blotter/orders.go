//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// orderSlot is a row and its lock: three cache lines, of which an order with a
// client id of up to 40 bytes touches two.
type orderSlot struct {
	lock ring.SeqLock
	row  OrderRow
	_    [5]uint64
}

// Compile-time checks: a slot is three lines, and a row is whole words.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(orderSlot{})-192]
	_ = [1]struct{}{}[unsafe.Sizeof(OrderRow{})-144]
	_ = [1]struct{}{}[unsafe.Offsetof(OrderRow{}.OrderState)-32]
	_ = [1]struct{}{}[unsafe.Sizeof(OrderState{})-48]
)

// orders holds the open orders and the last terminal ones.
//
// The index is a table of chains. The reference itself selects the chain, rotated by a constant per
// lap. So orders of the same time share lines, and neither old orders nor references in even steps
// gather in a few chains. A head holds the reference in its upper half and the slot in its lower
// half, so the writer mostly finds, links and unlinks an order without touching another one.
//
// An order keeps its slot from its insertion until it is dropped. Writer of all fields: the
// observer; readers use orderTable, high and lastRef.
type orders struct {
	orderTable
	free uint32 // head of the free list through row.next
	high ring.Sequence
	top  uint32 // highest slot ever used; high publishes it

	retained []uint32      // ring of the slots of terminal orders
	oldest   int           // index of the oldest
	kept     int           // how many
	open     int           // open orders
	lastRef  ring.Sequence // number of the last order
}

// orderTable is what readers use of orders.
type orderTable struct {
	slots []orderSlot // the first is never used
	heads []uint64    // ref << 32 | slot, 0 is empty
	lap   uint8       // log2(len(heads))
}

// headOf is the index of the head of the chain of ref. Any goroutine.
func (o *orderTable) headOf(ref uint32) uint32 {
	turn := (ref >> o.lap) * 0x9e3779b1 >> (32 - o.lap)
	return (ref ^ turn) & uint32(len(o.heads)-1)
}

// find returns the slot of an order, 0 when there is none. Writer only: it follows links that only
// the writer can trust.
func (o *orders) find(ref uint32) uint32 {
	head := o.heads[o.headOf(ref)]
	if uint32(head>>32) == ref {
		return uint32(head)
	}
	at := uint32(head)
	for at != 0 && o.slots[at].row.Ref != ref {
		at = o.slots[at].row.next
	}
	return at
}

// take returns a free slot. The limits of the genesis record leave room for every open and every
// retained order, so a full table is a bug.
func (o *orders) take() uint32 {
	at := o.free
	if at != 0 {
		o.free = o.slots[at].row.next
		return at
	}
	if int(o.top)+1 >= len(o.slots) {
		noSlotLeft(o.open, o.kept, len(o.slots)-1)
	}
	o.top++
	return o.top
}

// insert publishes a new row and returns its slot. It sets the links of the row, and copies id, cut
// at MaxClientID.
func (o *orders) insert(row *OrderRow, id []byte) uint32 {
	at := o.take()
	head := &o.heads[o.headOf(row.Ref)]
	s := &o.slots[at]
	id = id[:min(len(id), MaxClientID)]
	s.lock.Begin()
	store(&s.row.Ref, row.Ref)
	store(&s.row.next, uint32(*head))
	store(&s.row.AccountID, row.AccountID)
	store(&s.row.SecurityID, row.SecurityID)
	store(&s.row.InputSeq, row.InputSeq)
	store(&s.row.CreatedMillis, row.CreatedMillis)
	store(&s.row.Qty, row.Qty)
	store(&s.row.Leaves, row.Leaves)
	store(&s.row.Side, row.Side)
	store(&s.row.Type, row.Type)
	store(&s.row.TimeInForce, row.TimeInForce)
	store(&s.row.Status, row.Status)
	store(&s.row.Reason, row.Reason)
	store(&s.row.LimitPx, row.LimitPx)
	store(&s.row.UpdatedMillis, row.UpdatedMillis)
	store(&s.row.LastPx, row.LastPx)
	store(&s.row.LastQty, row.LastQty)
	store(&s.row.level, row.level)
	store(&s.row.idLen, uint8(len(id)))
	store(&s.row.Era, row.Era)
	storeBytes(&s.row.clientID, id) // the bytes behind it are never read
	s.lock.End()
	ring.StoreRelease(head, uint64(row.Ref)<<32|uint64(at))
	if int64(o.top) != o.high.Load() {
		o.high.Release(int64(o.top))
	}
	o.lastRef.Release(int64(row.Number()))
	return at
}

// retire appends an order that has become terminal to the retained orders, and drops the oldest
// when there are too many. Views that retain nothing drop it at once. The engine does the same in
// the same order.
func (o *orders) retire(at uint32) {
	if len(o.retained) == 0 {
		o.drop(at)
		return
	}
	if o.kept == len(o.retained) {
		o.drop(o.retained[o.oldest])
		o.retained[o.oldest] = at
		if o.oldest++; o.oldest == len(o.retained) {
			o.oldest = 0
		}
		o.expect()
		return
	}
	to := o.oldest + o.kept
	if to >= len(o.retained) {
		to -= len(o.retained)
	}
	o.retained[to] = at
	o.kept++
}

// dropsAhead is how many drops ahead of its own drop a row is prefetched. A row has not been
// touched for as many drops as there are retained orders.
const dropsAhead = 4

// expect prefetches the row that will be dropped dropsAhead drops from now.
func (o *orders) expect() {
	if at := o.oldest + dropsAhead; at < len(o.retained) {
		s := unsafe.Pointer(&o.slots[o.retained[at]])
		ring.Prefetch(s, nil, nil, nil)
	}
}

// drop takes an order out of the index and frees its slot. A reader that stands on the row finds it
// renamed and starts its chain again.
func (o *orders) drop(at uint32) {
	s := &o.slots[at]
	head := &o.heads[o.headOf(s.row.Ref)]
	if uint32(*head) == at {
		var follower uint64
		if next := s.row.next; next != 0 {
			follower = uint64(o.slots[next].row.Ref)<<32 | uint64(next)
		}
		ring.StoreRelease(head, follower)
	} else {
		o.unchain(at, uint32(*head))
	}
	o.rename(at, 0, o.free)
	o.free = at
}

// unchain is the slow path of drop: the order is not the first of its chain.
func (o *orders) unchain(at, before uint32) {
	for o.slots[before].row.next != at {
		before = o.slots[before].row.next
	}
	o.rename(before, o.slots[before].row.Ref, o.slots[at].row.next)
}

// rename rewrites the first word of a row: its reference (0 = free) and the
// next slot of its chain or of the free list.
func (o *orders) rename(at, ref, next uint32) {
	s := &o.slots[at]
	s.lock.Begin()
	store(&s.row.Ref, ref)
	store(&s.row.next, next)
	s.lock.End()
}

// fill fills an empty row from the first event of an ORDER_NEW.
func (row *OrderRow) fill(ev *matcher.Event) {
	cmd := ev.Cmd()
	row.Ref, row.Era = ev.OrderRef, ev.Era
	row.AccountID, row.SecurityID = cmd.AccountID, cmd.SecurityID
	row.InputSeq, row.CreatedMillis = ev.InputSeq, ev.TimeMillis
	row.Qty, row.Leaves, row.Side = cmd.Qty, cmd.Qty, cmd.Side&1
	row.Status, row.Reason = ev.Status, ev.Reason
	row.LimitPx, row.UpdatedMillis = ev.Px, ev.TimeMillis
	if cmd.LimitPx <= 0 {
		row.Type = Market
	}
	switch {
	case cmd.Flags&matcher.FlagFOK != 0:
		row.TimeInForce = FOK
	case cmd.Flags&matcher.FlagIOC != 0:
		row.TimeInForce = IOC
	case cmd.Flags&matcher.FlagPostOnly != 0:
		row.TimeInForce = PostOnly
	}
}
