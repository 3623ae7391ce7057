package perf

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
)

// heapState is the heap when nothing is garbage: how much, and who has asked for it.
type heapState struct {
	bytes         uint64 // reachable
	before, after uint64 // objects asked for so far: without and with this reading
	commits       uint64 // of the journal so far
	profile       heapProfile
}

// readHeap collects twice, because what a pool still holds lives one collection
// longer, and the profile is that of the last collection but one.
func readHeap(e Engine) (s heapState) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s.bytes, s.before, s.profile = m.HeapAlloc, m.Mallocs, readHeapProfile()
	runtime.ReadMemStats(&m)
	s.after = m.Mallocs
	if d, ok := e.(Downstream); ok {
		s.commits = d.Journal().Metrics().Commits
	}
	return s
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

// measureHeap is the second half of row P14: what ten million commands leave on the
// heap of a whole engine, and what each stage asks of it on the way.
func measureHeap(r *Run) error { return profiled(r.heapGrowth) }

func (r *Run) heapGrowth() (err error) {
	e, err := r.o.Open(EngineOptions{Dir: filepath.Join(r.o.Dir, "heap"), Durability: "fsync", Genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	const batch, window = 512, 16
	total := r.scale(10_000_000)
	first := total / 10 / batch * batch // whole tickets
	rest := (total - first) / batch * batch
	// A snapshot before each reading: the engine that follows for it has what it needs then.
	if err := errors.Join(pump(e, 1, first, window, batch), awaitDurable(e, uint64(first)), e.Snapshot()); err != nil {
		return err
	}
	early := readHeap(e)
	if err := errors.Join(pump(e, uint64(first)+1, rest, window, batch), awaitDurable(e, uint64(first+rest)), e.Snapshot()); err != nil {
		return err
	}
	r.heapFigures(early, readHeap(e), first+rest, rest)
	return nil
}

// heapFigures states what has become of the heap while n commands went through.
func (r *Run) heapFigures(early, late heapState, total, n int) {
	grown := float64(late.bytes) - float64(early.bytes)
	r.figures(fmt.Sprintf("Heap/op=flow/commands=%d", total),
		metric{float64(early.bytes) / (1 << 20), "MiB-at-a-tenth"}, metric{float64(late.bytes) / (1 << 20), "MiB-at-the-end"},
		metric{grown, "bytes-grown"}, metric{grown / float64(n), "bytes-grown/command"},
		metric{float64(late.before-early.after) / float64(n), "allocs/command"})
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
	r.atMost("P14", fmt.Sprintf("heap growth from the first tenth to the end of %d commands, bytes a command", total), roundTo(grown/float64(n), heapNoise), 0)
	r.atMost("P14", "allocations a command in gate, desk, matcher and recorder", roundTo(hot, allocNoise), 0)
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

// What is below these is the measurement's own: a profile is a sample, and a store
// that is being compacted holds more in one moment than in another.
const (
	heapNoise  = 0.1   // bytes a command: 0.9 MB of nine million
	allocNoise = 0.001 // allocations a command
)

// roundTo is v in whole steps, and 0 for what is less than half of one or below 0.
func roundTo(v, step float64) float64 {
	return max(float64(int64(v/step+0.5)), 0) * step
}
