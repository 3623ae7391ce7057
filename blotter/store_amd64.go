//go:build !race

//perf:hot

package blotter

// publish stores a word that readers load atomically. On amd64 a plain store has
// release order, and spares the drain of the store buffer that an exchange costs.
func publish(p *uint64, v uint64) { *p = v }
