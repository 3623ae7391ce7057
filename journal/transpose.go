//perf:hot

package journal

import "encoding/binary"

// recordBytes is the size of a command and of a fill: one cache line.
const recordBytes = 64

// Masks of the three steps of an 8 x 8 byte transposition.
const (
	mask8  = 0x00ff00ff00ff00ff
	mask16 = 0x0000ffff0000ffff
	mask32 = 0x00000000ffffffff
)

// transpose turns n records of 64 bytes into 64 planes of n bytes: plane p holds
// byte p of every record. Columns of numbers that differ in their low bytes only
// become long runs, which makes the compressor three times faster and tighter.
//
// It works on tiles of 64 records: their 4 KiB stay in the first-level cache and
// every plane receives one whole line. len(src) and len(dst) are n*64 or more.
//
// With a0 for byte 0 of the first record:
//
//	records  a0 a1 .. a63   b0 b1 .. b63   c0 c1 .. c63
//	planes   a0 b0 c0       a1 b1 c1  ..   a63 b63 c63
func transpose(dst, src []byte, n int) {
	whole := n &^ 7
	for tile := 0; tile < whole; tile += 64 {
		end := min(tile+64, whole)
		for w := 0; w < recordBytes; w += 8 {
			for i := tile; i < end; i += 8 {
				s := src[i*recordBytes+w : i*recordBytes+w+7*recordBytes+8]
				r0 := binary.LittleEndian.Uint64(s)
				r1 := binary.LittleEndian.Uint64(s[1*recordBytes:])
				r2 := binary.LittleEndian.Uint64(s[2*recordBytes:])
				r3 := binary.LittleEndian.Uint64(s[3*recordBytes:])
				r4 := binary.LittleEndian.Uint64(s[4*recordBytes:])
				r5 := binary.LittleEndian.Uint64(s[5*recordBytes:])
				r6 := binary.LittleEndian.Uint64(s[6*recordBytes:])
				r7 := binary.LittleEndian.Uint64(s[7*recordBytes:])
				r0, r1, r2, r3, r4, r5, r6, r7 = square(r0, r1, r2, r3, r4, r5, r6, r7)
				d := dst[w*n+i:]
				binary.LittleEndian.PutUint64(d, r0)
				binary.LittleEndian.PutUint64(d[n:], r1)
				binary.LittleEndian.PutUint64(d[2*n:], r2)
				binary.LittleEndian.PutUint64(d[3*n:], r3)
				binary.LittleEndian.PutUint64(d[4*n:], r4)
				binary.LittleEndian.PutUint64(d[5*n:], r5)
				binary.LittleEndian.PutUint64(d[6*n:], r6)
				binary.LittleEndian.PutUint64(d[7*n:], r7)
			}
		}
	}
	for i := whole; i < n; i++ {
		for p := range recordBytes {
			dst[p*n+i] = src[i*recordBytes+p]
		}
	}
}

// untranspose is the inverse of transpose, with the same tiles. Any bytes may be given.
func untranspose(dst, src []byte, n int) {
	whole := n &^ 7
	for tile := 0; tile < whole; tile += 64 {
		end := min(tile+64, whole)
		for w := 0; w < recordBytes; w += 8 {
			for i := tile; i < end; i += 8 {
				s := src[w*n+i:]
				r0 := binary.LittleEndian.Uint64(s)
				r1 := binary.LittleEndian.Uint64(s[n:])
				r2 := binary.LittleEndian.Uint64(s[2*n:])
				r3 := binary.LittleEndian.Uint64(s[3*n:])
				r4 := binary.LittleEndian.Uint64(s[4*n:])
				r5 := binary.LittleEndian.Uint64(s[5*n:])
				r6 := binary.LittleEndian.Uint64(s[6*n:])
				r7 := binary.LittleEndian.Uint64(s[7*n:])
				r0, r1, r2, r3, r4, r5, r6, r7 = square(r0, r1, r2, r3, r4, r5, r6, r7)
				d := dst[i*recordBytes+w : i*recordBytes+w+7*recordBytes+8]
				binary.LittleEndian.PutUint64(d, r0)
				binary.LittleEndian.PutUint64(d[1*recordBytes:], r1)
				binary.LittleEndian.PutUint64(d[2*recordBytes:], r2)
				binary.LittleEndian.PutUint64(d[3*recordBytes:], r3)
				binary.LittleEndian.PutUint64(d[4*recordBytes:], r4)
				binary.LittleEndian.PutUint64(d[5*recordBytes:], r5)
				binary.LittleEndian.PutUint64(d[6*recordBytes:], r6)
				binary.LittleEndian.PutUint64(d[7*recordBytes:], r7)
			}
		}
	}
	for i := whole; i < n; i++ {
		for p := range recordBytes {
			dst[i*recordBytes+p] = src[p*n+i]
		}
	}
}

