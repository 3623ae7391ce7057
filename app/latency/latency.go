package latency

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Both decide how much memory a Recorder takes.
const (
	// Longest is the largest duration that is recorded; longer ones count as this.
	Longest = 10 * time.Minute
	// Digits is the precision: three significant digits of nanoseconds.
	Digits = 3
)

// Recorder takes the durations of one goroutine.
//
// Count and Merge are for after the recording: they are not safe beside Record.
type Recorder struct {
	histogram *hdrhistogram.Histogram
}

// NewRecorder returns an empty recorder of about 300 KiB.
func NewRecorder() *Recorder {
	return &Recorder{histogram: hdrhistogram.New(1, int64(Longest), Digits)}
}

// Record counts one duration. A duration below a nanosecond counts as one, and one above Longest as
// Longest.
//
// It takes no lock and makes no system call.
func (r *Recorder) Record(d time.Duration) {
	// The value is within the histogram's bounds, so it cannot be refused.
	_ = r.histogram.RecordValue(min(max(int64(d), 1), int64(Longest)))
}

// Count is the number of recorded durations.
func (r *Recorder) Count() int64 { return r.histogram.TotalCount() }

// Summary is the distribution of the durations of several recorders.
//
// It does not change any more, so any goroutine may read it.
type Summary struct {
	histogram *hdrhistogram.Histogram
}

// Merge adds up recorders. Their goroutines must have stopped recording.
//
// Without recorders the result is empty, with 0 for every percentile.
func Merge(recorders ...*Recorder) *Summary {
	s := &Summary{histogram: NewRecorder().histogram}
	for _, r := range recorders {
		s.histogram.Merge(r.histogram)
	}
	return s
}

// Count is the number of recorded durations.
func (s *Summary) Count() int64 { return s.histogram.TotalCount() }

// Max is the longest duration, within the precision; 0 without any.
func (s *Summary) Max() time.Duration { return time.Duration(s.histogram.Max()) }

// At returns the duration that percent of all (0 to 100) did not exceed.
//
// The result is within the precision, and 0 without any duration.
func (s *Summary) At(percent float64) time.Duration {
	return time.Duration(s.histogram.ValueAtPercentile(percent))
}

// columns are the percentiles that every table shows, before the maximum.
//
// A mean is missing on purpose: one stall in a thousand would hardly move it.
var columns = []struct {
	head    string
	percent float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}}

// WriteTable writes one row per name: count, p50 p90 p99 p99.9 max. The row at an index belongs to
// the name at that index.
//
// The table is aligned, so it is held in memory and written at its end. The error is that of w, or
// of lists of different lengths.
func WriteTable(w io.Writer, names []string, rows []*Summary) error {
	if len(names) != len(rows) {
		return fmt.Errorf("latency: %d names for %d rows", len(names), len(rows))
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "latency\tcount\t")
	for _, c := range columns {
		fmt.Fprintf(table, "%s\t", c.head)
	}
	fmt.Fprintln(table, "max\t")
	for i, s := range rows {
		fmt.Fprintf(table, "%s\t%d\t", names[i], s.Count())
		for _, c := range columns {
			fmt.Fprintf(table, "%s\t", Short(s.At(c.percent)))
		}
		fmt.Fprintf(table, "%s\t\n", Short(s.Max()))
	}
	return table.Flush()
}

// Short writes a duration with three significant digits: 840ns, 12.3us, 1.05ms, 2.10s.
//
// The unit of microseconds is written us, so that the text is ASCII.
func Short(d time.Duration) string {
	value, unit := float64(d), "ns"
	for _, next := range []string{"us", "ms", "s"} {
		if value < 999.5 {
			break
		}
		value, unit = value/1000, next
	}
	switch {
	case unit == "ns" || value >= 99.95:
		return fmt.Sprintf("%.0f%s", value, unit)
	case value >= 9.995:
		return fmt.Sprintf("%.1f%s", value, unit)
	}
	return fmt.Sprintf("%.2f%s", value, unit)
}

// errEmpty reports a distribution without any duration.
var errEmpty = errors.New("latency: nothing was recorded")

// WriteHgrm writes the percentile distribution in the .hgrm form that
// HdrHistogram's plotters read, in microseconds.
//
// Errors: errEmpty, and that of w.
func (s *Summary) WriteHgrm(w io.Writer) error {
	if s.Count() == 0 {
		return errEmpty
	}
	var text strings.Builder // the printer does not report every failed write
	if _, err := s.histogram.PercentilesPrint(&text, 5, 1000); err != nil {
		return fmt.Errorf("latency: write hgrm: %w", err)
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("latency: write hgrm: %w", err)
	}
	return nil
}
