package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/settings"
	"posttrade/perf"
	"posttrade/ring/must"
)

func TestPerfCommandsRefuseWhatTheyCannotDo(t *testing.T) {
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"gate"}, settings.ExitUsage, "--base is required"},
		{[]string{"gate", "--self-test", "--times=0"}, settings.ExitUsage, "--times must be at least 1"},
		{[]string{"gate", "--nonsense"}, settings.ExitUsage, "unknown flag --nonsense"},
		{[]string{"gate", "--base=/nowhere/build"}, settings.ExitFailed, "ask the base for its rows"},
		{[]string{"sample"}, settings.ExitFailed, "no such row"},
		{[]string{"sample", "--row=ring", "--burn=-1"}, settings.ExitFailed, "burn -1"},
		{[]string{"sample", "extra"}, settings.ExitUsage, "unexpected argument"},
		{[]string{"report"}, settings.ExitUsage, "needs a results file"},
		{[]string{"report", "/nowhere/results"}, settings.ExitFailed, "no such file"},
		{[]string{"report", "a", "b"}, settings.ExitUsage, "unexpected argument"},
		{[]string{"--restart-commands=-1"}, settings.ExitUsage,
			"flag --restart-commands: -1 is less than 0"},
		{append(strings.Fields(examples["perf"])[2:], "--restart-commands=-1"), settings.ExitUsage,
			"flag --restart-commands: -1 is less than 0"}, // all else of the example is taken
		{[]string{"nonsense"}, settings.ExitUsage, "unexpected argument"},
	} {
		var stdout, stderr bytes.Buffer
		if code := runPerf(tt.args, &stdout, &stderr); code != tt.code ||
			!strings.Contains(stderr.String(), tt.want) {
			t.Errorf("perf %v: exit %d, %q; want %d and %q", tt.args, code, stderr.String(), tt.code,
				tt.want)
		}
	}
}

func TestPerfSampleAnswersAsTheGateAsks(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := runPerf([]string{"sample", "--list"}, &stdout, &stderr); code != settings.ExitOK ||
		!slices.Equal(strings.Fields(stdout.String()), perf.MicroRows()) {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
	stdout.Reset()
	if code := runPerf([]string{"sample", "--row=gate", "--for=1ns", "--dir=" + t.TempDir()}, &stdout,
		&stderr); code != settings.ExitOK || !strings.HasPrefix(stdout.String(), "sample ns=") {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
}

func TestPerfReportWritesAPage(t *testing.T) {
	results := filepath.Join(t.TempDir(), "r.txt")
	must.OK(t, os.WriteFile(results, []byte("commit: abc\n\nBenchmarkRing/op=spsc 1 2 ns/op 3 M/s\n"),
		0o600))
	page := filepath.Join(t.TempDir(), "deep", "page.html")
	var stdout, stderr bytes.Buffer
	if code := runPerf([]string{"report", "--out", page, results}, &stdout,
		&stderr); code != settings.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "op=spsc") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestPerfLoadsARealEngine runs a row through the wiring: every command of the load is
// answered, and the engine is gone afterwards.
func TestPerfLoadsARealEngine(t *testing.T) {
	perfRows(t, "end-to-end,first-orders", "work: smoke\n",
		"BenchmarkEndToEnd/op=command/durability=fsync 1 ", " p99.9-us-at-10%",
		"BenchmarkFirstOrders/durability=fsync 1 ", "BenchmarkFirstOrders/durability=os 1 ", " first-us ")
}

// TestPerfRowsOfAWholeEngine runs, through the wiring, the rows that need more of an engine than
// commands: its heap, its matcher's loop, its control changes, its extracts.
func TestPerfRowsOfAWholeEngine(t *testing.T) {
	perfRows(t, "heap,pause,past,evidence,feed-replay,cut",
		"BenchmarkPast/op=moment/commands=", "BenchmarkWhatIf/change=no-change ",
		"| P17 | the next moment",
		"BenchmarkEvidence/op=catch-up ", "/work=log/beside=log/round=2 1 ",
		"| P16 | p99 of orders at half of saturation, the transparency log on, against off",
		"BenchmarkHeap/op=flow/commands=", "BenchmarkHeap/op=allocated/stage=matcher 1 0 allocs/command",
		"BenchmarkHeap/op=allocated/stage=desk 1 ",
		"BenchmarkPause/op=matcher 1 ", "BenchmarkPause/op=bare-thread 1 ",
		"| pause | longest pause of the matcher's thread in ",
		"/work=feed/beside=feed/round=2 1 ", "BenchmarkBeside/op=allocated/stage=feed 1 ",
		"| P11 | p99 of orders while 10000 deltas are replayed",
		"BenchmarkCut/op=extract/positions=512/contracts=512 ", "/work=cut/beside=cut/round=2 1 ",
		"| P12 | p99 of orders while a cut of 512 positions",
	)
}

// perfRows runs rows in smoke size and checks that the results have the wanted lines, and that
// nothing is left behind.
func perfRows(t *testing.T, only string, wanted ...string) {
	t.Helper()
	dir := t.TempDir()
	c, err := settings.Read(settings.Sources{})
	must.OK(t, err)
	var stdout, stderr bytes.Buffer
	results := filepath.Join(t.TempDir(), "r.txt")
	err = perf.Measure(perf.Options{
		Smoke: true, Only: only, Dir: dir, Out: results, Stdout: &stdout, Pause: 50 * time.Millisecond,
		Config: c, Stderr: &stderr,
	})
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	text, err := os.ReadFile(results)
	must.OK(t, err)
	for _, want := range wanted {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
