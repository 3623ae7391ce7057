package report

import (
	"fmt"
	"io"
	"strings"
)

// Verdict is how the last runs of one kind of machine did on a target.
type Verdict struct {
	Target
	// Hit of Of runs met the target's limit, whatever limit they had themselves. Of is 0 when none of
	// them measured it.
	Hit, Of int
	// Lowest and Highest are the figures' extremes over those runs; 0 when Of is 0.
	Lowest, Highest float64
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

// Verdicts judges every target of a run, by its limit, with the last runs of the same kind of
// machine that have measured it: at most last ones of runs, which come oldest first. Smoke runs do
// not count.
func Verdicts(of *Run, runs []*Run, last int) (list []Verdict) {
	seen := map[[2]string]bool{}
	for _, t := range of.Targets {
		if key := [2]string{t.Row, t.Figure}; !seen[key] {
			seen[key] = true
			list = append(list, judge(t, runs, of.Kind(), last))
		}
	}
	return list
}

// judge looks at the runs from the newest one back, until so many have measured the figure. A run
// that lacks it does not count, so two lines of a table may be of different runs.
func judge(t Target, runs []*Run, kind string, last int) Verdict {
	v := Verdict{Target: t}
	for i := len(runs) - 1; i >= 0 && v.Of < last; i-- {
		measured, ok := runs[i].measured(t.Row, t.Figure)
		if !ok || runs[i].Kind() != kind || runs[i].smoke() {
			continue
		}
		if v.Of == 0 {
			v.Lowest, v.Highest = measured, measured
		}
		v.Lowest, v.Highest = min(v.Lowest, measured), max(v.Highest, measured)
		v.Of++
		if t.AtMost && measured <= t.Limit || !t.AtMost && measured >= t.Limit {
			v.Hit++
		}
	}
	return v
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
// has one. The error is that of w.
func WriteVerdicts(w io.Writer, list []Verdict) error {
	const head = "| row | figure | target | met | lowest | highest |\n|---|---|---:|---:|---:|---:|\n"
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	for _, v := range list {
		sign, lowest, highest := ">=", "-", "-"
		if v.AtMost {
			sign = "<="
		}
		if v.Of > 0 {
			lowest, highest = fmt.Sprintf("%.4g", v.Lowest), fmt.Sprintf("%.4g", v.Highest)
		}
		if _, err := fmt.Fprintf(w, "| %s | %s | %s %.4g | %d of %d | %s | %s |\n", v.Row, v.Figure, sign,
			v.Limit, v.Hit, v.Of, lowest, highest); err != nil {
			return err
		}
	}
	return nil
}
