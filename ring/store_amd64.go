//perf:hot

//go:build !race

package ring

// needsBarrier: on amd64 a load may overtake the plain store before it, so the
// consumer has to order both sides when it parks (see doc.go).
const needsBarrier = true

// StoreRelease stores v: a plain MOV, which on amd64 has release order. A goroutine that loads v by
// sync/atomic sees everything that was written before. It and storeRelease are the only plain
// stores in the product that others load atomically.
//
// It is a plain assignment, which sync/atomic does not offer. The Store of sync/atomic is an
// exchange, which waits until every earlier store has its line. A function in assembly is a call
// that passes arguments and spills the caller's registers through memory. A core hides the travel
// time of a publication by buffering some hundred stores, so the stores of one call per message
// cost a third to a half of the throughput. The compiler keeps stores in order (in its SSA form
// each takes the memory state of the one before), and so does the processor. A test reads the order
// in the compiler's listing, and the tests with two threads fail if either does not keep it.
func StoreRelease(p *uint64, v uint64) { *p = v }

// storeRelease is StoreRelease for a position.
func storeRelease(p *int64, v int64) { *p = v }

// markLaps stores lap into n words starting at p, each with release order.
//
//go:noescape
func markLaps(p *uint32, n int, lap uint32)

// storeFence orders earlier stores before later stores: always so on amd64.
func storeFence() {}

// loadFence orders earlier loads before later loads: always so on amd64.
func loadFence() {}
