package timing

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestNativeBucketsHoldWhatTheySay checks the bounds of every bucket index.
func TestNativeBucketsHoldWhatTheySay(t *testing.T) {
	for _, ns := range []int64{-5, 0, 1, 2, 3, 999, 1000, 1001, 12_345, 1 << 20, 1e9, 1e9 + 1, 60e9,
		1e12, math.MaxInt64} {
		var l Latency
		l.Record(ns)
		d := l.Distribution()
		if d.Count != 1 || len(d.Native) != 1 {
			t.Fatalf("%d ns: %+v", ns, d)
		}
		for i := range d.Native {
			seconds := float64(max(ns, 1)) / 1e9
			upper, lower := math.Exp2(float64(i)/4), math.Exp2(float64(i-1)/4)
			if inside := seconds > lower*(1-1e-12) && seconds <= upper*(1+1e-12); !inside &&
				ns < 1e12 && ns > 1 {
				t.Errorf("%d ns is in bucket %d, (%g, %g] s", ns, i, lower, upper)
			}
		}
	}
}

// TestClassicBucketsAreExact compares with a count of the durations themselves: at each bound, one
// nanosecond beside it, and between.
func TestClassicBucketsAreExact(t *testing.T) {
	const seed = 17
	random := rand.New(rand.NewPCG(seed, seed))
	durations := []int64{0, 1, math.MaxInt64, int64(time.Hour)}
	for i := range Bounds {
		durations = append(durations, boundNs(i)-1, boundNs(i), boundNs(i)+1)
	}
	for range 5000 {
		durations = append(durations, int64(math.Exp(random.Float64()*25)))
	}
	var l Latency
	var want [len(Bounds)]uint64
	for _, ns := range durations {
		l.Record(ns)
		for i := range Bounds {
			if ns <= boundNs(i) {
				want[i]++
			}
		}
	}
	d := l.Distribution()
	if d.Classic != want || d.Count != uint64(len(durations)) {
		t.Errorf("seed %d: of %d counted %d\n%v, want\n%v", seed, len(durations), d.Count, d.Classic,
			want)
	}
	var native int64
	for _, n := range d.Native {
		native += n
	}
	if native != int64(d.Count) {
		t.Errorf("%d in native buckets, %d counted", native, d.Count)
	}
}

// TestBoundsAreElevenFromAMicrosecondToTenSeconds, each in a native bucket of its own.
func TestBoundsAreElevenFromAMicrosecondToTenSeconds(t *testing.T) {
	if len(Bounds) != 11 || Bounds[0] != 1e-6 || Bounds[10] != 10 {
		t.Errorf("%v", Bounds)
	}
	divided := 0
	for _, s := range splits {
		if s.above > 0 {
			divided++
		}
	}
	if divided != len(Bounds) {
		t.Errorf("%d buckets are divided, want %d", divided, len(Bounds))
	}
}

// TestAddedCountsAreNeverBelowTheirTime: what is only known to an upper bound counts as that long.
func TestAddedCountsAreNeverBelowTheirTime(t *testing.T) {
	var d Distribution
	d.Add(0, time.Second)
	d.Add(3, time.Microsecond)
	d.Add(4, 1024)
	d.Add(5, math.MaxInt64)
	want := [len(Bounds)]uint64{3, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}
	if d.Classic != want || d.Count != 12 || len(d.Native) != 2 {
		t.Errorf("%+v", d)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	var l Latency
	if n := testing.AllocsPerRun(100, func() { l.Record(1234) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	var l Latency
	for b.Loop() {
		l.Record(12_345)
	}
}
