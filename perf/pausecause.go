package perf

import (
	"slices"
	"time"
)

// The causes of a gap, in the order in which cause looks for them. A gap has one cause, though
// several things may have happened in it: the first that applies.
const (
	causeFull      = "ring-full"  // it waited for the recorder
	causeCollector = "collector"  // it slept while the collector stopped the world
	causeRuntime   = "runtime"    // it slept for another reason: Go's scheduler took its turn away
	causePreempted = "preempted"  // the kernel gave its core to another thread
	causeFault     = "page-fault" // and no other cause
	causeWork      = "deciding"   // it decided as many commands as take that time
	causeMachine   = "machine"    // no cause that the kernel knows of: interrupts, the hypervisor
)

var pauseCauses = [...]string{causeFull, causeCollector, causeRuntime, causePreempted, causeFault,
	causeWork, causeMachine}

// longWork is the number of commands in a turn that takes as long as a gap that is kept.
const longWork = stageBatch / 2

// cause names the cause of a gap; start is when the log began.
//
// What the kernel counts for the thread decides before what the loop did itself, so "deciding" is
// left for gaps in which the kernel did nothing to the thread.
func (g *gap) cause(start time.Time, gc []gcPause) string {
	switch {
	case g.full:
		return causeFull
	case g.slept > 0 && slices.ContainsFunc(gc, func(p gcPause) bool { return g.holds(start, p) }):
		return causeCollector
	case g.slept > 0:
		return causeRuntime
	case g.preempted > 0:
		return causePreempted
	case g.faults > 0:
		return causeFault
	case g.decided >= longWork:
		return causeWork
	}
	return causeMachine
}

// clockSlack is how far two readings of the same moment may differ: the collector's pauses are on
// the wall clock, the gaps on the monotonic one.
const clockSlack = 200 * time.Microsecond

// holds reports whether a stop of the world and the gap overlap.
func (g *gap) holds(start time.Time, p gcPause) bool {
	end := start.Add(g.end)
	return p.end.After(end.Add(-g.took-clockSlack)) && p.end.Add(-p.took).Before(end.Add(clockSlack))
}

// byCause are the kept gaps of each cause, including the longest of all. Each has the length of the
// whole log, so that the rates of the causes add up.
func (l *gapLog) byCause(gc []gcPause) map[string]jitter {
	out := map[string]jitter{}
	for i := range l.gaps {
		cause := l.gaps[i].cause(l.start, gc)
		j := out[cause]
		j.took = l.all.took
		j.add(l.gaps[i].took)
		out[cause] = j
	}
	return out
}
