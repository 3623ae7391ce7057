//go:build race || !amd64

package blotter

import "sync/atomic"

// publish and publish32 store a word that readers load atomically.
func publish(p *uint64, v uint64)   { atomic.StoreUint64(p, v) }
func publish32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }
