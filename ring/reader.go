//perf:hot

package ring

import "unsafe"

// Reader reads a Fanout without holding the producer up. It copies slots out and then checks
// whether the producer can have overwritten them meanwhile. If so, the reader was lapped: it
// discards the copy and continues at the oldest whole slot.
type Reader[T any] struct {
	words     []uint64 // the slots as words: constant, as is the rest of this block
	region    *Region  // keeps the mapping reachable
	published *cursor
	mask      int64
	slotWords int

	pos    int64 // writer: the reader. The next position to copy
	missed int64 // writer: the reader. Positions that were overwritten before it copied them
}

// Next copies published slots, at most len(dst), into dst and returns how many; 0 when there is
// none. It returns ErrLapped when the producer has overtaken the reader: then no slot is returned,
// Missed has grown by the number lost, and the next call continues at the oldest whole slot. No
// allocation, no wait.
func (r *Reader[T]) Next(dst []T) (n int, err error) {
	lo, head := r.pos, r.published.v.Load()
	if lo < r.oldest(head) {
		return 0, r.skip(head)
	}
	hi := min(head, lo+int64(len(dst)))
	if hi <= lo {
		return 0, nil
	}
	r.copyOut(sliceAs[uint64](dst, len(dst)*r.slotWords), lo, hi)
	loadFence() // the copy before the second look
	if head = r.published.v.Load(); lo < r.oldest(head) {
		return 0, r.skip(head)
	}
	r.pos = hi
	return int(hi - lo), nil
}

// oldest is the first position that the producer cannot be overwriting while
// head is published: it writes at most half a lap ahead of that.
func (r *Reader[T]) oldest(head int64) int64 {
	return max(0, head-(r.mask+1)/2)
}

func (r *Reader[T]) skip(head int64) error {
	to := r.oldest(head)
	r.missed += to - r.pos
	r.pos = to
	return ErrLapped
}

// copyOut copies the slots [lo, hi), at most a lap, in one or two runs.
func (r *Reader[T]) copyOut(dst []uint64, lo, hi int64) {
	from := int(lo&r.mask) * r.slotWords
	n := int(hi-lo) * r.slotWords
	first := min(n, len(r.words)-from)
	copyWords(dst[:first], r.words[from:])
	copyWords(dst[first:n], r.words)
}

// Empty reports that nothing is published beyond what Next returned.
func (r *Reader[T]) Empty() bool { return r.published.v.Load() == r.pos }

// Position is the position that Next copies first.
func (r *Reader[T]) Position() int64 { return r.pos }

// Missed is how many slots were overwritten before the reader copied them.
func (r *Reader[T]) Missed() int64 { return r.missed }

// sliceAs views the memory of s as n elements of another type, with no more bytes than s has.
func sliceAs[To, From any](s []From, n int) []To {
	return unsafe.Slice((*To)(unsafe.Pointer(unsafe.SliceData(s))), n)
}

// wordsOf is the size of T in 64-bit words.
func wordsOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero) / 8)
}
