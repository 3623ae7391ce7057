package perf

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// settle removes what earlier rows left behind: dirty pages, garbage and memory that the collector
// would return gradually, and scheduler processors that a row requested and did not return.
//
// It takes as long as the disk needs for all dirty pages, those of other processes too. Without it,
// the first seconds of a row would share the disk with the row before.
func (r *Run) settle() {
	if now := runtime.GOMAXPROCS(0); r.env.Procs > 0 && now != r.env.Procs {
		runtime.GOMAXPROCS(r.env.Procs)
		r.note(fmt.Sprintf("a row before has left gomaxprocs at %d", now))
	}
	debug.FreeOSMemory()
	writeBack()
}
