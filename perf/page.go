package perf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"posttrade/perf/report"
)

// WriteReport draws a results file, or all files in a folder, as one page. out is the file of the
// page; empty: beside the results, with the ending .html.
//
// An error of reading names the file and line; the page is then not written. An older page is
// replaced.
func WriteReport(results, out string, stdout io.Writer) (err error) {
	runs, err := report.Load(results)
	if err != nil {
		return err
	}
	if out == "" {
		out = strings.TrimSuffix(filepath.Clean(results), ".txt") + ".html"
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("perf: make report folder: %w", err)
	}
	err = writeWith(out, func(w io.Writer) error { return report.Write(w, runs) })
	if err != nil {
		return fmt.Errorf("perf: write report: %w", err)
	}
	fmt.Fprintf(stdout, "written to %s\n", out)
	return nil
}

// WriteVerdicts writes how often the last runs met each target of the fullest run among the
// results, on each kind of machine whose name contains the text. The limits are those of today's
// table, so a limit that was changed judges old runs too. report.ErrNoResults: no full run is of
// such a kind.
func WriteVerdicts(results, kind string, last int, stdout io.Writer) error {
	runs, err := report.Load(results)
	if err != nil {
		return err
	}
	of, kinds := report.Fullest(runs, kind), report.Kinds(runs, kind)
	if of == nil {
		return fmt.Errorf("perf: verdicts folder=%s machine=%s: %w", results, kind, report.ErrNoResults)
	}
	for i := range of.Targets {
		t := &of.Targets[i]
		if at := slices.IndexFunc(goals(), func(g goal) bool {
			return g.states(t.Row, t.Figure)
		}); at >= 0 {
			t.Limit = goals()[at].limit
		}
	}
	return report.WriteVerdicts(stdout, kinds, report.Verdicts(of, runs, kinds, last))
}

// LastRuns is how many runs a table of verdicts goes back, by default.
const LastRuns = 8

// verdicts prints how often this run and those whose results lie beside it have met its targets.
// There may be other files beside it, so an error here does not fail the run: the results are
// written already.
func (r *Run) verdicts() {
	if r.o.Smoke || len(r.targets) == 0 {
		return
	}
	fmt.Fprintln(r.o.Stdout)
	mine, err := report.Load(r.outFile())
	if err == nil {
		var runs []*report.Run
		if runs, err = report.Load(filepath.Dir(r.outFile())); err == nil {
			kinds := []string{mine[0].Kind()}
			err = report.WriteVerdicts(r.o.Stdout, kinds,
				report.Verdicts(mine[0], runs, kinds, LastRuns))
		}
	}
	if err != nil {
		fmt.Fprintf(r.o.Stdout, "no table of verdicts: %v\n", err)
	}
}
