//perf:hot

package blotter

import (
	"unsafe"

	"posttrade/ring"
)

// wordsOf is the memory of a row as words, the form in which rows are copied.
// T has a size that is a multiple of eight bytes and no pointers.
func wordsOf[T any](row *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(row)), unsafe.Sizeof(*row)/8)
}

// copyWhole copies src, as far as dst reaches, as it was between two writes
// under lock. The writer is a few stores from its end when it is met, unless its
// thread was taken off the core just there.
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
