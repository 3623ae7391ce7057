package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// Run is one results file, as Parse has read it. Nothing changes a Run afterwards but
// perf.WriteVerdicts, which sets today's limits.
type Run struct {
	// Name is that of the file, without its folder.
	Name string
	// When is when the run began; zero: the file has no date.
	When time.Time
	// Header has the lines "key: value" in the order of the file: the machine, the build, the kind of
	// work.
	Header []Field
	// Rows are the measured lines, in the order of the file.
	Rows []Row
	// Targets are the lines of the table of targets. A figure may be there twice.
	Targets []Target
	// Percentiles are the distributions in the files beside the results, by the row's name with '/'
	// and '=' written as '.' and '-'.
	Percentiles map[string][]Percentile
}

// Field is one line of the header. Both are as they stand in the file.
type Field struct{ Key, Value string }

// Row is one measured line.
type Row struct {
	// Name is without "Benchmark": a group, then keys with values, as in Curve/op=http/load=10.
	Name string
	// N is the number of operations; 1 for a line without a time per operation.
	N       int
	Metrics []Metric
}

// Metric is one figure of a row. Its unit says what it is: see perf's metric.
type Metric struct {
	Value float64
	Unit  string
}

// Target is one line of the table of targets.
type Target struct {
	// Row is the table's row, such as P1; Figure is its text with the numbers of that run. Both
	// together identify a target from run to run.
	Row, Figure string
	// Measured is not a number when Open.
	Measured float64
	// AtMost says that Limit may not be exceeded; otherwise it may not be missed from below.
	AtMost bool
	Limit  float64
	// Met is the verdict of the run itself, by the limit of its day.
	Met bool
	// Open says that nothing was measured: there is no verdict, and Beside may have the reason.
	Open bool
	// Beside is the peer or the floor in the same run, "" when the ratio already has it.
	Beside string
}

// ErrNoResults reports a file or folder without a measured line; test by errors.Is.
var ErrNoResults = errors.New("no results")

// field returns the value of a key of the header, or "". The first line of a key counts.
func (r *Run) field(key string) string {
	for _, f := range r.Header {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// get returns a figure of a row by its unit.
func (r *Row) get(unit string) (float64, bool) {
	for _, m := range r.Metrics {
		if m.Unit == unit {
			return m.Value, true
		}
	}
	return 0, false
}

// key returns the value of a key in a row's name, as of load in Curve/op=http/load=10; "" without
// it. A value cannot have a '/'.
func (r *Row) key(key string) string {
	for part := range strings.SplitSeq(r.Name, "/") {
		if value, found := strings.CutPrefix(part, key+"="); found {
			return value
		}
	}
	return ""
}

// group is the part of a row's name before its first key. Rows of one group are drawn together.
func (r *Row) group() string {
	group, _, _ := strings.Cut(r.Name, "/")
	return group
}

// Parse reads a results file. It skips lines that it does not know; lines that it knows must be
// correct, and an error names the file and the line. A file without a measured line is
// ErrNoResults. name is for errors and for Run.Name; Percentiles stay empty.
func Parse(name string, in io.Reader) (*Run, error) {
	run := &Run{Name: name, Percentiles: map[string][]Percentile{}}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		if err := run.line(lines.Text()); err != nil {
			return nil, fmt.Errorf("report: parse file=%s line=%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("report: parse file=%s: %w", name, err)
	}
	if len(run.Rows) == 0 {
		return nil, fmt.Errorf("report: parse file=%s: %w", name, ErrNoResults)
	}
	if when, err := time.Parse(time.RFC3339, run.field("date")); err == nil {
		run.When = when // older files have no date: they come first
	}
	return run, nil
}

// line reads one line: a figure, a target, a field of the header, or nothing that it knows.
func (r *Run) line(text string) error {
	if rest, found := strings.CutPrefix(text, "Benchmark"); found {
		row, err := parseRow(rest)
		r.Rows = append(r.Rows, row)
		return err
	}
	if rest, found := strings.CutPrefix(text, "# |"); found {
		target, err := parseTarget(rest)
		r.Targets = append(r.Targets, target)
		return err
	}
	if key, value, found := strings.Cut(text, ": "); found && !strings.HasPrefix(text, "#") {
		r.Header = append(r.Header, Field{key, value})
	}
	return nil
}

// parseRow reads "Name n value unit value unit ...". In older files a name may have several words,
// and numbers among them. The count is the first number that is followed by pairs of a figure and a
// unit.
func parseRow(text string) (Row, error) {
	words := strings.Fields(text)
	for at := 1; at < len(words)-2; at++ {
		n, err := strconv.Atoi(words[at])
		if err != nil || (len(words)-at)%2 == 0 {
			continue
		}
		row := Row{Name: strings.Join(words[:at], "-"), N: n}
		row.Metrics, err = parseMetrics(words[at+1:])
		return row, err
	}
	return Row{}, fmt.Errorf("not a benchmark line: %q", text)
}

// parseMetrics reads pairs of a figure and a unit. There are as many words as parseRow has counted:
// pairs.
func parseMetrics(words []string) (list []Metric, err error) {
	for ; len(words) > 0; words = words[2:] {
		value, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			return list, fmt.Errorf("figure %q: %w", words[0], err)
		}
		list = append(list, Metric{value, words[1]})
	}
	return list, nil
}

// parseTarget reads " P1 | figure | 1.2 | >= 2 | missed | channel 25 M/s |"; in older files the
// last column is missing.
func parseTarget(text string) (t Target, err error) {
	cells := strings.Split(text, "|")
	if len(cells) < 5 {
		return t, fmt.Errorf("not a target: %q", text)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	t.Row, t.Figure, t.Met = cells[0], cells[1], cells[4] == "met"
	if len(cells) > 6 {
		t.Beside = cells[5]
	}
	if t.Open = cells[2] == "-"; t.Open {
		t.Measured = math.NaN()
	} else if t.Measured, err = strconv.ParseFloat(cells[2], 64); err != nil {
		return t, fmt.Errorf("measured %q: %w", cells[2], err)
	}
	sign, limit, _ := strings.Cut(cells[3], " ")
	t.AtMost = sign == "<="
	if t.Limit, err = strconv.ParseFloat(limit, 64); err != nil {
		return t, fmt.Errorf("target %q: %w", cells[3], err)
	}
	return t, nil
}
