package perf

import (
	"errors"
	"fmt"
	"runtime"
)

// What the row asks for: nothing. Growth is bytes a command after rounding to heapNoise,
// allocations are objects a command after rounding to allocNoise, so both may be 0 exactly.
var (
	heapGrowth = atMost("P14", 0,
		"heap growth from the first tenth to the end of %d commands, bytes a command").
		as("heap growth, bytes a command").unless("a smoke run is too short")
	heapAllocs = atMost("P14", 0, "allocations a command in gate, desk, matcher and recorder").
			unless("a smoke run is too short")
)

// heapState is how much each part of the program has asked of the heap so far, and what is
// reachable.
type heapState struct {
	// before and after are the objects asked for so far, without and with this reading's own. Two
	// states are compared from after of the first to before of the second.
	before, after uint64
	// commits are those of the journal so far.
	commits uint64
	// profile is the sampled heap, by stack.
	profile heapProfile
}

// readHeap collects first, because the profile is that of the last collection. It stops the world,
// twice collects the whole heap, and walks every sample: rows call it between phases.
func readHeap() (s heapState) {
	collect()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.before, s.profile = m.Mallocs, readHeapProfile()
	runtime.ReadMemStats(&m)
	s.after = m.Mallocs
	return s
}

// readHeap is the heap's state and the journal's.
func (e *fullEngine) readHeap() heapState {
	s := readHeap()
	s.commits = e.Journal.Metrics().Commits
	return s
}

// collect collects twice: objects in a pool live one collection longer, and the profile is that of
// the last collection but one.
func collect() {
	runtime.GC()
	runtime.GC()
}

// reachable is the size of the heap without garbage, in bytes. It does not have memory that is
// mapped outside of the heap: rings, tables and the store's caches.
func reachable() float64 {
	collect()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// heapReading is what was reachable after a number of commands.
type heapReading struct {
	commands int
	bytes    float64
}

// heapRate is the number of bytes per sample of the heap profile while a row uses it. It is fine
// enough to see the allocations of an engine's stages. Go's own rate is 512 KiB; a sample costs a
// walk of the stack, so this one slows down what allocates.
const heapRate = 16 << 10

// profiled runs f while the heap is sampled at heapRate. It changes a variable of the runtime for
// the whole process. Objects that were sampled before it have another rate, so only differences of
// two profiles within f are right.
func profiled(f func() error) error {
	old := runtime.MemProfileRate
	runtime.MemProfileRate = heapRate
	defer func() { runtime.MemProfileRate = old }()
	return f()
}

// heapParts is how often the heap is read during the row: after each of so many equal parts. The
// first part, a tenth, is for what a start leaves behind.
const heapParts = 10

// The tickets in flight: heapWindow of heapBatch commands each. There are more of them during the
// warm-up, so that buffers that grow to the largest commit have grown before the first reading.
const (
	heapBatch  = 512
	heapWindow = 16
	wideWindow = 4 * heapWindow
)

// measureHeap is the second half of row P14: what ten million commands leave on the heap of a whole
// engine, and what each stage allocates meanwhile.
//
// The load is the flow of row P6 at full speed in mode fsync, in tickets of 512. The engine is in
// this process, and so is the load, whose allocations have a stage of their own. It measures Go's
// heap: not the resident set (row "memory"), not the mapped tables. A growth of less than 25 bytes
// a thousand commands, and an allocation less often than once in two thousand, count as none. It
// lies when the heap profile attributes a stack to the wrong stage; the lines of every stage are in
// the results.
func measureHeap(r *Run) error { return profiled(r.heapGrowth) }

// heapGrowth sends ten equal parts, with a reading behind each. The first part warms up and is the
// base of all comparisons.
func (r *Run) heapGrowth() (err error) {
	e, err := r.open(engineOptions{folder: "heap", durability: "fsync", genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	part := max(r.scale(10_000_000)/heapParts/heapBatch, 1) * heapBatch // whole tickets
	if err := heapPart(e, 0, part, wideWindow); err != nil {
		return err
	}
	// This profile is on the heap until the end, and so in every reading.
	early := e.readHeap()
	readings := []heapReading{{part, reachable()}}
	for i := 1; i < heapParts; i++ {
		if err := heapPart(e, i*part, part, heapWindow); err != nil {
			return err
		}
		readings = append(readings, heapReading{(i + 1) * part, reachable()})
	}
	r.heapFigures(early, e.readHeap(), readings)
	return nil
}

// heapPart submits n commands after those that came before. A snapshot ends it: then the shadow
// engine has all commands.
func heapPart(e *fullEngine, done, n, window int) error {
	return errors.Join(pump(e, uint64(done)+1, n, window, heapBatch),
		awaitDurable(e.durable, uint64(done+n)), e.snapshot())
}

// heapFigures states how the heap has changed between two states: all readings, the places that
// grew most and those that allocated most, and each stage's allocations.
func (r *Run) heapFigures(early, late heapState, readings []heapReading) {
	first, last := readings[0], readings[len(readings)-1]
	total, n := last.commands, last.commands-first.commands
	growth := growthOf(readings)
	r.figures(fmt.Sprintf("Heap/op=flow/commands=%d", total),
		metric{first.bytes / (1 << 20), "MiB-at-a-tenth"},
		metric{last.bytes / (1 << 20), "MiB-at-the-end"},
		metric{last.bytes - first.bytes, "bytes-grown"}, metric{growth, "bytes-grown/command"},
		metric{float64(len(readings)), "readings"},
		metric{float64(late.before-early.after) / float64(n), "allocs/command"})
	for _, reading := range readings {
		r.figures(fmt.Sprintf("Heap/op=reading/commands=%d", reading.commands),
			metric{reading.bytes, "bytes"})
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
		return // most of it is left over from the start
	}
	r.judge(heapGrowth, roundTo(growth, heapNoise), total).
		beside("median slope of %d readings, %.2g before rounding to %g", len(readings), growth,
			heapNoise)
	r.judge(heapAllocs, roundTo(hot, allocNoise))
}

// growthOf is the number of bytes per command by which the readings grow: the median of the slopes
// between any two readings. A compaction of the store that is under way makes one reading high,
// which moves the median little. A structure that grows all the time, or doubles now and then,
// moves all slopes.
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

// allocatedBy states what each stage allocated while n commands went through, per command and per
// commit, and returns the allocations of the hot stages per command. A stage that allocates once a
// commit has few a command under full load and many under a light one.
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

// Values below half of these are noise of the measurement: a profile is a sample, and the buffers
// of a store are as large as the largest recent commits.
const (
	heapNoise  = 0.05  // bytes a command: half a MB of ten million
	allocNoise = 0.001 // allocations a command
)

// roundTo is v rounded to whole steps; 0 for a value below half a step.
func roundTo(v, step float64) float64 {
	return max(float64(int64(v/step+0.5)), 0) * step
}
