package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Tally is how the last runs of one kind of machine did on a target.
type Tally struct {
	// Hit of Of runs met the target's limit, whatever limit they had themselves. Of is 0 when none of
	// them measured it.
	Hit, Of int
	// Lowest and Highest are the figures' extremes over those runs; 0 when Of is 0.
	Lowest, Highest float64
}

// Verdict is a target with the tallies of some kinds of machine, in the order of the kinds.
type Verdict struct {
	Target
	Tallies []Tally
}

// Kind is the machine that a run was measured on, as far as it decides which runs compare:
// processor and number of cores. Disk, kernel and memory are not in it.
func (r *Run) Kind() string { return fmt.Sprintf("%s, %s cores", r.field("cpu"), r.field("cores")) }

// Fullest is the run with the most targets, the newest of several. Smoke runs do not count. It is
// nil when no run's kind contains the text.
func Fullest(runs []*Run, kind string) (fullest *Run) {
	for _, r := range runs {
		if !r.smoke() && strings.Contains(r.Kind(), kind) &&
			(fullest == nil || len(r.Targets) >= len(fullest.Targets)) {
			fullest = r
		}
	}
	return fullest
}

// smoke reports a run of a hundredth of the work, which shows that rows run and not how fast.
func (r *Run) smoke() bool { return r.field("work") == "smoke" }

// Kinds are the kinds of machine of the runs, each once and in the order of their names: those
// whose name contains the text. Smoke runs do not count.
func Kinds(runs []*Run, text string) (kinds []string) {
	for _, r := range runs {
		if !r.smoke() && strings.Contains(r.Kind(), text) {
			kinds = append(kinds, r.Kind())
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Verdicts judges every target of a run, by its limit, with the last runs of each kind of machine
// that have measured it: at most last ones of runs, which come oldest first. Smoke runs do not
// count.
func Verdicts(of *Run, runs []*Run, kinds []string, last int) (list []Verdict) {
	seen := map[[2]string]bool{}
	for _, t := range of.Targets {
		key := [2]string{t.Row, t.Figure}
		if seen[key] {
			continue
		}
		seen[key] = true
		v := Verdict{Target: t}
		for _, kind := range kinds {
			v.Tallies = append(v.Tallies, judge(t, runs, kind, last))
		}
		list = append(list, v)
	}
	return list
}

// judge looks at the runs from the newest one back, until so many have measured the figure. A run
// that lacks it does not count, so two lines of a table may be of different runs.
func judge(t Target, runs []*Run, kind string, last int) (sum Tally) {
	for i := len(runs) - 1; i >= 0 && sum.Of < last; i-- {
		measured, ok := runs[i].measured(t.Row, t.Figure)
		if !ok || runs[i].Kind() != kind || runs[i].smoke() {
			continue
		}
		if sum.Of == 0 {
			sum.Lowest, sum.Highest = measured, measured
		}
		sum.Lowest, sum.Highest = min(sum.Lowest, measured), max(sum.Highest, measured)
		sum.Of++
		if t.AtMost && measured <= t.Limit || !t.AtMost && measured >= t.Limit {
			sum.Hit++
		}
	}
	return sum
}

// measured is the figure of a target that the run has judged.
func (r *Run) measured(row, figure string) (float64, bool) {
	for _, t := range r.Targets {
		if t.Row == row && t.Figure == figure && !t.Open {
			return t.Measured, true
		}
	}
	return 0, false
}

// WriteVerdicts writes a table in Markdown that documents can take as it is: docs/performance.md
// has one. Each kind of machine has two columns. The error is that of w.
func WriteVerdicts(w io.Writer, kinds []string, list []Verdict) error {
	head, rule := "| row | figure | target |", "|---|---|---:|"
	for _, kind := range kinds {
		head += " " + kind + ": met | lowest to highest |"
		rule += "---:|---:|"
	}
	if _, err := fmt.Fprintf(w, "%s\n%s\n", head, rule); err != nil {
		return err
	}
	for _, v := range list {
		sign := ">="
		if v.AtMost {
			sign = "<="
		}
		line := fmt.Sprintf("| %s | %s | %s %.4g |", v.Row, v.Figure, sign, v.Limit)
		for _, t := range v.Tallies {
			line += t.columns()
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// columns are the two columns of a kind of machine.
func (t Tally) columns() string {
	if t.Of == 0 {
		return " - | - |"
	}
	return fmt.Sprintf(" %d of %d | %.4g to %.4g |", t.Hit, t.Of, t.Lowest, t.Highest)
}
