package perf

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

func TestEveryMicroRowGivesASample(t *testing.T) {
	for _, name := range MicroRows() {
		t.Run(name, func(t *testing.T) {
			s := must.Get(Sample(SampleOptions{Row: name, Dir: t.TempDir(), For: time.Nanosecond}))(t)
			if !(s.Ns > 0) || !(s.Allocs >= 0) {
				t.Errorf("sample %+v", s)
			}
			if name != "journal" && s.Allocs > 0.001 {
				t.Errorf("%v allocations an operation", s.Allocs)
			}
			var text strings.Builder
			must.OK(t, WriteSample(&text, s))
			if got, err := readSample(text.String()); err != nil || got != s {
				t.Errorf("read %+v, %v; written %+v", got, err, s)
			}
		})
	}
}

func TestSampleRefusesWhatItCannotMeasure(t *testing.T) {
	for name, o := range map[string]SampleOptions{
		"no such row: want one of ring, book": {Row: "rung"},
		"burn -1, want 0 to 10":               {Row: "ring", Burn: -1},
		"make work folder":                    {Row: "ring", Dir: filepath.Join(t.TempDir(), "absent")},
	} {
		if _, err := Sample(o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want %q", err, name)
		}
	}
	for _, text := range []string{"", "sample", "sample ns=1\n", "panic: x\n",
		"sample ns=x allocs=1\n"} {
		if s, err := readSample(text); err == nil {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}

// TestLapsKeepTheLeastAndPassErrorsOn adds a lap that allocates, and laps that fail.
func TestLapsKeepTheLeastAndPassErrorsOn(t *testing.T) {
	var kept []*[64]byte
	n := 0
	l := &laps{ops: 4, run: func() error {
		if n++; n != 5 {
			for range 8 {
				kept = append(kept, new([64]byte))
			}
		}
		return nil
	}}
	s, err := l.measure(threadClock, SampleOptions{For: time.Nanosecond})
	if err != nil || s.Allocs >= 2 || n < leastLaps {
		t.Errorf("%+v, %v after %d laps: the lap without allocations does not count", s, err, n)
	}
	cause := errors.New("planted")
	for name, l := range map[string]*laps{
		"ready": {ops: 1, ready: func() error { return cause }},
		"run":   {ops: 1, run: func() error { return cause }},
	} {
		if _, err := l.measure(threadClock, SampleOptions{}); !errors.Is(err, cause) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBurnAsksForTurnsOnlyWhenThereIsSomethingToBurn(t *testing.T) {
	if n := burnFor(threadClock, 0); n != 0 {
		t.Errorf("%d turns for nothing", n)
	}
	if n := burnFor(threadClock, 1e6); n == 0 {
		t.Error("no turns for a millisecond")
	}
}
