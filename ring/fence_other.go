//go:build !arm64 && (race || !amd64)

package ring

import "sync/atomic"

// storeFence orders earlier stores before later stores: any read-modify-write is a full fence.
func storeFence() {
	var here atomic.Uint32
	here.Add(1)
}

// loadFence orders earlier loads before later loads.
func loadFence() {
	var here atomic.Uint32
	here.Add(1)
}
