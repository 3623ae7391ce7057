//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// KeyRow is the first decision on an idempotency key.
type KeyRow struct {
	Key       uint64
	InputSeq  uint64
	TermsHash uint64 // of the command that used the key first
	Ref       uint64 // what Kind says
	Kind      matcher.IdempotencyKind
	Reason    matcher.RiskReason
	_         [2]uint8
	next      uint32 // next slot of the chain: an older key, or one that is no longer there
}

type keySlot struct {
	lock ring.SeqLock
	row  KeyRow
	_    [2]uint64
}

// Compile-time check: a slot is a cache line.
var _ = [1]struct{}{}[unsafe.Sizeof(keySlot{})-64]

// keys remembers the last keys in the order of their first use, oldest out
// first, like the engine does. Orders and market trades share one family of
// keys, OTC contracts have another.
//
// Slots are used in a ring, and a chain leads from its newest key to ever older
// ones. So nothing is ever unlinked: when the slot behind a key holds a younger
// one, it has been used again, and so have all that were behind it.
type keys struct {
	slots []keySlot // a ring; the first is never used
	heads []uint32  // slot, 0 is empty; few, so that they stay in cache: the writer walks no chain
	shift uint
	next  uint32 // the slot used next
	count int
}

// family tells the two key spaces apart.
func family(kind matcher.IdempotencyKind) uint64 { return uint64(kind) >> 1 & 1 }

// headOf is where the chain of a key starts. Any goroutine.
func (k *keys) headOf(family, key uint64) uint64 {
	return (key ^ family) * 0x9e3779b97f4a7c15 >> k.shift
}

// remember adds the decision on a key that is not there, in place of the oldest
// when the ring is full.
func (k *keys) remember(row *KeyRow) {
	at := k.next
	if k.next++; int(k.next) == len(k.slots) {
		k.next = 1
	}
	if k.count < len(k.slots)-1 {
		k.count++
	}
	head := &k.heads[k.headOf(family(row.Kind), row.Key)]
	row.next = *head
	s := &k.slots[at]
	s.lock.Begin()
	ring.CopyIn(wordsOf(&s.row), wordsOf(row))
	s.lock.End()
	publish32(head, at)
}

// TermsHash is a hash of what an admission asks for, without its idempotency
// key and its times: a repeated key with another hash asks for something else.
// It is FNV-1a by words of eight bytes, folded after each.
func TermsHash(c *matcher.Command) uint64 {
	h := uint64(14695981039346656037)
	h = fold(h, uint64(c.Type)|uint64(c.Side)<<8|uint64(c.Flags)<<16|uint64(c.AccountID)<<32)
	h = fold(h, uint64(c.SecurityID)|uint64(uint32(c.Qty))<<32)
	h = fold(h, uint64(c.LimitPx))
	switch c.Type {
	case matcher.OrderReplace, matcher.SwapBook, matcher.SwaptionBook: // the order, or the days of the contract
		h = fold(h, uint64(c.OrderRef))
	}
	return h
}

func fold(h, word uint64) uint64 {
	h = (h ^ word) * 1099511628211
	return h ^ h>>32
}
