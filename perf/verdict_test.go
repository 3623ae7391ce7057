package perf

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestTargetsAreLinesOfTheTable(t *testing.T) {
	var shown bytes.Buffer
	r := &Run{}
	r.atMost("P1", "a", 1, 2)
	r.atMost("P1", "b", 3, 2).beside("peer %d ns", 7)
	r.atLeast("P2", "c", 2.5e6, 2.5e6)
	r.atLeast("P2", "d", 1, 2)
	r.targets = append(r.targets, target{row: "P3", text: "e", limit: 300, atMost: true, unknown: true,
		floor: "not measured"})
	r.summary(&shown)
	want := []string{
		"| P1 | a | 1 | <= 2 | met |  |", "| P1 | b | 3 | <= 2 | missed | peer 7 ns |",
		"| P2 | c | 2.5e+06 | >= 2.5e+06 | met |  |",
		"| P2 | d | 1 | >= 2 | missed |  |", "| P3 | e | - | <= 300 | no verdict | not measured |",
	}
	if got := strings.Split(strings.TrimSpace(shown.String()), "\n")[2:]; strings.Join(got,
		"\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRunNamesWhatItHasNotJudged: every figure of the table is in the results, with a verdict or
// with the reason why there is none, in the table's order.
func TestRunNamesWhatItHasNotJudged(t *testing.T) {
	r := &Run{o: Options{Stdout: io.Discard}}
	r.atMost("pause", "something else", 1, 1)
	for _, a := range table {
		if a.row != "P7" && a.match != "failover" {
			r.atMost(a.row, a.match+", so and so", 1, 1)
		}
	}
	r.unjudged()
	var unknown []string
	last := 0
	for _, target := range r.targets {
		if target.unknown {
			unknown = append(unknown, target.String())
		}
		if n := tableOrder(target.row); n < last {
			t.Errorf("%s comes after a later row", target.row)
		} else {
			last = n
		}
	}
	if len(unknown) != 6 || !strings.Contains(unknown[1],
		"| - | <= 1 | no verdict | not measured: a core for each spinning thread is needed |") ||
		unknown[5] != "| P12 | failover, median, ms | - | <= 300 | no verdict | not measured |" {
		t.Errorf("without a verdict:\n%s", strings.Join(unknown, "\n"))
	}
}

// TestTableAsksForEveryRow: in order, without a hole up to P14, each figure once.
func TestTableAsksForEveryRow(t *testing.T) {
	seen := map[string]bool{}
	last := 0
	for _, a := range table {
		n := tableOrder(a.row)
		if n < last || n > last+1 && last < 14 || seen[a.row+a.match] || a.figure == "" ||
			a.sign != "<=" &&
				a.sign != ">=" {
			t.Errorf("%+v after P%d", a, last)
		}
		seen[a.row+a.match], last = true, n
	}
	if last < 16 {
		t.Errorf("the last row is P%d", last)
	}
}

func TestNamesOfFiguresAreOneWord(t *testing.T) {
	r := &Run{o: Options{Stdout: io.Discard}}
	r.figures("Session/op=window of 1024", metric{1, "commands/s"})
	r.bench("Cluster/op=one at a time", 1, 1)
	if want := "BenchmarkSession/op=window-of-1024 1 1 commands/s"; r.lines[0] != want {
		t.Errorf("got %q, want %q", r.lines[0], want)
	}
	if want := "BenchmarkCluster/op=one-at-a-time 1 1 ns/op"; r.lines[1] != want {
		t.Errorf("got %q, want %q", r.lines[1], want)
	}
}
