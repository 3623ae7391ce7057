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
	r.judge(atMost("P1", 2, "a"), 1)
	r.judge(atMost("P1", 2, "b"), 3).beside("peer %d ns", 7)
	r.judge(atLeast("P2", 2.5e6, "c"), 2.5e6)
	r.judge(atLeast("P2", 2, "d"), 1)
	r.targets = append(r.targets, target{goal: atMost("P3", 300, ""), text: "e", unknown: true,
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
	r.judge(atMost("pause", 1, "something else"), 1)
	for _, g := range goals() {
		if g.row != "P7" && g != failoverTime {
			r.judge(g, 1, 1, 1)
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
		unknown[3] != "| P7 | session/durability=fsync: highest against lowest p99.9 from 10 to 70 % of "+
			"saturation | - | <= 2 | no verdict | not measured: too few requests were answered at two "+
			"points |" || !strings.HasSuffix(unknown[5], ", ms | - | <= 300 | no verdict | not measured |") {
		t.Errorf("without a verdict:\n%s", strings.Join(unknown, "\n"))
	}
}

// TestTableAsksForEveryRow: in order, without a hole, each figure once, and every figure that a row
// can write is known again as its own.
func TestTableAsksForEveryRow(t *testing.T) {
	last := 0
	for i, g := range goals() {
		n := tableOrder(g.row)
		if n != last && n != last+1 && g.row != "pause" {
			t.Errorf("%+v after P%d", g, last)
		}
		last = n
		figure := g.of()
		if g.figure != "" {
			figure = g.of(100, 200)
		}
		figure, _, _ = strings.Cut(figure, "%!(EXTRA")
		for k, other := range goals() {
			if other.states(g.row, figure) != (k == i) {
				t.Errorf("%q of %+v and %+v", figure, g, other)
			}
		}
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
