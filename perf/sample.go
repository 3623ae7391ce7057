package perf

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"posttrade/perf/regress"
)

// micro is a small piece of the path that the regression gate measures in a process of its own. A
// new process for each sample has new memory, a new heap and a new place in the caches, so that two
// samples differ by chance and not by what ran before.
type micro struct {
	// name is what --row and --only take, and what a verdict names. A row that the base does not have
	// is not judged, so a changed name hides a regression.
	name string
	// clock is the clock that times a lap: the processor time of its thread, or of the whole process
	// when several threads work. Neither includes the time of other processes on the core.
	clock int32
	// prepare makes the objects that the laps need; dir is an empty folder, which the caller removes.
	// Its time does not count.
	prepare func(dir string) (*laps, error)
}

// laps is a prepared micro row. A lap is always the same work from the same state, so that the
// least of many laps is the work itself and the rest is the machine's.
type laps struct {
	// ops is the number of operations of a lap, by which its time and its allocations are divided.
	ops int
	// ready brings the objects back to the state in which a lap begins. It is called before each lap
	// and not timed; nil for none.
	ready func() error
	// run is one lap. It also checks its result: a lap that did something else than its work is an
	// error and no sample.
	run func() error
	// close gives the objects back; nil for none.
	close func() error
}

// SampleOptions say what a child of the gate measures: the flags of `posttrade perf sample`.
type SampleOptions struct {
	// Row is the name of a micro row; another name is an error that lists them.
	Row string
	// Dir is where a folder for the row's journal is made, which Sample removes; "" for the system's.
	Dir string
	// For is how long the laps take together; 0 for 80 ms. At least leastLaps laps run in any case.
	For time.Duration
	// Burn is a share of a lap's time, 0 to 10, that is burnt in addition in every lap: the slow-down
	// that a self-test plants.
	Burn float64
}

// leastLaps is the smallest number of laps of a sample, whatever time they take: the least of fewer
// could be a disturbed one.
const leastLaps = 12

// MicroRows names the rows of the gate in the order they run.
func MicroRows() (names []string) {
	for _, m := range micros() {
		names = append(names, m.name)
	}
	return names
}

// Sample measures one micro row in this process: the least time, in nanoseconds of processor time,
// and the least allocations of an operation over its laps. The garbage collector is off meanwhile,
// because a collection falls into some laps and not into others.
//
// The calling goroutine stays on one thread, whose clock times most rows. The collector's setting
// is put back at the end; nothing else of the process may measure meanwhile.
func Sample(o SampleOptions) (s regress.Sample, err error) {
	m, err := microNamed(o.Row)
	if err != nil {
		return s, err
	}
	if o.Burn < 0 || o.Burn > 10 {
		return s, fmt.Errorf("perf: sample row=%s: burn %v, want 0 to 10", o.Row, o.Burn)
	}
	dir, err := os.MkdirTemp(o.Dir, "posttrade-sample-")
	if err != nil {
		return s, fmt.Errorf("perf: sample row=%s: make work folder: %w", o.Row, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l, err := m.prepare(dir)
	if err != nil {
		return s, fmt.Errorf("perf: sample row=%s: prepare: %w", o.Row, err)
	}
	if l.close != nil {
		defer func() { err = errors.Join(err, l.close()) }()
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if s, err = l.measure(m.clock, o); err != nil {
		return s, fmt.Errorf("perf: sample row=%s: %w", o.Row, err)
	}
	return s, nil
}

func microNamed(name string) (micro, error) {
	for _, m := range micros() {
		if m.name == name {
			return m, nil
		}
	}
	return micro{}, fmt.Errorf("perf: sample row=%s: no such row: want one of %s", name,
		strings.Join(MicroRows(), ", "))
}

// measure runs laps until they have taken long enough. The first laps warm up, and determine how
// much to burn; they do not count.
func (l *laps) measure(clock int32, o SampleOptions) (regress.Sample, error) {
	enough := o.For
	if enough == 0 {
		enough = 80 * time.Millisecond
	}
	warm := regress.Sample{Ns: math.Inf(1)}
	warmLaps := 3
	if o.Burn > 0 {
		warmLaps = leastLaps // a share of the time of the least lap, not of a disturbed one
	}
	for range warmLaps {
		if err := l.lap(clock, 0, &warm); err != nil {
			return warm, err
		}
	}
	burn := burnFor(clock, o.Burn*warm.Ns*float64(l.ops))
	least := regress.Sample{Ns: math.Inf(1), Allocs: math.Inf(1)}
	for n, begun := 0, time.Now(); n < leastLaps || time.Since(begun) < enough; n++ {
		if err := l.lap(clock, burn, &least); err != nil {
			return least, err
		}
	}
	return least, nil
}

// lap runs one lap and keeps the lesser value of each figure. The two figures may come from
// different laps. ReadMemStats stops the world and is outside of the timed part.
func (l *laps) lap(clock int32, burn uint64, least *regress.Sample) error {
	if l.ready != nil {
		if err := l.ready(); err != nil {
			return err
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := cpuTime(clock)
	err := l.run()
	spin(burn)
	took := cpuTime(clock) - begun
	runtime.ReadMemStats(&after)
	least.Ns = min(least.Ns, float64(took)/float64(l.ops))
	least.Allocs = min(least.Allocs, float64(after.Mallocs-before.Mallocs)/float64(l.ops))
	return err
}

// burnFor is the number of turns of spin that take ns on this machine: the fastest of ten runs, so
// that a burnt share is rather too large than too small.
func burnFor(clock int32, ns float64) uint64 {
	if ns <= 0 {
		return 0
	}
	const turns = 1 << 18
	per := math.Inf(1)
	for range 10 {
		begun := cpuTime(clock)
		spin(turns)
		per = min(per, float64(cpuTime(clock)-begun)/turns)
	}
	return uint64(ns / per)
}

// spin runs a loop without an effect for a number of turns. Each turn needs the result of the one
// before, so that the processor cannot overlap them. It must not be inlined, or the compiler could
// drop it.
//
//go:noinline
func spin(turns uint64) {
	x := uint64(1)
	for range turns {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(x)
}

// sampleForm is the line with which a child of the gate answers: nanoseconds and allocations of an
// operation. Base and head are different builds, so both must write this form.
const sampleForm = "sample ns=%g allocs=%g\n"

// WriteSample writes a sample as a child of the gate does.
func WriteSample(w io.Writer, s regress.Sample) error {
	_, err := fmt.Fprintf(w, sampleForm, s.Ns, s.Allocs)
	return err
}

// readSample reads the answer of a child. Any other text is an error with the text's first line.
func readSample(text string) (s regress.Sample, err error) {
	if _, err := fmt.Sscanf(text, sampleForm, &s.Ns, &s.Allocs); err != nil {
		return s, fmt.Errorf("not a sample: %q", firstOf(text))
	}
	return s, nil
}

// firstOf is the first line of a text.
func firstOf(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
