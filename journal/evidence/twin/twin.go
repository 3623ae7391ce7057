package twin

import (
	"crypto/sha256"
	"encoding/binary"
)

// The sizes of blocks, and of what stands behind a message: a set bit and its length in bits.
const (
	blockBytes  = 64
	lengthBytes = 8
)

// Blocks is how many blocks a message of some bytes fills, with what stands behind it.
func Blocks(messageBytes int) int {
	return (messageBytes + 1 + lengthBytes + blockBytes - 1) / blockBytes
}

// Sum sets a and b to the SHA-256 of p and q. Both must fill as many blocks, and have the capacity
// for them: Sum writes behind the messages.
func Sum(p, q []byte, a, b *[sha256.Size]byte) {
	if !fast {
		*a, *b = sha256.Sum256(p), sha256.Sum256(q)
		return
	}
	n := Blocks(len(p))
	if n != Blocks(len(q)) {
		panic("twin: messages of different numbers of blocks")
	}
	s := start
	blocks2(&s, end(p, n), end(q, n), n)
	s.sum(0, a)
	s.sum(2, b)
}

// end writes what stands behind a message of n blocks.
func end(message []byte, n int) *byte {
	whole := message[:n*blockBytes]
	behind := whole[len(message) : len(whole)-lengthBytes]
	clear(behind[1:])
	behind[0] = 0x80
	binary.BigEndian.PutUint64(whole[len(whole)-lengthBytes:], 8*uint64(len(message)))
	return &whole[0]
}

// lanes is the state of two hashes, two rows each, in the order in which the instructions have the
// eight words of FIPS 180-4: f e b a, h g d c.
type lanes [4][4]uint32

// start is the state before the first block.
var start = lanes{
	{0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667}, {0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372},
	{0x9b05688c, 0x510e527f, 0xbb67ae85, 0x6a09e667}, {0x5be0cd19, 0x1f83d9ab, 0xa54ff53a, 0x3c6ef372},
}

// sum writes the hash whose state begins at a row.
func (s *lanes) sum(row int, to *[sha256.Size]byte) {
	feba, hgdc := &s[row], &s[row+1]
	for i, word := range [...]uint32{feba[3], feba[2], hgdc[3], hgdc[2], feba[1], feba[0], hgdc[1],
		hgdc[0]} {
		binary.BigEndian.PutUint32(to[4*i:], word)
	}
}
