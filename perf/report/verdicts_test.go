package report

import (
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// runOf is a results file of one processor with one target line.
func runOf(t *testing.T, cpu, work, target string) *Run {
	t.Helper()
	run := must.Get(Parse("x.txt", strings.NewReader("cpu: "+cpu+"\ncores: 2\nwork: "+work+
		"\n\nBenchmarkX 1 2 ns/op\n\n# "+target+"\n")))(t)
	return run
}

// What counts is the last runs of the same kind of machine, by the limit of the run in question.
func TestVerdictsCountTheLastRunsOfAKind(t *testing.T) {
	runs := []*Run{
		runOf(t, "A", "full", "| P4 | step | 9 | <= 10 | met |  |"), // too old
		runOf(t, "A", "full", "| P4 | step | 4 | <= 10 | met |  |"),
		runOf(t, "B", "full", "| P4 | step | 1 | <= 10 | met |  |"),  // another machine
		runOf(t, "A", "smoke", "| P4 | step | 1 | <= 10 | met |  |"), // a hundredth
		runOf(t, "A", "full", "| P5 | other | 1 | <= 10 | met |  |"), // not measured
		runOf(t, "A", "full", "| P4 | step | - | <= 10 | no verdict | why |"),
		runOf(t, "A", "full", "| P4 | step | 2.5 | <= 3 | met |  |"),
		runOf(t, "A", "full", "| P4 | step | 3 | <= 3 | met |  |"),
	}
	kinds := Kinds(runs, "")
	if want := []string{"A, 2 cores", "B, 2 cores"}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
	if got, want := Kinds(runs, "B"), kinds[1:]; !slices.Equal(got, want) {
		t.Errorf("kinds with a B are %q, want %q", got, want)
	}
	kinds = append(kinds, "C, 2 cores")
	list := Verdicts(runs[len(runs)-1], runs, kinds, 3)
	want := []Tally{{2, 3, 2.5, 4}, {1, 1, 1, 1}, {}}
	if len(list) != 1 || !slices.Equal(list[0].Tallies, want) {
		t.Errorf("%+v, want the tallies %+v", list, want)
	}
	var b strings.Builder
	must.OK(t, WriteVerdicts(&b, kinds, list))
	if want := "| row | figure | target | A, 2 cores: met | lowest to highest |" +
		" B, 2 cores: met | lowest to highest | C, 2 cores: met | lowest to highest |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|---:|\n" +
		"| P4 | step | <= 3 | 2 of 3 | 2.5 to 4 | 1 of 1 | 1 to 1 | - | - |\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if got := Fullest(runs, "A"); got != runs[len(runs)-1] {
		t.Errorf("the fullest run is %+v, want the newest of equals", got)
	}
	if got := Fullest(runs, "C"); got != nil {
		t.Errorf("%+v has the most targets on a machine that has no run", got)
	}
}
