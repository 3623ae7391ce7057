package installation

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/settings"
	"posttrade/app/stats"
	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/ring/must"
)

// topOn runs the command on a data directory.
func topOn(dir string, args ...string) (code int, stdout, stderr string) {
	return apptest.Run("top", append(args, "--data.dir", dir)...)
}

// TestTopWithoutServerIsOneLine tries everything that can be missing.
func TestTopWithoutServerIsOneLine(t *testing.T) {
	absent, foreign, crashed, stopped := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(foreign, "stats"), []byte("notes"), 0o600))
	for _, dir := range []string{crashed, stopped} {
		w, err := stats.NewStatsWriter(filepath.Join(dir, "stats"), apptest.StillSources(), time.Now)
		must.OK(t, err)
		if dir == stopped {
			w.Image.Clock.Stopped = 1
		}
		// the lock is released as at the end of a process
		must.OK(t, errors.Join(w.Look(), w.File.Close()))
	}
	tests := []struct {
		name, dir string
		args      []string
		code      int
		want      string
	}{
		{"nothing there", absent, nil, settings.ExitFailed, "no server has written its figures there"},
		{"something else there", foreign, nil, settings.ExitFailed, "not a stats file"},
		{"killed", crashed, []string{"--once"}, settings.ExitFailed, "the server is not running: pid "},
		{"killed, how", crashed, []string{"--once"}, settings.ExitFailed,
			" ago and did not stop in order"},
		{"stopped", stopped, []string{"--once"}, settings.ExitFailed, " ago and stopped in order"},
		{"too often", absent, []string{"--interval=99ms"}, settings.ExitUsage,
			"flag --interval: 99ms is not within 100ms..1h0m0s"},
		{"too rarely", absent, []string{"--interval=2h"}, settings.ExitUsage, "flag --interval"},
		{"no time", absent, []string{"--interval=soon"}, settings.ExitUsage, "soon"},
		{"too many words", absent, []string{"now"}, settings.ExitUsage, "unexpected argument"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := topOn(tt.dir, tt.args...)
			if code != tt.code || stdout != "" || strings.Count(stderr, "\n") != 1 ||
				!strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, %q, %q; want exit %d, one line with %q", code, stdout, stderr, tt.code,
					tt.want)
			}
		})
	}
}

func TestTopOncePrintsOneFrame(t *testing.T) {
	dir := t.TempDir()
	w := startWatching(apptest.Settled(t, "data.dir", dir), apptest.StillSources(),
		slog.New(slog.DiscardHandler))
	defer w.stop()
	apptest.Until(t, "figures are there", func() (bool, any) {
		f, err := stats.OpenStats(filepath.Join(dir, "stats"))
		if err != nil {
			return false, err
		}
		defer f.Close()
		var image stats.Image
		return f.Load(&image) == nil && image.Clock.Tick > 0, image.Clock
	})
	code, stdout, stderr := topOn(dir, "--once", "--interval=100ms")
	if code != settings.ExitOK || stderr != "" || strings.Count(stdout, "posttrade  pid") != 1 ||
		strings.ContainsRune(stdout, '\x1b') {
		t.Errorf("exit %d, %q, %q", code, stdout, stderr)
	}
	if !strings.Contains(stdout, "CLUSTER     single node\n") {
		t.Errorf("not a whole frame: %s", stdout)
	}
}

// TestFormerLeaderShowsNoOldFigures: figures that the leader has are shown as being there, and the
// figures of the time before are gone.
func TestFormerLeaderShowsNoOldFigures(t *testing.T) {
	for _, sidecars := range []string{"true", "false"} {
		c := apptest.Settled(t, append(anyPorts(t.TempDir()), "sidecars.enabled", sidecars)...)
		in := &Installation{
			Core: &engine.Engine{Journal: &journal.Journal{}}, Member: &member{},
			listeners: &listeners{c: c},
		}
		from := statsSourcesOf(in, httpapi.Metrics{})
		var image stats.Image // of a process that has led
		image.Feeds.Sources[0].Watermark, image.Lags.Projection = 7, 3
		if (from.Feeds != nil) != (sidecars == "true") || (from.Lags != nil) != (sidecars == "true") {
			t.Fatalf("sidecars %s: feeds %v, lags %v", sidecars, from.Feeds != nil, from.Lags != nil)
		}
		if from.Feeds == nil {
			image.Feeds, image.Lags = stats.Feeds{}, stats.Lags{}
		} else {
			from.Feeds(&image.Feeds)
			from.Lags(&image.Lags)
		}
		if f, l := image.Feeds, image.Lags; f.Sources != [2]stats.Feed{} ||
			l != (stats.Lags{Present: l.Present}) {
			t.Errorf("sidecars %s: old figures %+v %+v", sidecars, f, l)
		}
	}
}
