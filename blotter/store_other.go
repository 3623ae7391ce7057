//go:build race || !amd64

package blotter

import "sync/atomic"

// publish stores a word that readers load atomically.
func publish(p *uint64, v uint64) { atomic.StoreUint64(p, v) }
