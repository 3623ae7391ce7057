//go:build race

//perf:hot

package blotter

import (
	"sync/atomic"
	"unsafe"

	"posttrade/ring"
)

// store is the store of store_plain.go in a form that the race detector understands. Readers load
// whole words, so it stores the whole word of the field.
func store[T any](field *T, v T) {
	at := uintptr(unsafe.Pointer(field)) & 7
	word := (*uint64)(unsafe.Add(unsafe.Pointer(field), -int(at)))
	fresh := atomic.LoadUint64(word)
	*(*T)(unsafe.Add(unsafe.Pointer(&fresh), at)) = v
	atomic.StoreUint64(word, fresh)
}

// storeBytes stores whole words too.
func storeBytes(field *[MaxClientID]byte, text []byte) {
	var padded [MaxClientID]byte
	copy(padded[:], text)
	ring.CopyIn(wordsOf(field)[:(len(text)+7)/8], wordsOf(&padded))
}

// move stores one element at a time, in an order in which overlapping fields lose no element.
func move[T any](to, from []T) {
	n := min(len(to), len(from))
	if n == 0 {
		return
	}
	up := uintptr(unsafe.Pointer(&to[0])) > uintptr(unsafe.Pointer(&from[0]))
	for i := range n {
		if up {
			i = n - 1 - i
		}
		store(&to[i], from[i])
	}
}
