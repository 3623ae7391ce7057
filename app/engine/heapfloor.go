package engine

// heapFloor is how much the heap may grow between two collections whatever is live. The
// runtime collects when the heap has doubled; here it is some 15 MiB beside slabs that it
// does not see, so that it would collect twice a second. Each collection takes every
// core for milliseconds, and to begin it waits for every running thread, those of a low
// priority too, which may not have a core just then.
const heapFloor = 128 << 20

// newHeapFloor is memory that counts as live and is never touched: the system gives no
// page for it, and without pointers nothing of it is scanned.
func newHeapFloor() []byte { return make([]byte, heapFloor) }
