//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/ring"
)

// positionRow is the position of one account in one security. used is 1 from the first fill on: a
// flat position stays in the lists.
type positionRow struct {
	qty  int64 // negative = short
	cost int64 // average x 1e6
	used uint64
}

// positionSlot is a row under its lock.
type positionSlot struct {
	lock ring.SeqLock
	row  positionRow
}

// Compile-time check: half a cache line.
var _ = [1]struct{}{}[unsafe.Sizeof(positionSlot{})-32]

// positions has a slot for every pair of account and security. A slot costs memory from its first
// use on.
type positions struct {
	slots      []positionSlot
	securities int
	stride     int // slots from one account to the next
}

// strideOf is the distance between the rows of two accounts: an odd number of cache lines. An even
// number would put the positions of all accounts in one security into the same few sets of every
// cache.
func strideOf(securities int) int {
	const slotsOfLine = 2
	return ((securities+slotsOfLine-1)/slotsOfLine | 1) * slotsOfLine
}

// at is the slot of an account's index and a security's id (from 1).
func (p *positions) at(account int, security uint32) *positionSlot {
	return &p.slots[account*p.stride+int(security)-1]
}

// set publishes a position and reports whether it is the first in its slot.
func (s *positionSlot) set(qty, cost int64) (first bool) {
	first = s.row.used == 0
	s.lock.Begin()
	store(&s.row.qty, qty)
	store(&s.row.cost, cost)
	store(&s.row.used, 1)
	s.lock.End()
	return first
}
