package engine

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"posttrade/ring/ringtest"
)

// While an engine runs, the heap grows by the floor before it is collected, and the floor itself
// takes no memory. The test makes it in a process that has just begun, as the product does: memory
// that was used and freed before would have to be cleared.
func TestTheHeapMayGrowByItsFloor(t *testing.T) {
	const child = "POSTTRADE_TEST_HEAP_FLOOR"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheHeapMayGrowByItsFloor$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestTheHeapMayGrowByItsFloor") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	before := ringtest.Resident(t)
	floor := newHeapFloor()
	runtime.GC()
	read := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(read)
	if goal, live := read[0].Value.Uint64(), read[1].Value.Uint64(); goal < live+heapFloor {
		t.Errorf("with %d bytes live the next collection is at %d, want %d more", live, goal, heapFloor)
	}
	if grown := ringtest.Resident(t) - before; grown > heapFloor/2 {
		t.Errorf("the floor of %d bytes took %d of memory", heapFloor, grown)
	}
	runtime.KeepAlive(floor)
}
