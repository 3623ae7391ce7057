package perf

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"posttrade/perf/report"
)

// WriteReport draws a results file, or all files in a folder, as one page. out is the file of the
// page; empty: beside the results, with the ending .html.
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

// WriteVerdicts writes how often the last runs met each target, for the kind of machine of the
// newest run among the results, or of the newest one whose processor's name contains cpu.
func WriteVerdicts(results, cpu string, last int, stdout io.Writer) error {
	runs, err := report.Load(results)
	if err != nil {
		return err
	}
	for len(runs) > 0 && !strings.Contains(runs[len(runs)-1].Kind(), cpu) {
		runs = runs[:len(runs)-1]
	}
	if len(runs) == 0 {
		return fmt.Errorf("perf: verdicts folder=%s cpu=%s: %w", results, cpu, report.ErrNoResults)
	}
	fmt.Fprintf(stdout, "%s: the last %d runs that measured a figure\n\n",
		runs[len(runs)-1].Kind(), last)
	return report.WriteVerdicts(stdout, report.Verdicts(runs, last))
}

// LastRuns is how many runs a table of verdicts goes back.
const LastRuns = 8
