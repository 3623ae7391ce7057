//perf:hot

package matcher

import (
	"math/bits"
	"unsafe"

	"posttrade/ring"
)

// remembered is one idempotency entry: the first decision on a key. A refusal is remembered like an
// acceptance: the repetition of a refused order is refused with the same reason, also when the
// limit is another by then.
type remembered struct {
	key uint64
	// What IdempotencyKind says: the number of an order, or the InputSeq of a market trade or a
	// booking.
	ref      uint64
	decision uint64 // bits 0-7 RiskReason, 8-9 IdempotencyKind, 10 by account, 32-63 its account
}

// The parts of remembered.decision.
const (
	decisionBits uint64 = 1<<10 - 1 // what was decided, and on what
	byAccount    uint64 = 1 << 10   // the record of the entry names the account of its key
	accountAt           = 32
)

// askerOf returns the account for which a command looks up its key, as in remembered.decision.
// Records of version 1 do not name it: they match every entry of their key. In a journal they come
// before all records of version 2, because a build that writes version 1 cannot read version 2.
func askerOf(c *Command) uint64 {
	if c.Version < 2 {
		return 0
	}
	return uint64(c.AccountID)<<accountAt | byAccount
}

// is reports whether an entry belongs to the key that a command looks up. An entry that names no
// account matches every account.
func (r *remembered) is(family, key, asker uint64) bool {
	return r.key == key && r.family() == family &&
		(r.decision&asker&byAccount == 0 || (r.decision^asker)>>accountAt == 0)
}

// family distinguishes the two key spaces: orders and market trades share one, OTC bookings have
// their own. It is the upper bit of the IdempotencyKind.
func (r *remembered) family() uint64 { return r.decision >> 9 & 1 }

// The key spaces.
const (
	orderKeys    uint64 = 0
	contractKeys uint64 = 1
)

// keys is a bounded memory of idempotency keys: a ring of entries in the order of their first use,
// which drops the oldest first, and a table of buckets over it.
//
// Entries are numbered in order of arrival, and a slot of the table holds the number of its entry.
// So a slot is known to be free when its entry has left the ring, and no slot is ever cleared:
// forgetting costs nothing. The slots of a bucket are used in turn, so the next slot holds the
// oldest entry of the bucket, and the bucket is full when that entry is still in the ring. The few
// entries that find their bucket full are listed in spilled.
//
// The hash is salted per engine, because callers choose their keys: the table's layout is never
// visible in a decision.
type keys struct {
	table   unsafe.Pointer // of buckets; a hash cannot lead past its end
	shift   uint
	salt    uint64
	number  uint32 // of the next entry; the ring holds the len(ring) entries before it
	next    int    // its place in the ring
	count   int    // entries in the ring
	entries table[uint32, remembered]
	ring    []remembered // the same
	buckets []bucket
	spilled []uint32 // numbers of entries that found their bucket full; the first spillCount

	spillCount int
}

// bucketSlots is the number of entries that a bucket has room for.
const bucketSlots = 8

// bucket is a cache line of slots. A tag is a part of the hash. One comparison of words shows that
// none of four slots has the tag, which is nearly always so.
type bucket struct {
	tags    [bucketSlots]uint16
	numbers [bucketSlots]uint32 // 0 in a slot that was never used
	turn    uint32              // the next slot, a count that is never reset
	spilled uint32              // number of the last entry that found no room here
	_       [8]byte
}

var _ = [1]struct{}{}[unsafe.Sizeof(bucket{})-64]

// newKeys reserves a memory of capacity keys. Engines with different salts decide the same: the
// salt selects only the places.
func newKeys(a *ring.Arena, capacity int, salt uint64) keys {
	// An average of two entries per bucket: about one bucket in 4,000 spills. With two buckets or more
	// the shift is below the width of a machine word.
	n := 1 << bits.Len(uint(max(capacity/2, 2)-1))
	k := keys{
		ring:    ring.Carve[remembered](a, capacity),
		buckets: ring.Carve[bucket](a, n),
		spilled: ring.Carve[uint32](a, capacity),
		salt:    salt | 1,
		shift:   uint(64 - bits.Len(uint(n-1))),
		number:  uint32(capacity) + 1, // number 0, that of an empty slot, has already left the ring
	}
	k.entries = tableOf[uint32](k.ring)
	k.table = unsafe.Pointer(unsafe.SliceData(k.buckets))
	return k
}

// keySlot is the slot for a key that find did not know.
type keySlot struct {
	home *bucket
	tag  uint16
}

