package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// metric is one figure of a line. unit is the word behind it and must not have a space: benchstat
// and the report find figures by unit, so that one unit has one meaning within a row. A unit that
// ends with /s is a rate, /op, /command and /commit are per item, and a trailing % is a share in
// hundredths.
type metric struct {
	value float64
	unit  string
}

// bench records one line in Go's benchmark format, which benchstat reads: a name, the number of
// measured operations, nanoseconds per operation, and further figures. elapsed is the time of all n
// operations together; for a best of several runs, that of the best one. Nothing is checked: a row
// that measures nothing must not call it.
func (r *Run) bench(name string, n int, elapsed time.Duration, more ...metric) {
	line := fmt.Sprintf("Benchmark%s %d %.4g ns/op", unbroken(name), n,
		float64(elapsed.Nanoseconds())/float64(max(n, 1)))
	for _, m := range more {
		line += fmt.Sprintf(" %.5g %s", m.value, m.unit)
	}
	r.lines = append(r.lines, line)
	fmt.Fprintln(r.o.Stdout, line)
}

// unbroken is a name in the form that the format needs: one word.
func unbroken(name string) string { return strings.ReplaceAll(name, " ", "-") }

// figures records a line that has no time per operation.
// The count in the line is 1, so that benchstat compares the figures and not a time per operation.
func (r *Run) figures(name string, more ...metric) {
	line := "Benchmark" + unbroken(name) + " 1"
	for _, m := range more {
		line += fmt.Sprintf(" %.5g %s", m.value, m.unit)
	}
	r.lines = append(r.lines, line)
	fmt.Fprintln(r.o.Stdout, line)
}

// note adds a remark to the results, as a comment that benchstat and the report skip. It explains a
// figure or its absence; nothing reads it back.
func (r *Run) note(text string) {
	r.lines = append(r.lines, "# "+text)
	fmt.Fprintln(r.o.Stdout, "# "+text)
}

// outFile is the path of the results file.
func (r *Run) outFile() string {
	if r.o.Out != "" {
		return r.o.Out
	}
	return filepath.Join("perf", "results", r.env.fileName())
}

// write puts the header, the lines and the targets into the results file, and overwrites an older
// file of the same commit and processor. The header's keys are those of Go's benchmark format
// ("goos: ..."), so that benchstat groups by them; targets and notes are comments to it.
// report.Parse reads all three.
func (r *Run) write() error {
	name := r.outFile()
	var b strings.Builder
	b.WriteString(r.env.header())
	b.WriteString(r.env.footer(r.jitterAfter))
	b.WriteString("\n")
	for _, line := range r.lines {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("\n")
	for _, t := range r.targets {
		fmt.Fprintf(&b, "# %s\n", t)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("perf: make results folder: %w", err)
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("perf: write results: %w", err)
	}
	fmt.Fprintf(r.o.Stdout, "\nwritten to %s\n", name)
	return nil
}
