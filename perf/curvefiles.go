package perf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/load"
)

// distribution are the figures of a latency in microseconds: p50, p90, p99, p99.9 and the longest.
func distribution(s *latency.Summary) (more []metric) {
	for _, p := range []float64{50, 90, 99, 99.9} {
		more = append(more, metric{microseconds(s.At(p)), "p" + strconv.FormatFloat(p, 'g', -1, 64) +
			"-us"})
	}
	return append(more, metric{microseconds(s.Max()), "max-us"})
}

// microseconds is a duration in the unit of the figures.
func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// histograms writes a run's distribution beside the results file, in the two forms that
// HdrHistogram's tools read: <results without .txt>/<name>.hgrm and .hlog. In the name, '/' is '.'
// and '=' is '-', as report.Run.Percentiles expects. Older files of the same names are overwritten.
func (r *Run) histograms(name string, begun time.Time, result *load.Result) error {
	folder := strings.TrimSuffix(r.outFile(), ".txt")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make histogram folder: %w", err)
	}
	tag := strings.NewReplacer("/", ".", "=", "-").Replace(name)
	file := filepath.Join(folder, tag)
	return errors.Join(
		writeWith(file+".hgrm", result.Latency.WriteHgrm),
		writeWith(file+".hlog",
			func(w io.Writer) error { return latency.WriteHlog(w, tag, begun, result.Intervals) }),
	)
}

// writeWith creates a file, or empties an old one, and lets write fill it.
func writeWith(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}
