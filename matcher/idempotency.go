//perf:hot

package matcher

import "math/bits"

// remembered is one idempotency entry: the first decision on a key.
type remembered struct {
	key      uint64
	ref      uint64
	decision uint64 // bits 0-7 RiskReason, bits 8-9 IdempotencyKind
}

// family tells the two key spaces apart: orders and market trades share one,
// OTC bookings have their own.
func (r *remembered) family() uint64 { return r.decision >> 9 & 1 }

// The key spaces.
const (
	orderKeys    uint64 = 0
	contractKeys uint64 = 1
)

// keys is a bounded memory of idempotency keys: a ring of entries in the order
// of their first use, oldest out first, and a table of buckets over it.
//
// Entries are numbered as they come, and a slot of the table holds the number of
// its entry, so a slot whose entry has left the ring is known to be free without
// ever being cleared: forgetting costs nothing. A bucket is a cache line that is
// looked through without a branch to guess. The few entries that find their
// bucket full are listed in spilled.
//
// The hash is salted per engine, because callers choose their keys: the table's
// layout is never visible in a decision.
type keys struct {
	ring    []remembered
	buckets []bucket
	spills  []uint64 // a bit a bucket: an entry of it may be in spilled
	spilled []uint32 // numbers of entries that had no room; the first spillCount
	salt    uint64
	shift   uint
	number  uint32 // of the next entry; the ring holds the len(ring) before it
	next    int    // its place in the ring
	count   int    // entries in the ring

	spillCount int
}

// bucket is a line of slots: the upper half of an entry's hash, then its number.
// A slot of zeros is free.
type bucket [8]uint64

func newKeys(a *arena, capacity int, salt uint64) keys {
	// Two entries a bucket on average: about one bucket in 4,000 spills.
	n := 1 << bits.Len(uint(max(capacity/2, 1)-1))
	return keys{
		ring:    carve[remembered](a, capacity),
		buckets: carve[bucket](a, n),
		spills:  carve[uint64](a, (n+63)/64),
		spilled: carve[uint32](a, capacity),
		salt:    salt | 1,
		shift:   uint(64 - bits.Len(uint(n-1))),
		number:  uint32(capacity) + 1, // number 0, that of an empty slot, has left already
	}
}

// find looks a key up. When it is unknown, slot is where remember puts it,
// provided that nothing else happens to the table in between.
func (k *keys) find(family, key uint64) (entry *remembered, slot keySlot) {
	hash := key * k.salt
	home := hash >> k.shift
	tag := uint32(hash >> 16)
	oldest := k.number - uint32(len(k.ring))
	room := uint32(len(k.ring))

	b := &k.buckets[home]
	var same, free uint32
	for i, word := range b {
		// age < room says, in 32 bits that may wrap, that the entry is in the ring.
		live := below(uint32(word)-oldest, room)
		same |= equal(uint32(word>>32), tag) & live << i
		free |= (live ^ 1) << i
	}
	slot = keySlot{home: uint32(home), tag: tag, free: uint8(free)}
	for ; same != 0; same &= same - 1 {
		if e := k.entry(uint32(b[bits.TrailingZeros32(same)])); e.key == key && e.family() == family {
			return e, slot
		}
	}
	if k.spillCount != 0 && k.spills[home/64]>>(home%64)&1 != 0 {
		return k.findSpilled(family, key), slot
	}
	return nil, slot
}

// home is the bucket of a key.
func (k *keys) home(key uint64) *bucket { return &k.buckets[key*k.salt>>k.shift] }

// keySlot is where a key that find did not know belongs.
type keySlot struct {
	home uint32
	tag  uint32
	free uint8 // a bit for every slot of the bucket that may be taken
}

// below and equal are 1 or 0 without a branch.
func below(a, b uint32) uint32 { return uint32((uint64(a) - uint64(b)) >> 63) }
func equal(a, b uint32) uint32 { return below(a^b, 1) }

// entry is the entry of a number that is in the ring. Its place counts back from
// the next one, so numbers may wrap around and the ring be of any length.
func (k *keys) entry(number uint32) *remembered {
	at := k.next - int(k.number-number)
	if at < 0 {
		at += len(k.ring)
	}
	return &k.ring[at]
}

// remember adds the decision on a key that find did not know, at find's slot,
// and forgets the oldest when the ring is full.
func (k *keys) remember(slot keySlot, entry remembered) {
	if slot.free != 0 {
		at := bits.TrailingZeros8(slot.free)
		k.buckets[slot.home][at] = uint64(slot.tag)<<32 | uint64(k.number)
	} else {
		k.spill(slot)
	}
	k.ring[k.next] = entry
	k.number++
	if k.next++; k.next == len(k.ring) {
		k.next = 0
	}
	k.count = min(k.count+1, len(k.ring))
}

// spill lists the next entry, and takes out those that have left the ring.
func (k *keys) spill(slot keySlot) {
	kept := 0
	for _, number := range k.spilled[:k.spillCount] {
		// The next entry takes the oldest one's place.
		if k.number-number < uint32(len(k.ring)) {
			k.spilled[kept] = number
			kept++
		}
	}
	if kept == 0 {
		clear(k.spills)
	}
	k.spilled[kept] = k.number
	k.spillCount = kept + 1
	k.spills[slot.home/64] |= 1 << (slot.home % 64)
}

// findSpilled is the slow path of find.
func (k *keys) findSpilled(family, key uint64) *remembered {
	for _, number := range k.spilled[:k.spillCount] {
		if k.number-number > uint32(len(k.ring)) {
			continue
		}
		if e := k.entry(number); e.key == key && e.family() == family {
			return e
		}
	}
	return nil
}

// place is the i-th oldest entry.
func (k *keys) place(i int) *remembered {
	return k.entry(k.number - uint32(k.count-i))
}
