package journal

import (
	"encoding/binary"
	"fmt"
)

// keyBytes is a prefix and a sequence.
const keyBytes = 9

// putKey writes a key into k: prefix, sequence big endian, so that iteration is in order. It
// returns k's memory.
func putKey(k *[keyBytes]byte, prefix byte, seq uint64) []byte {
	k[0] = prefix
	binary.BigEndian.PutUint64(k[1:], seq)
	return k[:]
}

// newKey is putKey with memory of its own.
func newKey(prefix byte, seq uint64) []byte {
	var k [keyBytes]byte
	return putKey(&k, prefix, seq)
}

// keySeq is the sequence of a key, and false when it has none.
func keySeq(k []byte) (uint64, bool) {
	if len(k) != keyBytes {
		return 0, false
	}
	return binary.BigEndian.Uint64(k[1:]), true
}

// keyName words a key for messages: c/42.
func keyName(k []byte) string {
	if seq, ok := keySeq(k); ok {
		return fmt.Sprintf("%c/%d", k[0], seq)
	}
	return fmt.Sprintf("%q", k)
}
