package perf

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
)

// heapState is who has asked the heap for what so far.
type heapState struct {
	before, after uint64 // objects asked for so far: without and with this reading
	commits       uint64 // of the journal so far
	profile       heapProfile
}

// readHeap collects first: the profile is as of the last collection.
func readHeap(e Engine) (s heapState) {
	collect()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.before, s.profile = m.Mallocs, readHeapProfile()
	runtime.ReadMemStats(&m)
	s.after = m.Mallocs
	if d, ok := e.(Downstream); ok {
		s.commits = d.Journal().Metrics().Commits
	}
	return s
}

// collect collects twice, because what a pool still holds lives one collection
// longer, and the profile is that of the last collection but one.
func collect() {
	runtime.GC()
	runtime.GC()
}

// reachable is the heap when nothing is garbage, in bytes.
func reachable() float64 {
	collect()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// heapReading is what was reachable after so many commands.
type heapReading struct {
	commands int
	bytes    float64
}

// heapRate is how many bytes stand for a sample of the heap profile while a row
// counts by it: fine enough that what an engine's stages ask for is not missed.
const heapRate = 16 << 10

// profiled runs f while the heap is sampled at heapRate.
func profiled(f func() error) error {
	old := runtime.MemProfileRate
	runtime.MemProfileRate = heapRate
	defer func() { runtime.MemProfileRate = old }()
	return f()
}

// heapParts is how often the heap is read on the way: after each of so many equal parts,
// the first of which, a tenth, is for what a start leaves behind.
const heapParts = 10

// The tickets under way. There are more of them while the row warms up, so that what has
// room for the largest commit so far has it before the first reading.
const (
	heapBatch  = 512
	heapWindow = 16
	wideWindow = 4 * heapWindow
)

// measureHeap is the second half of row P14: what ten million commands leave on the
// heap of a whole engine, and what each stage asks of it on the way.
func measureHeap(r *Run) error { return profiled(r.heapGrowth) }

func (r *Run) heapGrowth() (err error) {
	e, err := r.o.Open(EngineOptions{Dir: filepath.Join(r.o.Dir, "heap"), Durability: "fsync", Genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	part := max(r.scale(10_000_000)/heapParts/heapBatch, 1) * heapBatch // whole tickets
	if err := heapPart(e, 0, part, wideWindow); err != nil {
		return err
	}
	// The profile of then is on the heap until the end, and so in every reading.
	early := readHeap(e)
	readings := []heapReading{{part, reachable()}}
	for i := 1; i < heapParts; i++ {
		if err := heapPart(e, i*part, part, heapWindow); err != nil {
			return err
		}
		readings = append(readings, heapReading{(i + 1) * part, reachable()})
	}
	r.heapFigures(early, readHeap(e), readings)
	return nil
}

// heapPart pumps n commands on top of those that have been. A snapshot ends it: the
// engine that follows for it has what it needs then.
func heapPart(e Engine, done, n, window int) error {
	return errors.Join(pump(e, uint64(done)+1, n, window, heapBatch), awaitDurable(e, uint64(done+n)), e.Snapshot())
}

// heapFigures states what has become of the heap between two states.
func (r *Run) heapFigures(early, late heapState, readings []heapReading) {
	first, last := readings[0], readings[len(readings)-1]
	total, n := last.commands, last.commands-first.commands
	growth := growthOf(readings)
	r.figures(fmt.Sprintf("Heap/op=flow/commands=%d", total),
		metric{first.bytes / (1 << 20), "MiB-at-a-tenth"}, metric{last.bytes / (1 << 20), "MiB-at-the-end"},
		metric{last.bytes - first.bytes, "bytes-grown"}, metric{growth, "bytes-grown/command"}, metric{float64(len(readings)), "readings"},
		metric{float64(late.before-early.after) / float64(n), "allocs/command"})
	for _, reading := range readings {
		r.figures(fmt.Sprintf("Heap/op=reading/commands=%d", reading.commands), metric{reading.bytes, "bytes"})
	}
	changed := late.profile.since(early.profile)
	for _, site := range changed.growth(heapSites) {
		r.figures("Heap/op=grown/at="+site.name, metric{site.bytes, "bytes"})
	}
	for _, site := range changed.askers(heapSites) {
		r.figures("Heap/op=allocated/at="+site.name, metric{site.objects / float64(n), "allocs/command"})
	}
	hot := r.allocatedBy("Heap", changed, n, late.commits-early.commits)
	if r.o.Smoke {
		return // what a start-up leaves is most of it
	}
	r.atMost("P14", fmt.Sprintf("heap growth from the first tenth to the end of %d commands, bytes a command", total), roundTo(growth, heapNoise), 0).
		beside("median slope of %d readings, %.2g before rounding to %g", len(readings), growth, heapNoise)
	r.atMost("P14", "allocations a command in gate, desk, matcher and recorder", roundTo(hot, allocNoise), 0)
}

// growthOf is how many bytes a command the readings grow by: the median of the slopes
// between any two of them. A store that is just being compacted makes one reading high,
// which moves it little; what grows all the time, or doubles now and then, moves it all.
func growthOf(readings []heapReading) float64 {
	var slopes []float64
	for i, from := range readings {
		for _, to := range readings[i+1:] {
			slopes = append(slopes, (to.bytes-from.bytes)/float64(to.commands-from.commands))
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return median(slopes)
}

// allocatedBy states what each stage asked for while n commands went through, and
// returns the hot ones' allocations a command.
func (r *Run) allocatedBy(group string, p heapProfile, n int, commits uint64) (hot float64) {
	for _, stage := range heapStages {
		objects := p.allocated(stage.name)
		r.figures(group+"/op=allocated/stage="+stage.name, metric{objects / float64(n), "allocs/command"},
			metric{objects / float64(max(commits, 1)), "allocs/commit"})
		if stage.hot {
			hot += objects / float64(n)
		}
	}
	return hot
}

// What is less than half of these is the measurement's own: a profile is a sample, and the
// buffers of a store are as large as the largest commits of late.
const (
	heapNoise  = 0.05  // bytes a command: half a MB of ten million
	allocNoise = 0.001 // allocations a command
)

// roundTo is v in whole steps, and 0 for what is less than half of one or below 0.
func roundTo(v, step float64) float64 {
	return max(float64(int64(v/step+0.5)), 0) * step
}