// find looks a key up for an account, see asker. When the key is unknown, slot is where remember
// puts it: the caller calls remember with it before any other find. key is not 0.
//
// Usually it reads one cache line, the bucket, and no entry.
func (k *keys) find(family, key, asker uint64) (entry *remembered, slot keySlot) {
	hash := key * k.salt
	slot = keySlot{k.bucket(hash), tagOf(hash)}
	tags := (*[2]uint64)(unsafe.Pointer(&slot.home.tags))
	// The tag in all four lanes of a word: an equal lane gives a lane of zeros.
	lanes := uint64(slot.tag) * eachLane
	if zeroLane(tags[0]^lanes)|zeroLane(tags[1]^lanes) != 0 || k.live(slot.home.spilled) {
		entry = k.findTagged(family, key, asker, slot)
	}
	return entry, slot
}

// coming returns where a later entry will be kept, farAhead ahead, if the ring does not end before.
func (k *keys) coming() unsafe.Pointer { return k.entries.ahead(uint32(k.next) + farAhead) }

// home returns the bucket of a key, for a prefetch.
func (k *keys) home(key uint64) *bucket { return k.bucket(key * k.salt) }

// bucket returns the bucket of a hash: its upper bits.
func (k *keys) bucket(hash uint64) *bucket {
	if ring.Checks {
		_ = k.buckets[hash>>(k.shift&63)]
	}
	return (*bucket)(unsafe.Add(k.table, uintptr(hash>>(k.shift&63))*unsafe.Sizeof(bucket{})))
}

// tagOf returns the tag of a hash: bits that select no bucket, because there are at most 2^27
// buckets.
func tagOf(hash uint64) uint16 { return uint16(hash >> 20) }

// Four lanes of 16 bits in a word.
const (
	eachLane = 0x0001_0001_0001_0001
	topBits  = eachLane << 15
)

// zeroLane is not 0 exactly when one of the four lanes of a word is. A borrow can mark a lane above
// a zero one too; that does not matter, because the zero one is there.
func zeroLane(word uint64) uint64 { return (word - eachLane) &^ word & topBits }

// findTagged is the slow path of find: some slot has the key's tag, or an entry of the bucket has
// spilled.
func (k *keys) findTagged(family, key, asker uint64, slot keySlot) *remembered {
	for i, tag := range slot.home.tags {
		if number := slot.home.numbers[i]; tag == slot.tag && k.live(number) {
			if e := k.entry(number); e.is(family, key, asker) {
				return e
			}
		}
	}
	if k.live(slot.home.spilled) {
		return k.findSpilled(family, key, asker)
	}
	return nil
}

// live reports that the entry with a number is in the ring, unless 2^32 entries have come since.
// Then a slot may seem to be in use by mistake, and the comparison with the entry itself decides.
func (k *keys) live(number uint32) bool { return k.number-1-number < uint32(len(k.ring)) }

// entry returns the entry with a number that is in the ring. Its place counts back from the next
// one, so numbers may wrap around and the ring may have any length.
func (k *keys) entry(number uint32) *remembered {
	at := k.next - int(k.number-number)
	if at < 0 {
		at += len(k.ring)
	}
	return &k.ring[at]
}

// remember adds the decision on a key that find did not know, at find's slot. When the ring is full
// it forgets the oldest entry. The cost does not depend on the number of keys, unless the bucket is
// full.
func (k *keys) remember(slot keySlot, key, ref, decision uint64) {
	b := slot.home
	at := b.turn % bucketSlots
	if !k.live(b.numbers[at]) {
		b.tags[at] = slot.tag
		b.numbers[at] = k.number
		b.turn++
	} else {
		k.spill(b)
	}
	entry := k.entries.at(uint32(k.next))
	entry.key, entry.ref, entry.decision = key, ref, decision
	k.number++
	if k.next++; k.next == len(k.ring) {
		k.next = 0
	}
	k.count = min(k.count+1, len(k.ring))
}

// spill lists the next entry and removes the listed entries that have left the ring. The list is
// short, because about one bucket in 4,000 spills, so a walk over it is cheap. The bucket keeps the
// number of its last spilled entry: while that one is in the ring, find has to look here.
func (k *keys) spill(b *bucket) {
	kept := 0
	for _, number := range k.spilled[:k.spillCount] {
		// The next entry takes the oldest one's place.
		if k.number-number < uint32(len(k.ring)) {
			k.spilled[kept] = number
			kept++
		}
	}
	k.spilled[kept] = k.number
	k.spillCount = kept + 1
	b.spilled = k.number
}

// findSpilled looks through the entries that found their bucket full.
func (k *keys) findSpilled(family, key, asker uint64) *remembered {
	for _, number := range k.spilled[:k.spillCount] {
		if k.number-number > uint32(len(k.ring)) {
			continue
		}
		if e := k.entry(number); e.is(family, key, asker) {
			return e
		}
	}
	return nil
}

// place returns the i-th oldest entry.
func (k *keys) place(i int) *remembered {
	return k.entry(k.number - uint32(k.count-i))
}
