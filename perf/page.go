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
// results, on the kind of machine whose name contains the text; "" for any. The limits are those of
// today's table, so a limit that was changed judges old runs too. report.ErrNoResults: no full run
// is of that kind.
func WriteVerdicts(results, kind string, last int, stdout io.Writer) error {
	runs, err := report.Load(results)
	if err != nil {
		return err
	}
	of := report.Fullest(runs, kind)
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
	return writeVerdicts(of, runs, last, stdout)
}

// writeVerdicts writes the table of a run's targets with a line above it that names the kind of
// machine.
func writeVerdicts(of *report.Run, runs []*report.Run, last int, stdout io.Writer) error {
	fmt.Fprintf(stdout, "%s: the last %d runs that measured a figure\n\n", of.Kind(), last)
	return report.WriteVerdicts(stdout, report.Verdicts(of, runs, last))
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
			err = writeVerdicts(mine[0], runs, LastRuns, r.o.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintf(r.o.Stdout, "no table of verdicts: %v\n", err)
	}
}
