package engine

// heapFloor is how much the heap may grow between two collections, whatever is live. The runtime
// collects when the heap has doubled. Here the live heap is some 15 MiB, beside slabs that the
// runtime does not see, so that it would collect twice a second. Each collection takes every CPU
// core for milliseconds. Before it begins, it waits for every running thread, including threads of
// a low priority, which may not have a CPU core just then.
const heapFloor = 128 << 20

// newHeapFloor returns memory that counts as live and is never touched. The system gives no page
// for it, and as it has no pointers the collector scans nothing of it.
func newHeapFloor() []byte { return make([]byte, heapFloor) }
