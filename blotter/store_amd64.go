//go:build !race

//perf:hot

package blotter

// publish stores a word that readers load atomically. On amd64 a plain store has release order, and
// it does not drain the store buffer as an exchange does.
func publish(p *uint64, v uint64) { *p = v }
