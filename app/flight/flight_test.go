package flight

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/stats"
	"posttrade/journal"
	"posttrade/ring/must"
)

// recorded is a tracer with a fixed text as its trace.
type recorded struct {
	text             string
	startErr, saving error
	stopped          bool
}

func (r *recorded) Start() error { return r.startErr }
func (r *recorded) Stop()        { r.stopped = true }

func (r *recorded) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.text)
	return int64(n), errors.Join(err, r.saving)
}

// rig is a Recorder over a path and a journal that the test moves.
type rig struct {
	*Recorder
	tracer  *recorded
	clock   time.Time
	path    stats.Path
	journal journal.Metrics
	log     bytes.Buffer
}

func newFlightRig(t *testing.T, budget time.Duration) *rig {
	t.Helper()
	r := &rig{tracer: &recorded{text: "trace"}, clock: time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)}
	from := Sources{Path: func(p *stats.Path) { *p = r.path },
		Commits: func() journal.Metrics { return r.journal }}
	r.Recorder = &Recorder{
		budget: budget, dir: filepath.Join(t.TempDir(), "flight"), watch: newFlightWatch(from),
		tracer: r.tracer,
		now:    func() time.Time { return r.clock }, log: slog.New(slog.NewTextHandler(&r.log, nil)),
	}
	must.OK(t, r.open())
	return r
}

// commit counts one commit of the journal.
func (r *rig) commit(took time.Duration) {
	at, _ := slices.BinarySearch(journal.CommitBuckets[:], took.Seconds())
	r.journal.Commits++
	r.journal.CommitCounts[at]++
	r.journal.MaxCommit = max(r.journal.MaxCommit, took)
	r.journal.Durable += 10
}

// after lets time pass and then looks.
func (r *rig) after(d time.Duration) {
	r.clock = r.clock.Add(d)
	r.look()
}

// files are the names in the folder.
func (r *rig) files(t *testing.T) (names []string) {
	t.Helper()
	entries := must.Get(os.ReadDir(r.dir))(t)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestSlowCommitSavesTheTrace makes commits around the budget.
func TestSlowCommitSavesTheTrace(t *testing.T) {
	r := newFlightRig(t, 10*time.Millisecond)
	r.commit(10 * time.Millisecond)
	r.after(time.Second)
	if got := r.files(t); got != nil {
		t.Fatalf("saved within the budget: %v", got)
	}
	r.commit(12500 * time.Microsecond)
	r.after(100 * time.Millisecond)
	want := []string{"flight-20261120T143001.100-commit.trace"}
	if got := r.files(t); !slices.Equal(got, want) {
		t.Fatalf("saved %v, want %v", got, want)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, want[0]))
	if err != nil || string(text) != "trace" {
		t.Errorf("%q, %v", text, err)
	}
	line := `level=WARN msg="stage over its latency budget" stage=commit took=12.5ms budget=10ms ` +
		`sequence=20 trace=` +
		filepath.Join(r.dir, want[0]) + " skipped=0\n"
	if got := r.log.String(); strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, line) {
		t.Errorf("logged %q, want one line that ends with %q", got, line)
	}
}

// TestAtMostOneTraceAMinute exceeds the budget all the time.
func TestAtMostOneTraceAMinute(t *testing.T) {
	r := newFlightRig(t, time.Millisecond)
	for range 121 { // at 0 s, 1 s, ... 120 s
		r.commit(15 * time.Millisecond)
		r.look()
		r.clock = r.clock.Add(time.Second)
	}
	if got := r.files(t); len(got) != 3 {
		t.Errorf("saved %v, want three", got)
	}
	if got := r.log.String(); strings.Count(got, "\n") != 3 || strings.Count(got, "skipped=59") != 2 {
		t.Errorf("logged %s", got)
	}
}

// TestStalledStageSavesTheTrace holds each stage at a sequence that the stage before it has passed.
func TestStalledStageSavesTheTrace(t *testing.T) {
	for stage, name := range stats.Stages {
		t.Run(name, func(t *testing.T) {
			r := newFlightRig(t, 50*time.Millisecond)
			r.path.Stages[stage] = stats.Stage{Sequence: 100, Behind: 5}
			r.look()
			r.path.Stages[stage] = stats.Stage{Sequence: 104,
				Behind: 900} // it moves, and has not come to 105
			r.after(50 * time.Millisecond)
			if got := r.files(t); got != nil {
				t.Fatalf("saved within the budget: %v", got)
			}
			r.after(25 * time.Millisecond)
			if got := r.log.String(); !strings.Contains(got,
				"stage="+name+" took=75ms budget=50ms sequence=104 ") {
				t.Errorf("logged %q", got)
			}
			if got := r.files(t); len(got) != 1 || !strings.HasSuffix(got[0], "-"+name+".trace") {
				t.Errorf("saved %v", got)
			}
		})
	}
}

// TestBusyStageIsNotLate: a stage that is always behind, and always passes the sequence that the
// look before saw.
func TestBusyStageIsNotLate(t *testing.T) {
	r := newFlightRig(t, 50*time.Millisecond)
	for n := uint64(0); n < 1000; n++ {
		for i := range r.path.Stages {
			r.path.Stages[i] = stats.Stage{Sequence: n * 1000, Behind: 1000}
		}
		r.after(25 * time.Millisecond)
	}
	if got := r.log.String(); got != "" {
		t.Errorf("logged %s", got)
	}
}

