//perf:hot

//go:build race || !amd64

package ring

import (
	"sync/atomic"
	"unsafe"
)

// needsBarrier is false: these stores and the loads after them are sequentially consistent (on
// arm64 STLR and LDAR are never reordered), so the publisher needs no barrier from the consumer.
const needsBarrier = false

// StoreRelease stores v with at least release order. A goroutine that loads v by sync/atomic sees
// everything that was written before. On arm64 this is one inlined STLR, cheaper than a call.
func StoreRelease(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// storeRelease is StoreRelease for a position.
func storeRelease(p *int64, v int64) { atomic.StoreInt64(p, v) }

// markLaps stores lap into n words starting at p, each with release order.
func markLaps(p *uint32, n int, lap uint32) {
	words := unsafe.Slice(p, n)
	for i := range words {
		atomic.StoreUint32(&words[i], lap)
	}
}
