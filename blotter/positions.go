//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/ring"
)

// positionRow is what one account holds of one security.
type positionRow struct {
	qty  int64 // negative = short
	cost int64 // average x 1e6
	used uint64
}

type positionSlot struct {
	lock ring.SeqLock
	row  positionRow
}

// Compile-time check: half a cache line.
var _ = [1]struct{}{}[unsafe.Sizeof(positionSlot{})-32]

// positions has a slot for every pair of account and security. Slots cost
// memory when they are first touched.
type positions struct {
	slots  []positionSlot
	stride int // securities
}

// at is the slot of an account's index and a security's id (from 1).
func (p *positions) at(account int, security uint32) *positionSlot {
	return &p.slots[account*p.stride+int(security)-1]
}

// set publishes a position and reports whether it is the first in its slot.
func (s *positionSlot) set(qty, cost int64) (first bool) {
	first = s.row.used == 0
	row := positionRow{qty: qty, cost: cost, used: 1}
	s.lock.Begin()
	ring.CopyIn(wordsOf(&s.row), wordsOf(&row))
	s.lock.End()
	return first
}
