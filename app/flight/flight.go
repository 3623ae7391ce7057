package flight

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

	"posttrade/app/settings"
	"posttrade/app/stats"
)

// The flight recorder keeps the newest second of the execution trace in memory.
// When a stage of the path of an order is slower than flight.budget-ms, that
// second goes into a file: what every goroutine and thread did just before.
const (
	// The newest part of the trace that is always there when a file is written.
	span = time.Second
	// The memory that the trace may take, approximately; under a heavy load it then covers less than
	// span.
	traceBytes = 16 << 20
	// Files that are kept; the oldest go first.
	keep = 10
	// The least time between two files. One slow disk can make every stage late for a while, and
	// writing a trace takes time from them, too.
	rest = time.Minute
)

// tracer is runtime/trace.FlightRecorder as it is used here.
//
// Tests put another one in its place: a process can have one flight recorder at a time.
type tracer interface {
	Start() error
	WriteTo(io.Writer) (int64, error)
	Stop()
}

// Recorder watches the stages and saves the tracer's trace. One goroutine calls Run.
type Recorder struct {
	// A stage that takes longer is late.
	budget time.Duration
	dir    string
	watch  watch
	tracer tracer
	now    func() time.Time
	log    *slog.Logger

	// When the last file was begun, also one that could not be written; zero before the first.
	saved time.Time
	// Looks that found a late stage since then, and wrote no file.
	skipped int
}

// NewFlight prepares dir and starts the tracer.
//
// budget is above 0. dir is made if it does not exist; other files in it are left alone. The error
// is that of the folder or of the runtime. From here on the runtime records every event of the
// trace, which costs the whole process a little.
func NewFlight(budget time.Duration, dir string, from Sources,
	log *slog.Logger) (*Recorder, error) {
	f := &Recorder{
		budget: budget, dir: dir, watch: newFlightWatch(from), now: time.Now, log: log,
		tracer: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: span, MaxBytes: traceBytes}),
	}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("flight: open dir=%s: %w", dir, err)
	}
	return f, nil
}

// open also removes what a crash has left half written.
func (f *Recorder) open() error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if err := f.prune(); err != nil {
		return err
	}
	return f.tracer.Start()
}

// Every is the interval at which Run must look at the stages for a budget.
//
// Half the budget finds a late stage before it has been late for long; stats.Every bounds how old
// a finding may be, and 5 ms bounds the work.
func (f *Recorder) Every() time.Duration {
	return min(max(f.budget/2, 5*time.Millisecond), stats.Every)
}

// Run looks at every tick until stop is closed.
//
// It returns nil. The tracer stops with it.
func (f *Recorder) Run(tick <-chan time.Time, stop <-chan struct{}) error {
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

// look saves the trace when a stage was late, at most once in the time rest.
//
// A file that cannot be written is logged and not tried again before rest is over.
func (f *Recorder) look() {
	at := f.now()
	worst := f.watch.look(at)
	if worst.took <= f.budget {
		return
	}
	if !f.saved.IsZero() && at.Sub(f.saved) < rest {
		f.skipped++
		return
	}
	f.saved = at
	path, err := f.save(at, worst.stage)
	if err != nil {
		f.log.Error("stage over its latency budget, trace not saved", "stage", worst.stage, "took",
			worst.took,
			"budget", f.budget, "sequence", worst.sequence, "error", err)
		return
	}
	f.log.Warn("stage over its latency budget", "stage", worst.stage, "took", worst.took,
		"budget", f.budget, "sequence", worst.sequence, "trace", path, "skipped", f.skipped)
	f.skipped = 0
}

// The names of the files: sorted by name they are sorted by time.
const (
	prefix      = "flight-"
	suffix      = ".trace"
	partial     = ".partial"
	stampLayout = "20060102T150405.000"
)

// save writes the tracer's trace. The file appears whole or not at all.
//
// path has the time and the stage in its name. It blocks until the trace is written, some
// megabytes; the stages are not waited for.
func (f *Recorder) save(at time.Time, stage string) (path string, err error) {
	path = filepath.Join(f.dir, prefix+at.UTC().Format(stampLayout)+"-"+stage+suffix)
	if err := f.write(path + partial); err != nil {
		return "", errors.Join(fmt.Errorf("flight: save trace=%s: %w", path, err), f.prune())
	}
	if err := os.Rename(path+partial, path); err != nil {
		return "", fmt.Errorf("flight: save trace=%s: %w", path, err)
	}
	if err := f.prune(); err != nil {
		f.log.Warn("flight: old traces are still there", "dir", f.dir, "error", err)
	}
	return path, nil
}

// write writes the trace to a new file that only the user of the server may read.
func (f *Recorder) write(path string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = f.tracer.WriteTo(file)
	return err
}

// prune removes the oldest files beyond keep, and files that a crash left half written. It leaves
// other files in the folder alone.
//
// The errors of files that cannot be removed are joined; the others are removed all the same.
func (f *Recorder) prune() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var whole, doomed []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !strings.HasPrefix(name, prefix):
		case strings.HasSuffix(name, suffix):
			whole = append(whole, name)
		case strings.HasSuffix(name, suffix+partial):
			doomed = append(doomed, name)
		}
	}
	slices.Sort(whole)
	doomed = append(doomed, whole[:max(len(whole)-keep, 0)]...)
	for _, name := range doomed {
		err = errors.Join(err, os.Remove(filepath.Join(f.dir, name)))
	}
	return err
}

// FlightDir is the folder of the traces.
//
// The console shows the same folder to an administrator.
func FlightDir(c *settings.Config) string {
	if s := c.String("flight.dir"); s != "" {
		return s
	}
	return c.InDataDir("flight")
}

// What profile.contention asks the runtime for: a sample for every so many nanoseconds of blocking,
// and for one in so many waits for a mutex.
const (
	// Nanoseconds of blocking per sample.
	blockProfileRate = 100_000
	// One wait for a mutex in so many is sampled.
	MutexProfileFraction = 100
)

// ProfileContention turns the mutex and block profiles on, and returns a function that turns them
// off.
//
// The rates are those of the whole process. off gives back the rate of mutexes that was set
// before.
func ProfileContention(on bool) (off func()) {
	if !on {
		return func() {}
	}
	old := runtime.SetMutexProfileFraction(MutexProfileFraction)
	runtime.SetBlockProfileRate(blockProfileRate)
	return func() {
		runtime.SetMutexProfileFraction(old)
		runtime.SetBlockProfileRate(0)
	}
}
