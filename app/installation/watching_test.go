package installation

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/flight"
	"posttrade/app/stats"
	"posttrade/app/top"
	"posttrade/httpapi"
	"posttrade/ring/must"
	"posttrade/ring/timing"
)

// TestFiguresAreThoseOfTheInstallation compares the file with the figures of the parts themselves.
func TestFiguresAreThoseOfTheInstallation(t *testing.T) {
	in := install(t, t.TempDir(), "risk.bootstrap.enabled", "true")
	apptest.Until(t, "orders are let in", func() (bool, any) { return in.Core.Gate.Ready(), nil })
	newTradingDay(t, in.Core, *daySeed).trade(t.Context(), 300)
	in.awaitMatched()
	apptest.Until(t, "the price history has followed",
		func() (bool, any) { n := in.Beside.Load().tca.Lag(); return n == 0, n })
	apptest.Until(t, "every change is published", func() (bool, any) {
		var f stats.Feeds
		in.Beside.Load().feedFigures(&f)
		return f.Sources[0].Unpublished+f.Sources[1].Unpublished == 0, f
	})

	path := filepath.Join(t.TempDir(), "stats")
	at := time.Unix(1_800_000_000, 0)
	w := must.Get(stats.NewStatsWriter(path, statsSourcesOf(in.Installation, answeredEdge),
		func() time.Time { at = at.Add(time.Second); return at }))(t)
	defer w.File.Close()
	for range 2 {
		must.OK(t, w.Look())
	}
	got, _ := apptest.StatsIn(t, path)
	if want := (stats.Clock{Tick: 2, WallNanos: uint64(at.UnixNano()),
		UptimeNanos: 2e9}); got.Clock != want {
		t.Errorf("clock %+v, want %+v", got.Clock, want)
	}
	head, _ := in.Core.Journal.Head()
	for i, s := range got.Path.Stages {
		if s != (stats.Stage{Sequence: head}) {
			t.Errorf("%s: %+v, want sequence %d and nothing behind", stats.Stages[i], s, head)
		}
	}
	if p := got.Path; p.Looks != 2 || p.Ready != 1 || p.Events < head || p.Input.Slots != 65536 ||
		p.Output.Slots != 131072 {
		t.Errorf("path %+v", p)
	}
	if m, c := in.Core.Journal.Metrics(), got.Commits; c.Commits != m.Commits || c.Commands != head ||
		c.Bytes != m.CommitBytes ||
		c.Buckets != m.CommitCounts || c.MaxNanos != uint64(m.MaxCommit) || c.Bounds[0] != 50_000 ||
		c.Bounds[21] != 5e9 {
		t.Errorf("commits %+v, want %+v", c, m)
	}
	if r := got.Runtime; r.Heap == 0 || r.HeapGoal == 0 || r.Mapped < r.Heap || r.Allocated == 0 ||
		r.Goroutines < 10 {
		t.Errorf("runtime %+v", r)
	}
	for i, s := range got.Feeds.Sources {
		if top.Named(stats.FeedStates[:], s.State) != "ready" || s.Watermark == 0 ||
			s.Watermark != s.HighWatermark || s.Unpublished != 0 {
			t.Errorf("feed %d: %+v", i, s)
		}
	}
	if want := (stats.Lags{Present: 1, Database: 1, Broker: 1}); got.Lags != want {
		t.Errorf("lags %+v, want %+v", got.Lags, want)
	}
}

// TestWatchingGoesOnWithoutItsFiles starts where no file can be written: that gives two lines in
// the log, and no failure.
func TestWatchingGoesOnWithoutItsFiles(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "flight"), nil, 0o600))
	c := apptest.Settled(t, "data.dir", filepath.Join(dir, "absent"), "flight.budget-ms", "5",
		"flight.dir", filepath.Join(dir, "flight"))
	var log bytes.Buffer
	w := startWatching(c, apptest.StillSources(), slog.New(slog.NewTextHandler(&log, nil)))
	w.stop()
	w.stop()
	for _, line := range []string{"no figures for posttrade top", "no flight recorder"} {
		if strings.Count(log.String(), line) != 1 {
			t.Errorf("%q is not said once: %s", line, &log)
		}
	}
}

// TestWatchingEndsWhenItsFileIsCutShort: it gives one line in the log, and nothing else.
func TestWatchingEndsWhenItsFileIsCutShort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	w := must.Get(stats.NewStatsWriter(path, apptest.StillSources(), time.Now))(t)
	must.OK(t, os.Truncate(path, 0))
	if err := w.Run(nil, nil); !errors.Is(err, stats.ErrStatsFault) {
		t.Errorf("ended with %v", err)
	}
}

// TestWatchingAnInstallation starts every part of watching that a server starts, and stops it.
func TestWatchingAnInstallation(t *testing.T) {
	dir := t.TempDir()
	c := apptest.Settled(t, "data.dir", dir, "flight.budget-ms", "60000", "profile.contention", "true")
	w := startWatching(c, apptest.StillSources(), slog.New(slog.NewTextHandler(t.Output(), nil)))
	apptest.Until(t, "figures are there", func() (bool, any) {
		f, err := stats.OpenStats(c.InDataDir("stats"))
		if err != nil {
			return false, err
		}
		defer f.Close()
		var image stats.Image
		return f.Load(&image) == nil && image.Clock.Tick > 0, image.Clock
	})
	if got := runtime.SetMutexProfileFraction(-1); got != flight.MutexProfileFraction {
		t.Errorf("one in %d waits for a mutex is profiled, want one in %d", got,
			flight.MutexProfileFraction)
	}
	if _, err := os.Stat(filepath.Join(dir, "flight")); err != nil {
		t.Error(err)
	}
	w.stop()
	if got := runtime.SetMutexProfileFraction(-1); got != 0 {
		t.Errorf("one in %d waits for a mutex is profiled after the end", got)
	}
	if _, alive := apptest.StatsIn(t, c.InDataDir("stats")); alive {
		t.Error("the stats file is still written")
	}
}

// answeredEdge is an order-matcher that has given answers.
var answeredEdge = httpapi.Metrics{
	Orders: func(emit func(string, uint64)) {
		emit("accepted", 5)
		emit("rejected", 3)
		emit("duplicate", 2)
	},
	Latencies: func(emit func(string, timing.Distribution)) {
		emit("http", timing.Distribution{Count: 10, Sum: 0.25, Native: map[int]int64{0: 10}})
	},
}
