package perf

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/settings"
	"posttrade/ring/must"
)

// TestPerfKillsALeader runs the row in smoke size, with real members: one kill on a new history and
// one on a long one, and a verdict of each.
func TestPerfKillsALeader(t *testing.T) {
	dir, results := t.TempDir(), filepath.Join(t.TempDir(), "r.txt")
	var stdout bytes.Buffer
	err := Measure(Options{
		Smoke: true, Only: "failover", Dir: dir, Out: results, Stdout: &stdout,
		Binary: apptest.Program(t), Config: must.Get(settings.Read(settings.Sources{}))(t),
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, stdout.String())
	}
	text, err := os.ReadFile(results)
	for _, want := range []string{"BenchmarkCluster/op=failover/kills=1 1 ",
		"| P12 | failover: kill -9 of the leader",
		"BenchmarkCluster/op=failover/behind=99840/kills=1 1 ",
		"| P12 | failover with 99840 commands behind, median, ms | "} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %q in %v\n%s", want, err, text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
