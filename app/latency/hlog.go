package latency

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Interval is the distribution of a part of a run.
//
// Its Recorder must have stopped recording.
type Interval struct {
	From, Length time.Duration // since the run's start
	Recorder     *Recorder
}

// WriteHlog writes intervals in the .hlog form that HdrHistogram's tools read: one compressed
// histogram a line, in nanoseconds. tag names the series and has no comma, space or line break.
//
// start is the time of the run's beginning, which the file has in milliseconds. The text is made
// in memory and written at once. Errors: no interval, a bad tag, and that of w. The intervals'
// histograms get the tag and their times.
func WriteHlog(w io.Writer, tag string, start time.Time, intervals []Interval) error {
	if len(intervals) == 0 {
		return errEmpty
	}
	if strings.ContainsAny(tag, ", \r\n") {
		return fmt.Errorf("latency: write hlog tag=%q: a comma, space or line break in it", tag)
	}
	var text strings.Builder // the log writer does not report every failed write
	log := hdrhistogram.NewHistogramLogWriter(&text)
	base := start.UnixMilli()
	log.SetBaseTime(base)
	_ = log.OutputLogFormatVersion() // a write to a strings.Builder never fails
	_ = log.OutputStartTime(base)
	_ = log.OutputBaseTime(base)
	_ = log.OutputLegend()
	for _, i := range intervals {
		h := i.Recorder.histogram
		h.SetTag(tag)
		h.SetStartTimeMs(base + i.From.Milliseconds())
		h.SetEndTimeMs(base + (i.From + i.Length).Milliseconds())
		if err := log.OutputIntervalHistogram(h); err != nil {
			return fmt.Errorf("latency: write hlog tag=%s: %w", tag, err)
		}
	}
	if _, err := io.WriteString(w, text.String()); err != nil {
		return fmt.Errorf("latency: write hlog tag=%s: %w", tag, err)
	}
	return nil
}