// square transposes eight words as an 8 x 8 square of bytes: byte b of word k
// becomes byte k of word b. Its own inverse.
func square(
	a, b, c, d, e, f, g, h uint64,
) (uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64) {
	a, b = a&mask8|b&mask8<<8, a>>8&mask8|b&^mask8
	c, d = c&mask8|d&mask8<<8, c>>8&mask8|d&^mask8
	e, f = e&mask8|f&mask8<<8, e>>8&mask8|f&^mask8
	g, h = g&mask8|h&mask8<<8, g>>8&mask8|h&^mask8

	a, c = a&mask16|c&mask16<<16, a>>16&mask16|c&^mask16
	b, d = b&mask16|d&mask16<<16, b>>16&mask16|d&^mask16
	e, g = e&mask16|g&mask16<<16, e>>16&mask16|g&^mask16
	f, h = f&mask16|h&mask16<<16, f>>16&mask16|h&^mask16

	a, e = a&mask32|e<<32, a>>32|e&^mask32
	b, f = b&mask32|f<<32, b>>32|f&^mask32
	c, g = c&mask32|g<<32, c>>32|g&^mask32
	d, h = d&mask32|h<<32, d>>32|h&^mask32
	return a, b, c, d, e, f, g, h
}

// Where a command record has its type and its sequence.
const (
	typeOffset = 60
	seqOffset  = 8
)

// group copies n command records into dst, stably sorted by their type, with the sequence left out,
// and writes the types in their original order into types. Cancels then do not interrupt the
// columns of orders, which stores a third less.
//
// For the types 1 2 1 2 the records of dst are the first and the third, then the second and the
// fourth, and types holds 1 2 1 2. One pass counts the types, a second copies: nothing is compared.
func group(dst, types, src []byte, n int) {
	var next [256]int
	for i := range n {
		t := src[i*recordBytes+typeOffset]
		types[i] = t
		next[t]++
	}
	starts(&next)
	for i, t := range types[:n] {
		at := next[t] * recordBytes
		next[t]++
		copy(dst[at:at+recordBytes], src[i*recordBytes:])
		binary.LittleEndian.PutUint64(dst[at+seqOffset:], 0)
	}
}

// ungroup is the inverse of group; the first record has the sequence first. types decides
// everything: bytes that were not written by group give other records, never an access outside of
// src, because as many positions are handed out as there are records.
func ungroup(dst, types, src []byte, n int, first uint64) {
	var next [256]int
	for _, t := range types[:n] {
		next[t]++
	}
	starts(&next)
	for i, t := range types[:n] {
		at := next[t] * recordBytes
		next[t]++
		d := dst[i*recordBytes : i*recordBytes+recordBytes]
		copy(d, src[at:at+recordBytes])
		binary.LittleEndian.PutUint64(d[seqOffset:], first+uint64(i))
		d[typeOffset] = t
	}
}

// starts turns counts of each type into the position of its first record.
func starts(next *[256]int) {
	sum := 0
	for t := range next {
		next[t], sum = sum, sum+next[t]
	}
}
