package blotter

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"posttrade/matcher"
	"posttrade/ring"
)

// StatusSet is a set of order states, one bit each. The empty set means all.
type StatusSet uint8

// OpenOrders is the set of the states in which an order can still trade.
const OpenOrders = StatusSet(1<<matcher.StatusNew | 1<<matcher.StatusPartiallyFilled)

// StatusOf is the set of one state.
func StatusOf(s matcher.OrderStatus) StatusSet { return 1 << s }

// Has reports whether the set holds a state.
func (s StatusSet) Has(status matcher.OrderStatus) bool { return s == 0 || s>>status&1 != 0 }

// OrderFilter selects orders for a list. An order must match all three.
type OrderFilter struct {
	Accounts   []uint32 // nil = all
	SecurityID uint32   // 0 = all
	Statuses   StatusSet
}

// keeps reports whether a row is in the list. accounts are f.Accounts, sorted.
func (f *OrderFilter) keeps(row *OrderRow, accounts []uint32) bool {
	if row.Ref == 0 || f.SecurityID != 0 && row.SecurityID != f.SecurityID ||
		!f.Statuses.Has(row.Status) {
		return false
	}
	if f.Accounts == nil {
		return true
	}
	_, found := slices.BinarySearch(accounts, row.AccountID)
	return found
}

// copyRow copies the first words of a row, whole: of one moment. A list copies only what its filter
// reads, and the rest when the row matches.
func (o *orderTable) copyRow(at uint32, row *OrderRow, words int) {
	s := &o.slots[at]
	copyWhole(&s.lock, wordsOf(row)[:words], wordsOf(&s.row))
}

// The words of a row: all of them, and those that a filter reads.
const (
	// Of eight bytes each: a row without its lock, and the part of it that holds all that keeps and
	// Number read.
	rowWords    = 18
	filterWords = 6
)

// read copies the order of a reference, false if there is none.
//
// Chains grow at the head only. So an order that is there all the time lies behind every row of its
// chain that this loop reaches. A row that belongs to another chain, or to none, has moved; the
// loop then starts again.
func (o *orderTable) read(ref uint32, row *OrderRow) bool {
	if ref == 0 {
		return false
	}
	chain := o.headOf(ref)
	for {
		at := uint32(atomic.LoadUint64(&o.heads[chain]))
		for at != 0 {
			o.copyRow(at, row, rowWords)
			if row.Ref == ref {
				clear(row.clientID[row.idLen:]) // another order's
				return true
			}
			if row.Ref == 0 || o.headOf(row.Ref) != chain {
				break
			}
			at = row.next
		}
		if at == 0 {
			return false
		}
	}
}

// Numbered returns the order of a number, false if there is none or if it is terminal and was
// dropped. Any goroutine.
func (v *Views) Numbered(number uint64) (row OrderRow, ok bool) {
	if row, ok = v.Order(uint32(number)); !ok || row.Number() != number {
		return OrderRow{}, false
	}
	return row, true
}

// Order is Numbered for a reference, which is unique among the orders that the views hold. Any
// goroutine; no lock, and no allocation.
func (v *Views) Order(ref uint32) (row OrderRow, ok bool) {
	if !v.tables.Load().orders.read(ref, &row) {
		return OrderRow{}, false
	}
	return row, true
}

// Orders appends to dst up to limit orders with a number above after, ascending. next is the after
// of the following page, 0 at the end. An order that matches the filter all the time is in the list
// exactly once; an order that changes meanwhile may be missing.
//
// Cost: Orders walks the numbers when they are dense, as recent ones are; otherwise it scans every
// order once. Any goroutine.
func (v *Views) Orders(f OrderFilter, after uint64, limit int, dst []OrderRow) (
	rows []OrderRow, next uint64) {
	if limit <= 0 {
		return dst, 0
	}
	accounts := slices.Clone(f.Accounts)
	slices.Sort(accounts)
	last, slots := uint64(v.orders.lastRef.Load()), v.orders.high.Load()
	if last <= after {
		return dst, 0
	}
	o := &v.tables.Load().orders // after last: it has every order up to there
	if last-after <= 2*uint64(slots) {
		return o.walk(&f, accounts, after, last, limit, dst)
	}
	return o.scan(&f, accounts, after, uint32(slots), limit, dst)
}

// walk tries every number in turn, one look-up each. It stops at the first match beyond limit,
// which shows that there is a following page.
func (o *orderTable) walk(f *OrderFilter, accounts []uint32, after, last uint64, limit int,
	dst []OrderRow) (
	rows []OrderRow, next uint64) {
	rows = dst
	var row OrderRow
	for number := after + 1; number <= last; number++ {
		if !o.read(uint32(number), &row) || row.Number() != number || !f.keeps(&row, accounts) {
			continue
		}
		if len(rows)-len(dst) == limit {
			return rows, rows[len(rows)-1].Number()
		}
		rows = append(rows, row)
	}
	return rows, 0
}

// scan looks at every slot and keeps the limit+1 lowest numbers. The extra one shows that there is
// a following page.
func (o *orderTable) scan(f *OrderFilter, accounts []uint32, after uint64, slots uint32, limit int,
	dst []OrderRow) (rows []OrderRow, next uint64) {
	var lowest lowestNumbers
	var row OrderRow
	for at := uint32(1); at <= slots; at++ {
		o.copyRow(at, &row, filterWords)
		if row.Number() > after && f.keeps(&row, accounts) {
			lowest.offer(row.Number(), limit+1)
		}
	}
	slices.Sort(lowest)
	if len(lowest) > limit {
		lowest = lowest[:limit]
		next = lowest[limit-1]
	}
	rows = dst
	for _, number := range lowest {
		if o.read(uint32(number), &row) && row.Number() == number && f.keeps(&row, accounts) {
			rows = append(rows, row)
		}
	}
	return rows, next
}

// lowestNumbers is a heap with the highest number on top.
type lowestNumbers []uint64

// offer adds a number and drops the highest when there are more than limit.
func (l *lowestNumbers) offer(number uint64, limit int) {
	h := *l
	if len(h) < limit {
		h = append(h, number)
		for i := len(h) - 1; i > 0 && h[(i-1)/2] < h[i]; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		*l = h
		return
	}
	if number >= h[0] {
		return
	}
	h[0] = number
	for i := 0; 2*i+1 < len(h); {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1] > h[child] {
			child++
		}
		if h[i] >= h[child] {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// newOrders carves the tables for open and retained orders. It adds room for the orders that a
// command has begun but not yet finished or dropped.
func newOrders(a *ring.Arena, maxOpen, retained int) orders {
	return orders{orderTable: newOrderTable(a, maxOpen, retained),
		retained: ring.Carve[uint32](a, retained)}
}

// newOrderTable carves one slot for each order and at least as many chains, a power of two.
func newOrderTable(a *ring.Arena, maxOpen, retained int) orderTable {
	slots := maxOpen + retained + transitOrders
	lap := uint8(max(4, bits.Len(uint(slots-1))))
	return orderTable{ring.Carve[orderSlot](a, slots+1), ring.Carve[uint64](a, 1<<lap), lap}
}

// transitOrders is the room for orders of the command being observed.
const transitOrders = 8
