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
