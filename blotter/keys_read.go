package blotter

import (
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"posttrade/matcher"
	"posttrade/ring"
)

// newKeys carves the tables for capacity keys: about one head for each slot.
func newKeys(a *ring.Arena, capacity int) keys {
	log := max(4, bits.Len(uint(capacity-1)))
	return keys{next: 1, keyTable: keyTable{
		slots: ring.Carve[keySlot](a, capacity+1),
		heads: ring.Carve[uint64](a, 1<<log),
		shift: uint(64 - log),
		salt:  rand.Uint64() | 1,
	}}
}

// copyRow copies a row, whole.
func (k *keyTable) copyRow(at uint32, row *KeyRow) {
	s := &k.slots[at]
	copyWhole(&s.lock, wordsOf(row), wordsOf(&s.row))
}

// read finds a key, and copies its row whole. It finds every key that is there all the time: a slot
// that leads to a younger key was used again, and the slots of the older keys behind it were used
// again before that. row means nothing when the result is false.
func (k *keyTable) read(space, key uint64, accountID uint32, row *KeyRow) bool {
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
		if row.is(space, key, accountID) {
			return true
		}
		younger = row.InputSeq
	}
	return false
}

// ExpectKey prefetches the memory that Key reads first, and does not wait. It is for callers that
// ask for many keys. Any goroutine.
func (v *Views) ExpectKey(kind matcher.IdempotencyKind, key uint64) {
	k := &v.tables.Load().keys
	ring.Prefetch(unsafe.Pointer(&k.heads[k.headOf(family(kind), key)]), nil, nil, nil)
}

// Key returns the first decision on an account's idempotency key, false if none is remembered.
// Orders, replaces and market trades share one key space, so for KeyOrder and KeyTrade the row's
// own Kind says which of them it was. Any goroutine.
func (v *Views) Key(kind matcher.IdempotencyKind, accountID uint32, key uint64) (
	row KeyRow, ok bool,
) {
	if key == 0 || !v.tables.Load().keys.read(family(kind), key, accountID, &row) {
		return KeyRow{}, false
	}
	return row, true
}

// ClientKey makes keys out of client order ids. It never changes.
func (v *Views) ClientKey() *matcher.ClientKey { return &v.clientKey }

// Repeats reports that an admission asks for the same as the first admission with its key: the same
// terms under the same client id. security is the ticker as it was sent, nil without one. If the
// first admission was refused because no security had its ticker, one with the same ticker repeats
// it, whether or not a security has that ticker now.
func (r *KeyRow) Repeats(c *matcher.Command, clientID, security []byte) bool {
	asked := *c
	if !r.ByAccount {
		asked.Version = matcher.OldestVersion
		if len(security) > 0 && matcher.IsUnknownTicker(asked.SecurityID) {
			asked.SecurityID = 0 // those records do not name the security
		}
		return r.TermsHash == TermsHash(&asked, clientID)
	}
	if r.TermsHash == TermsHash(&asked, clientID) {
		return true
	}
	if r.Reason == matcher.Accepted || len(security) == 0 {
		return false
	}
	asked.SecurityID = matcher.UnknownTicker(security)
	return r.TermsHash == TermsHash(&asked, clientID)
}
