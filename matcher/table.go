//perf:hot

package matcher

import (
	"unsafe"

	"posttrade/ring"
)

// table is the memory of a slab by index, without a bounds check. It never moves and never grows,
// and the engine asks it only for indexes that the engine itself has assigned. With ring.Checks it
// knows its length and panics at any other index.
type table[I ~uint32, T any] struct {
	bound
	first unsafe.Pointer
}

// tableOf is the table over a slab. The table does not keep the slab's memory: its owner does, and
// a table must be made again when the slab is replaced.
func tableOf[I ~uint32, T any](slab []T) table[I, T] {
	return table[I, T]{boundOf(len(slab)), unsafe.Pointer(unsafe.SliceData(slab))}
}

// at returns the row with an index. Without ring.Checks an index beyond the slab reads foreign
// memory.
func (t table[I, T]) at(i I) *T {
	if ring.Checks {
		t.mustHold(uint32(i))
	}
	var row T
	return (*T)(unsafe.Add(t.first, uintptr(i)*unsafe.Sizeof(row)))
}

// ahead returns where the row with an index would lie, for a prefetch: there may be none. The
// pointer must not be followed.
func (t table[I, T]) ahead(i I) unsafe.Pointer {
	var row T
	return unsafe.Add(t.first, uintptr(i)*unsafe.Sizeof(row))
}
