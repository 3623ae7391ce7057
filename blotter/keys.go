//perf:hot

package blotter

import (
	"encoding/binary"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// KeyRow is the first decision on an idempotency key. Ref is the number of an order, or the
// InputSeq of a market trade or a booking. A row never changes; its slot is used again after as
// many newer keys as there are slots.
type KeyRow struct {
	Key       uint64
	InputSeq  uint64
	TermsHash uint64 // of the command that used the key first
	Ref       uint64 // its meaning depends on Kind
	Kind      matcher.IdempotencyKind
	Reason    matcher.RiskReason
	ByAccount bool // the key belongs to AccountID; records of version 1 do not name an account
	_         uint8
	next      uint32 // next slot of the chain: an older key, or a slot that has been used again
	AccountID uint32 // 0 unless ByAccount
	_         uint32
}

// keySlot is a row under its lock. The row alone says whether the slot was used again.
type keySlot struct {
	lock ring.SeqLock
	row  KeyRow
	_    uint64
}

// Compile-time check: a slot is a cache line.
var _ = [1]struct{}{}[unsafe.Sizeof(keySlot{})-64]

// keys remembers the last keys in the order of their first use and drops the oldest first, as the
// engine does. Orders and market trades share one family of keys; OTC contracts have another.
//
// Slots are used in a ring, and a chain leads from its newest key to ever older keys. So no key is
// ever unlinked: when the slot behind a key holds a younger key, that slot has been used again, and
// so have all slots behind it.
//
// The hash is salted per process, like the engine's. Clients that know how ids become keys can
// choose their keys, and the salt keeps them from choosing their chains.
//
// A head also holds marks of the keys in its chain, and the lap in which the newest key was added.
// Nearly every requested key is new, and its missing mark shows this without a look at the slots,
// which another core has just written.
type keys struct {
	keyTable
	next  uint32 // the slot used next
	lap   uint64 // number of laps of the ring so far
	count int
}

// keyTable is what readers use of keys.
type keyTable struct {
	slots []keySlot // a ring; the first is never used
	// lap << 60 | marks << 32 | slot, 0 is empty. There are few heads, so that they stay in cache; the
	// writer walks no chain
	heads []uint64
	shift uint
	salt  uint64 // odd
}

// The parts of a head. Laps are counted modulo lapMask+1. When they have all passed, a dead chain
// may look alive; it then keeps marks that it no longer needs, which has no other effect.
const (
	// 28 bits of marks leave 4 bits for the lap above them; the slot has the lower half.
	markShift = 32
	markCount = 28
	lapShift  = markShift + markCount
	lapMask   = 1<<(64-lapShift) - 1
	markMask  = (1<<markCount - 1) << markShift
)

// family distinguishes the two key spaces.
func family(kind matcher.IdempotencyKind) uint64 { return uint64(kind) >> 1 & 1 }

// headOf is where the chain of a key starts, and markOf its mark there: a bit that other bits of
// the same hash choose. Any goroutine.
func (k *keyTable) headOf(family, key uint64) uint64 { return k.spread(family, key) >> k.shift }

func (k *keyTable) markOf(family, key uint64) uint64 {
	const choices = 32 // of which markCount fit
	return 1 << (markShift + k.spread(family, key)>>(k.shift-5)%choices*markCount/choices)
}

// spread is the salted hash. Its upper bits are the good ones.
func (k *keyTable) spread(family, key uint64) uint64 { return (key ^ family) * k.salt }

// is reports that a row belongs to the key that an account asks for. A row without an account
// belongs to every account, as in the engine.
func (r *KeyRow) is(space, key uint64, accountID uint32) bool {
	return r.Key == key && family(r.Kind) == space && (!r.ByAccount || r.AccountID == accountID)
}

// alive reports that the newest key of a chain is still remembered, seen from slot at, which is
// used next. It may also report this for a key that is long gone.
func (k *keys) alive(head uint64, at uint32) bool {
	slot := uint32(head)
	switch behind := (k.lap - head>>lapShift) & lapMask; behind {
	case 0:
		return slot != 0 && slot < at
	case 1:
		return slot > at
	}
	return false
}

// remember adds the decision on a key that is not there, in place of the oldest when the ring is
// full. It sets row.next. The row is whole before the head leads to it, so a reader that comes by
// the head finds it. It walks no chain: the cost is one slot and one head.
func (k *keys) remember(row *KeyRow) {
	at, space := k.next, family(row.Kind)
	head := &k.heads[k.headOf(space, row.Key)]
	fresh := k.lap<<lapShift | k.markOf(space, row.Key) | uint64(at)
	row.next = 0
	if old := *head; k.alive(old, at) {
		row.next = uint32(old)
		fresh |= old & markMask
	}
	s := &k.slots[at]
	s.lock.Begin()
	store(&s.row.Key, row.Key)
	store(&s.row.InputSeq, row.InputSeq)
	store(&s.row.TermsHash, row.TermsHash)
	store(&s.row.Ref, row.Ref)
	store(&s.row.Kind, row.Kind)
	store(&s.row.Reason, row.Reason)
	store(&s.row.ByAccount, row.ByAccount)
	store(&s.row.next, row.next)
	store(&s.row.AccountID, row.AccountID)
	s.lock.End()
	ring.StoreRelease(head, fresh)
	k.advance()
}

// advance moves to the slot that is used next. Slot 0 is none, so a lap begins at 1.
func (k *keys) advance() {
	if k.count < len(k.slots)-1 {
		k.count++
	}
	if k.next++; int(k.next) == len(k.slots) {
		k.next = 1
		k.lap++
	}
}

// TermsHash is a hash of the terms of an admission, without its idempotency key and its times. A
// repeated key with another hash asks for other terms. Except in records of version 1 the client's
// own id is part of the hash, so two ids with one key are distinguished. The hash is FNV-1a over
// words of eight bytes, folded after each; a sum over the id is one of the words.
//
// The hash is stored in images, so it never changes. No allocation.
func TermsHash(c *matcher.Command, clientID []byte) uint64 {
	h := uint64(14695981039346656037)
	h = fold(h, uint64(c.Type)|uint64(c.Side)<<8|uint64(c.Flags)<<16|uint64(c.AccountID)<<32)
	h = fold(h, uint64(c.SecurityID)|uint64(uint32(c.Qty))<<32)
	h = fold(h, uint64(c.LimitPx))
	switch c.Type {
	// the order, or the days of the contract
	case matcher.OrderReplace, matcher.SwapBook, matcher.SwaptionBook:
		h = fold(h, uint64(c.OrderRef))
	}
	if c.Version < 2 {
		return h
	}
	return fold(h, textSum(clientID))
}

// textSum is a sum over the words of a text, each multiplied by an odd number of its own, so that
// no multiplication waits for the one before. The last word of a longer text overlaps the one
// before.
func textSum(text []byte) (sum uint64) {
	const step = 0x9e3779b97f4a7c16
	factor := uint64(step + 1)
	sum = uint64(len(text)) << 57
	if len(text) < 8 {
		for i, b := range text {
			sum += uint64(b) << (8 * i & 63) * factor
		}
		return sum
	}
	last := binary.LittleEndian.Uint64(text[len(text)-8:])
	for ; len(text) >= 8; text = text[8:] {
		sum += binary.LittleEndian.Uint64(text) * factor
		factor += step
	}
	return sum + last*factor
}

// fold adds a word. The shift brings the upper bits down, which a multiplication leaves behind.
func fold(h, word uint64) uint64 {
	h = (h ^ word) * 1099511628211
	return h ^ h>>32
}
