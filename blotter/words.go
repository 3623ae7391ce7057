//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/ring"
)

// wordsOf is the memory of a row as words, the form in which rows are copied. The size of T is a
// multiple of eight bytes, and T has no pointers.
func wordsOf[T any](row *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(row)), unsafe.Sizeof(*row)/8)
}

// copyWhole copies src, as far as dst reaches, as it was between two writes under lock. A writer
// inside a write needs only a few more stores, unless its thread has lost the core at that point.
// The reader spins meanwhile; it never blocks the writer.
func copyWhole(lock *ring.SeqLock, dst, src []uint64) {
	for {
		stamp, ok := lock.Read()
		if !ok {
			continue
		}
		ring.CopyOut(dst, src)
		if !lock.Retry(stamp) {
			return
		}
	}
}
