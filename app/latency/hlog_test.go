package latency

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"posttrade/ring/must"
)

func TestHlogIsReadBack(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	intervals := []Interval{
		{From: 0, Length: time.Second, Recorder: NewRecorder()},
		{From: time.Second, Length: time.Second, Recorder: NewRecorder()},
	}
	for i, n := range []int{10, 1000} {
		for range n {
			intervals[i].Recorder.Record(time.Duration(i+1) * time.Millisecond)
		}
	}
	var out strings.Builder
	must.OK(t, WriteHlog(&out, "half-load", start, intervals))
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(out.String()))
	for i, n := range []int64{10, 1000} {
		h, err := reader.NextIntervalHistogram()
		if err != nil || h == nil {
			t.Fatalf("interval %d: %v, %v\n%s", i, h, err, out.String())
		}
		if h.TotalCount() != n || h.Tag() != "half-load" || h.EndTimeMs()-h.StartTimeMs() != 1000 {
			t.Errorf("interval %d: %d values, tag %q, %d to %d", i, h.TotalCount(), h.Tag(), h.StartTimeMs(),
				h.EndTimeMs())
		}
		if got, want := h.ValueAtPercentile(50), int64(i+1)*1e6; got < want || got > want+want/500 {
			t.Errorf("interval %d: p50 %d, want %d", i, got, want)
		}
	}
}

func TestHlogThatCannotBeWrittenIsAnError(t *testing.T) {
	one := []Interval{{Length: time.Second, Recorder: NewRecorder()}}
	if err := WriteHlog(brokenWriter{}, "a", time.Now(), one); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if err := WriteHlog(&strings.Builder{}, "a", time.Now(), nil); !errors.Is(err, errEmpty) {
		t.Errorf("got %v", err)
	}
	for _, tag := range []string{"a,b", "a b", "a\nb", ","} {
		if err := WriteHlog(&strings.Builder{}, tag, time.Now(), one); err == nil {
			t.Errorf("tag %q", tag)
		}
	}
}
