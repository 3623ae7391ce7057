//perf:hot

package ring

import (
	"sync/atomic"
	"unsafe"
)

// cacheLine is the unit of spacing between words with different writers: two
// 64-byte lines, because the adjacent-line prefetcher fetches lines in pairs.
const cacheLine = 128

// Sequence is a number that one goroutine raises and others read: the last
// inputSeq made durable, the last one agreed. Zero means "nothing yet".
//
// The padding keeps the line of v inside the struct wherever the struct starts,
// so two neighbouring Sequences never share a line.
type Sequence struct {
	_ [cacheLine]byte
	v atomic.Int64
	_ [cacheLine - 8]byte
}

// Compile-time check: the index is out of range unless the size is two lines.
var _ = [1]struct{}{}[unsafe.Sizeof(Sequence{})-2*cacheLine]

// Load returns the number. All writes of its writer before it raised the number are visible. Any
// goroutine.
func (s *Sequence) Load() int64 { return s.v.Load() }

// Store raises the number and is sequentially consistent: a later load by the
// same goroutine is not answered before the store is visible. Writer only.
func (s *Sequence) Store(n int64) { s.v.Store(n) }

// Release raises the number with a release store: everything written before it is visible to a
// goroutine that loads it. There is no other guarantee. It costs a plain MOV; Store costs a locked
// exchange. Writer only.
func (s *Sequence) Release(n int64) { storeRelease(word(&s.v), n) }

// cursor is a Sequence inside a region: it starts on a line and fills it.
type cursor struct {
	v atomic.Int64
	_ [cacheLine - 8]byte
}

// word is the address that the assembly stores take.
func word(v *atomic.Int64) *int64 { return (*int64)(unsafe.Pointer(v)) }
