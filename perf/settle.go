package perf

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// settle ends what the rows before have left to be done: pages on their way to the disk,
// garbage and memory that the collector would give back by and by, and processors of the
// scheduler that a row has asked for and not given back.
func (r *Run) settle() {
	if now := runtime.GOMAXPROCS(0); r.env.Procs > 0 && now != r.env.Procs {
		runtime.GOMAXPROCS(r.env.Procs)
		r.note(fmt.Sprintf("a row before has left gomaxprocs at %d", now))
	}
	debug.FreeOSMemory()
	unix.Sync()
}
