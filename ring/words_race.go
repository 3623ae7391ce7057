//go:build race

package ring

import "sync/atomic"

// Copies that the race detector understands: word by word, atomically.

func storeWords(dst, src []uint64) {
	for i := range min(len(dst), len(src)) {
		atomic.StoreUint64(&dst[i], src[i])
	}
}

func loadWords(dst, src []uint64) {
	for i := range min(len(dst), len(src)) {
		dst[i] = atomic.LoadUint64(&src[i])
	}
}

// copyWords copies slots that a producer may be overwriting with plain stores. The detector must
// not see it: the cursor reveals a torn copy, which is then discarded.
//
//go:norace
func copyWords(dst, src []uint64) {
	for i := range min(len(dst), len(src)) {
		dst[i] = src[i]
	}
}
