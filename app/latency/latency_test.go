package latency

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
)

func TestMergeKeepsEveryRecord(t *testing.T) {
	recorders := []*Recorder{NewRecorder(), NewRecorder(), NewRecorder()}
	var all sync.WaitGroup
	for _, r := range recorders {
		all.Go(func() {
			for us := 1; us <= 1000; us++ {
				r.Record(time.Duration(us) * time.Microsecond)
			}
		})
	}
	all.Wait()
	s := Merge(recorders...)
	if s.Count() != 3000 {
		t.Errorf("count %d, want 3000", s.Count())
	}
	for percent, want := range map[float64]time.Duration{50: 500_000, 90: 900_000, 99: 990_000,
		99.9: 999_000} {
		if got := s.At(percent); got < want || got > want+want/500 {
			t.Errorf("p%v is %v, want %v", percent, got, want)
		}
	}
	if got := s.Max(); got < time.Millisecond || got > 1002*time.Microsecond {
		t.Errorf("max %v, want 1ms", got)
	}
}

func TestRecordClampsToTheRange(t *testing.T) {
	r := NewRecorder()
	r.Record(-time.Second)
	r.Record(0)
	r.Record(24 * time.Hour)
	s := Merge(r)
	if s.Count() != 3 {
		t.Errorf("count %d, want 3", s.Count())
	}
	if got := s.At(1); got != 1 {
		t.Errorf("the least is %v, want 1ns", got)
	}
	if got := s.Max(); got < Longest || got > Longest+Longest/500 {
		t.Errorf("max %v, want %v", got, Longest)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	r := NewRecorder()
	if n := testing.AllocsPerRun(1000, func() { r.Record(12345) }); n != 0 {
		t.Errorf("a record allocates %v times, want 0", n)
	}
}

func TestTable(t *testing.T) {
	r := NewRecorder()
	for range 99 {
		r.Record(840)
	}
	r.Record(2100 * time.Millisecond)
	var out strings.Builder
	must.OK(t, WriteTable(&out, []string{"all", "none"}, []*Summary{Merge(r), Merge()}))
	want := "" +
		"  latency  count    p50    p90    p99  p99.9    max\n" +
		"      all    100  840ns  840ns  840ns  2.10s  2.10s\n" +
		"     none      0    0ns    0ns    0ns    0ns    0ns\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if err := WriteTable(&out, []string{"all"}, nil); err == nil {
		t.Error("a name without a row is accepted")
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0ns", 7: "7ns", 999: "999ns", 1000: "1.00us", 12_345: "12.3us", 99_960: "100us",
		999_600: "1.00ms",
		9_996:   "10.0us", 123 * time.Millisecond: "123ms", 2100 * time.Millisecond: "2.10s",
		time.Hour: "3600s",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d is %q, want %q", int64(d), got, want)
		}
	}
}

type brokenWriter struct{}

var errBroken = errors.New("disk is gone")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestHgrm(t *testing.T) {
	r := NewRecorder()
	for i := range 1000 {
		r.Record(time.Duration(i+1) * time.Microsecond)
	}
	var out strings.Builder
	must.OK(t, Merge(r).WriteHgrm(&out))
	for _, want := range []string{"Value", "Percentile", "TotalCount", "1/(1-Percentile)",
		"#[Max     =     1000", "Total count    =         1000"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if err := Merge(r).WriteHgrm(brokenWriter{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v, want %v", err, errBroken)
	}
	if err := Merge().WriteHgrm(&out); !errors.Is(err, errEmpty) {
		t.Errorf("got %v, want %v", err, errEmpty)
	}
}
