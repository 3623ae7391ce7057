package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Run is one results file.
type Run struct {
	Name    string    // of the file
	When    time.Time // zero: the file has no date
	Header  []Field
	Rows    []Row
	Targets []Target
	// Percentiles are the distributions in the files beside the results, by the row's name with '/'
	// and '=' written as '.' and '-'.
	Percentiles map[string][]Percentile
}

// Field is one line of the header.
type Field struct{ Key, Value string }

// Row is one measured line.
type Row struct {
	Name    string // without "Benchmark"
	N       int
	Metrics []Metric
}

// Metric is one figure of a row.
type Metric struct {
	Value float64
	Unit  string
}

// Target is one line of the table of targets.
type Target struct {
	Row, Figure string
	Measured    float64
	AtMost      bool
	Limit       float64
	Met         bool
	// nothing was measured: there is no verdict, Measured is not a number, Beside may have the reason
	Open   bool
	Beside string // the peer or the floor in the same run, "" when the ratio already has it
}

// ErrNoResults reports a file or folder without a measured line.
var ErrNoResults = errors.New("no results")

// field returns the value of a key of the header, or "".
func (r *Run) field(key string) string {
	for _, f := range r.Header {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

// get returns a figure of a row.
func (r *Row) get(unit string) (float64, bool) {
	for _, m := range r.Metrics {
		if m.Unit == unit {
			return m.Value, true
		}
	}
	return 0, false
}

// key returns the value of a key in a row's name: Curve/op=http/load=10.
func (r *Row) key(key string) string {
	for part := range strings.SplitSeq(r.Name, "/") {
		if value, found := strings.CutPrefix(part, key+"="); found {
			return value
		}
	}
	return ""
}

// group is the part of a row's name before its first key.
func (r *Row) group() string {
	group, _, _ := strings.Cut(r.Name, "/")
	return group
}

// Parse reads a results file. It skips lines that it does not know; lines that it knows must be
// correct.
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

// Load reads a results file, or all files in a folder, the oldest first.
func Load(path string) (runs []*Run, err error) {
	names := []string{path}
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("report: load: %w", err)
	} else if info.IsDir() {
		if names, err = filepath.Glob(filepath.Join(path, "*.txt")); err != nil {
			return nil, fmt.Errorf("report: load: %w", err)
		}
	}
	for _, name := range names {
		run, err := loadFile(name)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("report: load folder=%s: %w", path, ErrNoResults)
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.When.Compare(b.When) })
	return runs, nil
}

// loadFile reads one results file and the distributions beside it.
func loadFile(name string) (*Run, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("report: load: %w", err)
	}
	defer file.Close()
	run, err := Parse(filepath.Base(name), file)
	if err != nil {
		return nil, err
	}
	beside, err := filepath.Glob(filepath.Join(strings.TrimSuffix(name, ".txt"), "*.hgrm"))
	if err != nil {
		return nil, fmt.Errorf("report: load: %w", err)
	}
	for _, hgrm := range beside {
		if err := run.loadPercentiles(hgrm); err != nil {
			return nil, err
		}
	}
	return run, nil
}

func (r *Run) loadPercentiles(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("report: load: %w", err)
	}
	defer file.Close()
	points, err := parseHgrm(file)
	if err != nil {
		return fmt.Errorf("report: load file=%s: %w", filepath.Base(name), err)
	}
	r.Percentiles[strings.TrimSuffix(filepath.Base(name), ".hgrm")] = points
	return nil
}

// Percentile is one line of a distribution: this share of all values was at most so long.
type Percentile struct {
	Share  float64 // 0 to 1
	Micros float64
}

// parseHgrm reads a percentile distribution: value, percentile, count, 1/(1-percentile).
func parseHgrm(in io.Reader) (points []Percentile, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) < 3 || words[0] == "Value" || strings.HasPrefix(words[0], "#") {
			continue
		}
		value, err1 := strconv.ParseFloat(words[0], 64)
		share, err2 := strconv.ParseFloat(words[1], 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		points = append(points, Percentile{share, value})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, ErrNoResults
	}
	return points, nil
}
