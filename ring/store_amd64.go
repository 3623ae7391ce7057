//perf:hot

//go:build !race

package ring

// needsBarrier: on amd64 a load may overtake the plain store before it, so the
// consumer has to order both sides when it parks (see doc.go).
const needsBarrier = true

// storeRelease stores v: a plain MOV, which on amd64 has release order.
//
//go:noescape
func storeRelease(p *int64, v int64)

// publish is storeRelease followed by a load of the parked word; when that is
// not zero it continues in wakeParked.
//
//go:noescape
func publish(p *int64, v int64, parked *uint32)

// markLaps stores lap into n words starting at p, each with release order.
//
//go:noescape
func markLaps(p *uint32, n int, lap uint32)

// storeFence orders earlier stores before later stores: always so on amd64.
func storeFence() {}

// loadFence orders earlier loads before later loads: always so on amd64.
func loadFence() {}
