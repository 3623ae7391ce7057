package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// HashBytes is the length of every hash of the log.
const HashBytes = sha256.Size

// Hash is SHA-256.
type Hash = [HashBytes]byte

// SaltBytes is the length of the salt of a record: a record cannot be guessed by its hash when so
// many unknown bytes are hashed with it.
const SaltBytes = 16

// The first bytes of what is hashed: of a record or a leaf, of an inner node, of salts.
//
// They keep the three apart: a node can never be shown as a leaf. The first two are those of RFC
// 6962.
const (
	prefixLeaf = 0
	prefixNode = 1
	prefixSalt = 2
)

// Key is the evidence key, from which all salts of a log are made. It is secret: with it, records
// beside a proven one could be guessed.
type Key [32]byte

// Salts returns the salts of the records 2*pair and 2*pair+1 of a command: the two halves of
// SHA-256 over prefix, key, sequence and pair, big endian. So a command with one fill costs one
// hash.
func (k *Key) Salts(inputSeq uint64, pair uint32) (even, odd [SaltBytes]byte) {
	var b [1 + 32 + 8 + 4]byte
	b[0] = prefixSalt
	copy(b[1:], k[:])
	binary.BigEndian.PutUint64(b[33:], inputSeq)
	binary.BigEndian.PutUint32(b[41:], pair)
	both := sha256.Sum256(b[:])
	return [SaltBytes]byte(both[:SaltBytes]), [SaltBytes]byte(both[SaltBytes:])
}

// Salt returns the salt of one record of a command.
func (k *Key) Salt(inputSeq uint64, number uint32) [SaltBytes]byte {
	even, odd := k.Salts(inputSeq, number/2)
	if number%2 == 0 {
		return even
	}
	return odd
}

// RecordHash is the hash of a record in the small tree of its leaf: SHA-256 of 0, salt and record.
func RecordHash(salt [SaltBytes]byte, record []byte) Hash {
	b := make([]byte, 0, 192)
	b = append(append(append(b, prefixLeaf), salt[:]...), record...)
	return sha256.Sum256(b)
}

// LeafHash is the hash of a leaf's data in the big tree.
func LeafHash(data []byte) Hash {
	b := make([]byte, 0, 64)
	return sha256.Sum256(append(append(b, prefixLeaf), data...))
}

// NodeHash is the hash of an inner node of either tree.
func NodeHash(left, right *Hash) Hash {
	var b [1 + 2*HashBytes]byte
	b[0] = prefixNode
	copy(b[1:], left[:])
	copy(b[1+HashBytes:], right[:])
	return sha256.Sum256(b[:])
}

// Root is the root of the RFC 6962 tree over hashes, which it overwrites. Of no hashes it is the
// hash of nothing, as RFC 6962 has it.
func Root(hashes []Hash) Hash {
	if len(hashes) == 0 {
		return sha256.Sum256(nil)
	}
	for n := len(hashes); n > 1; n = (n + 1) / 2 {
		raise(hashes[:n])
	}
	return hashes[0]
}

// raise replaces the nodes of a level by those of the level above it. The last node of an odd
// number has no sibling and rises as it is.
func raise(level []Hash) {
	n := len(level)
	for i := 0; i+1 < n; i += 2 {
		level[i/2] = NodeHash(&level[i], &level[i+1])
	}
	if n%2 == 1 {
		level[n/2] = level[n-1]
	}
}

// Path returns the inclusion path of hashes[index], lowest sibling first. It overwrites hashes.
// index must be below their number. A tree of one has an empty path.
func Path(hashes []Hash, index int) []Hash {
	path := []Hash{}
	for n := len(hashes); n > 1; n = (n + 1) / 2 {
		if sibling := index ^ 1; sibling < n {
			path = append(path, hashes[sibling])
		}
		raise(hashes[:n])
		index /= 2
	}
	return path
}

// climb returns the root to which a path leads. The size of the tree need not be known: with its
// index and the length of the path it is settled on which side each sibling stands. ok is false for
// a path that no tree has.
func climb(h Hash, index uint64, path []Hash) (root Hash, ok bool) {
	// Below the level where index and last index part, a sibling stands where index says. Above it,
	// there is a sibling only on the left, for each bit that is set.
	inner := -1
	for i := 0; i <= len(path) && i <= 64; i++ {
		if i+bits.OnesCount64(index>>i) == len(path) {
			inner = i
			break
		}
	}
	if inner < 0 {
		return Hash{}, false
	}
	for i := range path {
		if i >= inner || index>>i&1 == 1 {
			h = NodeHash(&path[i], &h)
		} else {
			h = NodeHash(&h, &path[i])
		}
	}
	return h, true
}