func TestSlowestCommitIsALowerBound(t *testing.T) {
	tests := []struct {
		name          string
		before, since []time.Duration
		want          time.Duration
	}{
		{"nothing", []time.Duration{time.Second}, nil, 0},
		{"the longest so far", []time.Duration{time.Millisecond},
			[]time.Duration{7 * time.Millisecond, 3 * time.Millisecond}, 7 * time.Millisecond},
		{"shorter than one before", []time.Duration{time.Second},
			[]time.Duration{time.Millisecond, 42 * time.Millisecond}, 20 * time.Millisecond},
		{"beyond the last bound", []time.Duration{20 * time.Second}, []time.Duration{9 * time.Second},
			5 * time.Second},
		{"in the first bucket", []time.Duration{time.Second}, []time.Duration{time.Microsecond}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r rig
			for _, took := range tt.before {
				r.commit(took)
			}
			before := r.journal
			for _, took := range tt.since {
				r.commit(took)
			}
			if got := slowestCommit(&before, &r.journal); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// TestTracesAreBounded starts in a folder with too many traces, some of them half written, and with
// files of other programs.
func TestTracesAreBounded(t *testing.T) {
	r := newFlightRig(t, time.Millisecond)
	others := []string{"flight-notes.txt", "keep.trace"}
	var traces []string
	for n := range keep + 5 {
		traces = append(traces, fmt.Sprintf("flight-20261119T1200%02d.000-commit.trace", n))
	}
	for _, name := range append(append([]string{"flight-20261119T130000.000-views.trace.partial"},
		others...), traces...) {
		must.OK(t, os.WriteFile(filepath.Join(r.dir, name), nil, 0o600))
	}
	must.OK(t, r.open())
	if got, want := r.files(t), append(slices.Clone(traces[5:]), others...); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	r.commit(time.Second)
	r.look()
	want := append(append(slices.Clone(traces[6:]), "flight-20261120T143000.000-commit.trace"),
		others...)
	if got := r.files(t); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

// TestTraceThatCannotBeSaved: a failed save gives one line in the log and leaves no partial file.
// The next save comes a minute later.
func TestTraceThatCannotBeSaved(t *testing.T) {
	r := newFlightRig(t, time.Millisecond)
	r.tracer.saving = errors.New("the tracer is broken")
	for range 2 {
		r.commit(time.Second)
		r.commit(2 * time.Second)
		r.after(time.Second)
	}
	if got := r.files(t); got != nil {
		t.Errorf("left %v", got)
	}
	if got := r.log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=ERROR") ||
		!strings.Contains(got, "the tracer is broken") {
		t.Errorf("logged %s", got)
	}
	r.tracer.saving = nil
	r.commit(3 * time.Second)
	r.after(rest)
	if got := r.files(t); len(got) != 1 {
		t.Errorf("saved %v", got)
	}
	must.OK(t, os.RemoveAll(r.dir))
	r.commit(4 * time.Second)
	r.after(rest)
	if got := r.log.String(); !strings.Contains(got, "no such file or directory") {
		t.Errorf("without its folder: %s", got)
	}
}

func TestFlightThatCannotStart(t *testing.T) {
	r := newFlightRig(t, time.Millisecond)
	r.tracer.startErr = errors.New("another caller traces")
	if err := r.open(); !errors.Is(err, r.tracer.startErr) {
		t.Errorf("opened with %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := NewFlight(time.Millisecond, file, stillFlight(), r.Recorder.log); err == nil {
		t.Error("opened in a file")
	}
}

// TestFlightRecordsThisProcess uses the runtime's own recorder, until it stops.
func TestFlightRecordsThisProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "flight")
	var slow journal.Metrics
	from := Sources{Path: func(*stats.Path) {}, Commits: func() journal.Metrics { return slow }}
	f, err := NewFlight(time.Millisecond, dir, from, slog.New(slog.NewTextHandler(t.Output(), nil)))
	must.OK(t, err)
	slow.MaxCommit = time.Second
	stop := make(chan struct{})
	close(stop)
	must.OK(t, f.Run(nil, stop))
	files, err := filepath.Glob(filepath.Join(dir, "flight-*-commit.trace"))
	if err != nil || len(files) != 1 {
		t.Fatalf("saved %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil || !bytes.HasPrefix(text, []byte("go 1.")) || len(text) < 1000 {
		t.Errorf("not a trace: %d bytes, %v", len(text), err)
	}
	if f.Every() != 5*time.Millisecond {
		t.Errorf("looks every %v", f.Every())
	}
	again, err := NewFlight(time.Minute, dir, from, f.log) // the first one has released the tracer
	must.OK(t, err)
	again.tracer.Stop()
	if again.Every() != stats.Every {
		t.Errorf("looks every %v", again.Every())
	}
}

// TestTraceIsSavedBesideOnesThatStay: old traces that cannot be removed are logged, and the new
// trace is saved all the same.
func TestTraceIsSavedBesideOnesThatStay(t *testing.T) {
	r := newFlightRig(t, time.Millisecond)
	stays := filepath.Join(r.dir, "flight-20261119T130000.000-views.trace.partial")
	must.OK(t, os.MkdirAll(filepath.Join(stays, "full"), 0o700))
	r.commit(time.Second)
	r.look()
	const trace = "flight-20261120T143000.000-commit.trace"
	if got := r.files(t); !slices.Contains(got, trace) {
		t.Errorf("saved %v, want %s among them", got, trace)
	}
	got := r.log.String()
	if !strings.Contains(got, trace) || strings.Contains(got, "not saved") || !strings.Contains(got,
		"old traces are still there") || !strings.Contains(got, filepath.Base(stays)) {
		t.Errorf("logged %s", got)
	}
}

// stillFlight are sources in which nothing happens.
func stillFlight() Sources {
	return Sources{Path: func(*stats.Path) {},
		Commits: func() journal.Metrics { return journal.Metrics{} }}
}
