package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/trace"
	"slices"
	"strings"
	"time"
)

// The flight recorder keeps the newest second of the execution trace in memory.
// When a stage of the path of an order is slower than flight.budget-ms, that
// second goes into a file: what every goroutine and thread did just before.
const (
	flightSpan  = time.Second
	flightBytes = 16 << 20 // of memory, about
	flightKeep  = 10       // files
	flightRest  = time.Minute
)

// tracer is runtime/trace.FlightRecorder as it is used here.
type tracer interface {
	Start() error
	WriteTo(io.Writer) (int64, error)
	Stop()
}

// flight watches the stages and saves what the tracer has. One goroutine, run.
type flight struct {
	budget time.Duration
	dir    string
	watch  flightWatch
	tracer tracer
	now    func() time.Time
	log    *slog.Logger

	saved   time.Time // the last file; zero: none yet
	skipped int       // late stages since then
}

// newFlight prepares dir and starts the tracer.
func newFlight(budget time.Duration, dir string, from flightSources, log *slog.Logger) (*flight, error) {
	f := &flight{
		budget: budget, dir: dir, watch: newFlightWatch(from), now: time.Now, log: log,
		tracer: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightSpan, MaxBytes: flightBytes}),
	}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("flight: open dir=%s: %w", dir, err)
	}
	return f, nil
}

func (f *flight) open() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := f.prune(); err != nil {
		return err
	}
	return f.tracer.Start()
}

// every is the pace at which the stages must be looked at for a budget.
func (f *flight) every() time.Duration {
	return min(max(f.budget/2, 5*time.Millisecond), statsEvery)
}

// run looks at every tick until stop is closed.
func (f *flight) run(tick <-chan time.Time, stop <-chan struct{}) error {
	defer f.tracer.Stop()
	for {
		f.look()
		select {
		case <-tick:
		case <-stop:
			return nil
		}
	}
}

// look saves the trace when a stage was late, at most once in flightRest.
func (f *flight) look() {
	at := f.now()
	worst := f.watch.look(at)
	if worst.took <= f.budget {
		return
	}
	if !f.saved.IsZero() && at.Sub(f.saved) < flightRest {
		f.skipped++
		return
	}
	f.saved = at
	path, err := f.save(at, worst.stage)
	if err != nil {
		f.log.Error("stage over its latency budget, trace not saved", "stage", worst.stage, "took", worst.took,
			"budget", f.budget, "sequence", worst.sequence, "error", err)
		return
	}
	f.log.Warn("stage over its latency budget", "stage", worst.stage, "took", worst.took,
		"budget", f.budget, "sequence", worst.sequence, "trace", path, "skipped", f.skipped)
	f.skipped = 0
}

// The names of the files sort by their time.
const (
	flightPrefix  = "flight-"
	flightSuffix  = ".trace"
	flightPartial = ".partial"
	flightTime    = "20060102T150405.000"
)

// save writes what the tracer has. The file appears whole or not at all.
func (f *flight) save(at time.Time, stage string) (path string, err error) {
	path = filepath.Join(f.dir, flightPrefix+at.UTC().Format(flightTime)+"-"+stage+flightSuffix)
	if err := f.write(path + flightPartial); err != nil {
		return "", errors.Join(fmt.Errorf("flight: save trace=%s: %w", path, err), f.prune())
	}
	if err := os.Rename(path+flightPartial, path); err != nil {
		return "", fmt.Errorf("flight: save trace=%s: %w", path, err)
	}
	if err := f.prune(); err != nil {
		f.log.Warn("flight: old traces are still there", "dir", f.dir, "error", err)
	}
	return path, nil
}

func (f *flight) write(path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = f.tracer.WriteTo(file)
	return err
}

// prune removes the oldest files beyond flightKeep, and what a crash left half
// written. Other files in the folder are somebody else's.
func (f *flight) prune() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var whole, doomed []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !strings.HasPrefix(name, flightPrefix):
		case strings.HasSuffix(name, flightSuffix):
			whole = append(whole, name)
		case strings.HasSuffix(name, flightSuffix+flightPartial):
			doomed = append(doomed, name)
		}
	}
	slices.Sort(whole)
	doomed = append(doomed, whole[:max(len(whole)-flightKeep, 0)]...)
	for _, name := range doomed {
		err = errors.Join(err, os.Remove(filepath.Join(f.dir, name)))
	}
	return err
}

// flightDir is where the traces go.
func (c *config) flightDir() string {
	if s := c.String("flight.dir"); s != "" {
		return s
	}
	return c.inDataDir("flight")
}

// What profile.contention asks the runtime for: one blocking of every so many, and
// one in so many waits for a mutex.
const (
	blockProfileRate     = 100_000 // ns blocked per sample
	mutexProfileFraction = 100
)

// profileContention turns the profiles of waiting on, and returns what ends them.
func profileContention(on bool) (off func()) {
	if !on {
		return func() {}
	}
	old := runtime.SetMutexProfileFraction(mutexProfileFraction)
	runtime.SetBlockProfileRate(blockProfileRate)
	return func() {
		runtime.SetMutexProfileFraction(old)
		runtime.SetBlockProfileRate(0)
	}
}
