package report

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Load reads a results file, or all files *.txt in a folder, the oldest first, with the
// distributions beside each. One bad file is an error of all: a table with a run left out would
// look complete.
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

// loadFile reads one results file and the distributions beside it, in the folder of its name
// without ".txt". A file without such a folder has none.
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

// loadPercentiles reads one .hgrm file into Percentiles.
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
	// Share is 0 to 1; the last line of a distribution has 1 and the longest value.
	Share float64
	// Micros is microseconds.
	Micros float64
}

// parseHgrm reads a percentile distribution as HdrHistogram writes it: value, percentile, count,
// 1/(1-percentile). Lines of the heading and comments are skipped.
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
