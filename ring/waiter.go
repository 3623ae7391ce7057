//perf:hot

package ring

import (
	"sync/atomic"
	"unsafe"
)

// States of a Waiter's word.
const (
	awake  = 0
	parked = 1 // set by the consumer before it looks a last time and sleeps
	nudged = 2 // set by Wake: the next park returns at once
)

// Waiter is the word on which one consumer parks. It fills a line of its own in
// the ring's region, so a publisher in another process can wake the consumer.
// The zero Waiter is ready for use; it also works in ordinary Go memory.
//
// Writers: the consumer sets parked and awake; the goroutine that wakes it sets awake or nudged.
type Waiter struct {
	word atomic.Uint32
	_    [cacheLine - 4]byte
}

// Compile-time checks: a cursor and a Waiter are one spacing each.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(cursor{})-cacheLine]
	_ = [1]struct{}{}[unsafe.Sizeof(Waiter{})-cacheLine]
)

// addr is the address that publish looks at after its store.
func (w *Waiter) addr() *uint32 { return (*uint32)(unsafe.Pointer(&w.word)) }

// Notify wakes the consumer if it is parked. It is for a publisher that stores a word of its own,
// such as a Sequence, by a sequentially consistent Store. It works after Sequence.Release too,
// because the parking consumer issues the barrier for both (doc.go). It costs one load when the
// consumer is not parked. Any goroutine.
func (w *Waiter) Notify() {
	if w.word.Load() != awake {
		wakeParked(w.addr())
	}
}
