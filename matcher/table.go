//perf:hot

package matcher

import "unsafe"

// table is the memory of a slab by index, without a bounds check. It never moves and never grows,
// and the engine asks it only for indexes that the engine itself has assigned.
type table[T any] struct{ first unsafe.Pointer }

func tableOf[T any](slab []T) table[T] {
	return table[T]{unsafe.Pointer(unsafe.SliceData(slab))}
}

func (t table[T]) at(i uint32) *T {
	var row T
	return (*T)(unsafe.Add(t.first, uintptr(i)*unsafe.Sizeof(row)))
}
