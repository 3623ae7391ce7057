//go:build !race

//perf:hot

package blotter

// publish and publish32 store a word that readers load atomically. On amd64 a plain store has
// release order, and spares the drain of the store buffer that an exchange costs.
func publish(p *uint64, v uint64)   { *p = v }
func publish32(p *uint32, v uint32) { *p = v }
