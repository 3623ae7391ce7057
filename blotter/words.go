//perf:hot

package blotter

import "unsafe"

// wordsOf is the memory of a row as words, the form in which rows are copied.
// T has a size that is a multiple of eight bytes and no pointers.
func wordsOf[T any](row *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(row)), unsafe.Sizeof(*row)/8)
}
