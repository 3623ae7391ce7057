package blotter

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// newKeys carves the tables for capacity keys.
func newKeys(a *ring.Arena, capacity int) keys {
	log := max(4, bits.Len(uint(capacity-1)))
	return keys{
		slots: ring.Carve[keySlot](a, capacity+1),
		heads: ring.Carve[uint64](a, 1<<log),
		shift: uint(64 - log),
		next:  1,
	}
}

// copyRow copies a row, whole.
func (k *keys) copyRow(at uint32, row *KeyRow) {
	s := &k.slots[at]
	copyWhole(&s.lock, wordsOf(row), wordsOf(&s.row))
}

// read finds a key. A key that is there all the time is found: a slot behind
// which a younger key lies was used again, and the slots of older keys, to
// which it would have led, were used again before that.
func (k *keys) read(space, key uint64, row *KeyRow) bool {
	head := atomic.LoadUint64(&k.heads[k.headOf(space, key)])
	if head&k.markOf(space, key) == 0 {
		return false
	}
	younger := ^uint64(0)
	for at := uint32(head); at != 0; at = row.next {
		k.copyRow(at, row)
		if row.InputSeq >= younger {
			return false
		}
		if row.Key == key && family(row.Kind) == space {
			return true
		}
		younger = row.InputSeq
	}
	return false
}

// ExpectKey fetches what Key will look at first, and waits for nothing: for who
// asks for many. Any goroutine.
func (v *Views) ExpectKey(kind matcher.IdempotencyKind, key uint64) {
	ring.Prefetch(unsafe.Pointer(&v.keys.heads[v.keys.headOf(family(kind), key)]), nil, nil, nil)
}

// Key returns the first decision on an idempotency key, false if none is
// remembered. Orders, replaces and market trades share one key space, so for
// KeyOrder and KeyTrade the row's own Kind says what it was. Any goroutine.
func (v *Views) Key(kind matcher.IdempotencyKind, key uint64) (row KeyRow, ok bool) {
	if key == 0 || !v.keys.read(family(kind), key, &row) {
		return KeyRow{}, false
	}
	return row, true
}
