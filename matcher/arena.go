package matcher

import (
	"io"
	"syscall"
	"unsafe"

	"posttrade/ring"
)

// arena owns the slabs of one engine: pointer-free memory that is reserved at
// once, resident only where touched and invisible to the collector.
//
// The first failure sticks, so that a constructor carves all its tables and asks once.
type arena struct {
	held []io.Closer
	err  error
}

// hugeBytes is the size of a large page where there are some.
const hugeBytes = 2 << 20

// carve returns a zeroed table of n elements, nil after a failure. The table is
// used from its beginning on, so it asks for large pages: a table of many
// megabytes that is walked at random spends more time on address translation
// than on data, and one fault in place of 512 is felt by one order in place of many.
func carve[T any](a *arena, n int) []T {
	table := carveSparse[T](a, n)
	if bytes := uintptr(n) * unsafe.Sizeof(*new(T)); table != nil && bytes >= hugeBytes {
		// Advice that the kernel does not take changes nothing but the speed.
		_ = syscall.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&table[0])), bytes), syscall.MADV_HUGEPAGE)
	}
	return table
}

// carveSparse is carve for a table that is touched here and there.
func carveSparse[T any](a *arena, n int) []T {
	if a.err != nil {
		return nil
	}
	slab, err := ring.NewSlab[T](n)
	if err != nil {
		a.err = err
		return nil
	}
	a.held = append(a.held, slab)
	return slab.Slice()
}

// hold makes the arena close what holds memory of its own.
func (a *arena) hold(c io.Closer) { a.held = append(a.held, c) }

// close gives everything back; the tables must not be used afterwards.
func (a *arena) close() error {
	var first error
	for _, c := range a.held {
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	a.held = nil
	return first
}
