package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
)

// edgeFigures is an order-matcher that has answered.
var edgeFigures = httpapi.Metrics{
	Orders: func(emit func(string, uint64)) {
		emit("accepted", 5)
		emit("rejected", 3)
		emit("duplicate", 2)
		emit("some later decision", 9)
	},
	Latencies: func(emit func(string, httpapi.Distribution)) {
		emit("http", httpapi.Distribution{Count: 10, Sum: 0.25, Positive: map[int]int64{0: 4, -40: 6, -500: 1, 500: 1}})
		emit(sessionStage, httpapi.Distribution{Count: 1, Sum: 1, Positive: map[int]int64{0: 1}}) // these are no answers of the edge
	},
}

// stillSources are those of a process in which nothing happens.
func stillSources() statsSources {
	return statsSources{path: func(p *statsPath) { p.Looks++ }, commits: func() journal.Metrics { return journal.Metrics{} }}
}

// TestFiguresAreThoseOfTheInstallation compares the file with what everything says itself.
func TestFiguresAreThoseOfTheInstallation(t *testing.T) {
	in := install(t, t.TempDir(), "risk.bootstrap.enabled", "true")
	until(t, "orders are let in", func() (bool, any) { return in.core.gate.Ready(), nil })
	newTradingDay(t, in.core, *daySeed).trade(t.Context(), 300)
	in.awaitMatched()
	until(t, "the price history has followed", func() (bool, any) { n := in.beside.Load().tca.Lag(); return n == 0, n })
	until(t, "every change is published", func() (bool, any) {
		var f statsFeeds
		in.beside.Load().feedFigures(&f)
		return f.Sources[0].Unpublished+f.Sources[1].Unpublished == 0, f
	})

	path := filepath.Join(t.TempDir(), "stats")
	at := time.Unix(1_800_000_000, 0)
	w, err := newStatsWriter(path, statsSourcesOf(in.installation, edgeFigures), func() time.Time { at = at.Add(time.Second); return at })
	if err != nil {
		t.Fatal(err)
	}
	defer w.file.close()
	for range 2 {
		if err := w.look(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := loaded(t, path)
	if want := (statsClock{Tick: 2, WallNanos: uint64(at.UnixNano()), UptimeNanos: 2e9}); got.Clock != want {
		t.Errorf("clock %+v, want %+v", got.Clock, want)
	}
	head, _ := in.core.journal.Head()
	for i, s := range got.Path.Stages {
		if s != (statsStage{Sequence: head}) {
			t.Errorf("%s: %+v, want sequence %d and nothing behind", statsStages[i], s, head)
		}
	}
	if p := got.Path; p.Looks != 2 || p.Ready != 1 || p.Events < head || p.Input.Slots != 65536 || p.Output.Slots != 131072 {
		t.Errorf("path %+v", p)
	}
	if m, c := in.core.journal.Metrics(), got.Commits; c.Commits != m.Commits || c.Commands != head || c.Bytes != m.CommitBytes ||
		c.Buckets != m.CommitCounts || c.MaxNanos != uint64(m.MaxCommit) || c.Bounds[0] != 50_000 || c.Bounds[21] != 5e9 {
		t.Errorf("commits %+v, want %+v", c, m)
	}
	if r := got.Runtime; r.Heap == 0 || r.HeapGoal == 0 || r.Mapped < r.Heap || r.Allocated == 0 || r.Goroutines < 10 {
		t.Errorf("runtime %+v", r)
	}
	for i, s := range got.Feeds.Sources {
		if named(statsFeedStates[:], s.State) != "ready" || s.Watermark == 0 || s.Watermark != s.HighWatermark || s.Unpublished != 0 {
			t.Errorf("feed %d: %+v", i, s)
		}
	}
	if want := (statsLags{Present: 1, Database: 1, Broker: 1}); got.Lags != want {
		t.Errorf("lags %+v, want %+v", got.Lags, want)
	}
}

// TestStagesAreCountedBehindTheirFeeder checks how the path's looks add up.
func TestStagesAreCountedBehindTheirFeeder(t *testing.T) {
	var s statsStage
	s.look(10, 25)
	s.look(30, 25) // looked at later than what feeds it: nothing is behind
	s.look(31, 36)
	if want := (statsStage{Sequence: 31, Behind: 5, BehindSum: 20}); s != want {
		t.Errorf("stage %+v, want %+v", s, want)
	}
	var r statsRing
	r.look(7, 64)
	r.look(9, 64)
	if want := (statsRing{Depth: 9, Slots: 64, DepthSum: 16}); r != want {
		t.Errorf("ring %+v, want %+v", r, want)
	}
}

func TestAnswersAreCountedByDecisionAndTime(t *testing.T) {
	want := statsAnswers{Accepted: 5, Rejected: 3, Duplicate: 2, SumNanos: 250_000_000}
	want.Latency[statsOffset], want.Latency[statsOffset-40] = 4, 6
	want.Latency[0], want.Latency[statsBuckets-1] = 1, 1 // beyond what there are buckets for
	got := statsAnswers{Accepted: 99}
	for range 2 { // what was there before is not added to
		if got.look(edgeFigures); got != want {
			t.Errorf("answers %+v, want %+v", got, want)
		}
	}
	if got.look(httpapi.Metrics{}); got != (statsAnswers{}) {
		t.Errorf("without an order-matcher: %+v", got)
	}
}

// TestPausesAreFoldedByTheirUpperBound reads a histogram finer than the file's.
func TestPausesAreFoldedByTheirUpperBound(t *testing.T) {
	h := metrics.Float64Histogram{Counts: []uint64{1, 2, 3, 4}, Buckets: []float64{0, 0.9, 0.95, 1, 1e300}}
	var got, want statsDistribution
	(&runtimeReader{}).pauses(&h, &got)
	want[statsOffset], want[statsBuckets-1] = 6, 4
	if got != want {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

// TestWriterLooksAtEveryTick counts looks by the ticks, and reads the end.
func TestWriterLooksAtEveryTick(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	w, err := newStatsWriter(path, stillSources(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	tick, stop, ended := make(chan time.Time), make(chan struct{}), make(chan error)
	go func() { ended <- w.run(tick, stop) }()
	tick <- time.Time{}
	tick <- time.Time{} // taken when the look of the first is over
	if image, alive := loaded(t, path); !alive || image.Clock.Tick < 2 || image.Clock.Stopped != 0 {
		t.Errorf("alive %t, clock %+v", alive, image.Clock)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if image, alive := loaded(t, path); alive || image.Clock.Tick != 4 || image.Clock.Stopped != 1 {
		t.Errorf("after the end: alive %t, clock %+v", alive, image.Clock)
	}
}

// TestWatchingGoesOnWithoutItsFiles starts where nothing can be written: that is
// two lines of the log, and no failure.
func TestWatchingGoesOnWithoutItsFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "flight"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustConfig(t, "data.dir", filepath.Join(dir, "absent"), "flight.budget-ms", "5", "flight.dir", filepath.Join(dir, "flight"))
	var log bytes.Buffer
	w := startWatching(c, stillSources(), slog.New(slog.NewTextHandler(&log, nil)))
	w.stop()
	w.stop()
	for _, line := range []string{"no figures for posttrade top", "no flight recorder"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("%q is not said once: %s", line, &log)
		}
	}
}

// TestWatchingEndsWhenItsFileIsCutShort: one line of the log, and nothing else.
func TestWatchingEndsWhenItsFileIsCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	w, err := newStatsWriter(path, stillSources(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := w.run(nil, nil); !errors.Is(err, errStatsFault) {
		t.Errorf("ended with %v", err)
	}
}

// TestWatchingAnInstallation starts everything that a server does, and stops it.
func TestWatchingAnInstallation(t *testing.T) {
	dir := t.TempDir()
	c := mustConfig(t, "data.dir", dir, "flight.budget-ms", "60000", "profile.contention", "true")
	w := startWatching(c, stillSources(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	until(t, "figures are there", func() (bool, any) {
		f, err := openStats(c.inDataDir("stats"))
		if err != nil {
			return false, err
		}
		defer f.close()
		var image statsImage
		return f.load(&image) == nil && image.Clock.Tick > 0, image.Clock
	})
	if got := runtime.SetMutexProfileFraction(-1); got != mutexProfileFraction {
		t.Errorf("one in %d waits for a mutex is profiled, want one in %d", got, mutexProfileFraction)
	}
	if _, err := os.Stat(filepath.Join(dir, "flight")); err != nil {
		t.Error(err)
	}
	w.stop()
	if got := runtime.SetMutexProfileFraction(-1); got != 0 {
		t.Errorf("one in %d waits for a mutex is profiled after the end", got)
	}
	if _, alive := loaded(t, c.inDataDir("stats")); alive {
		t.Error("the stats file is still written")
	}
}
