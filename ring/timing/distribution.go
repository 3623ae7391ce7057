package timing

import (
	"math"
	"time"
)

// Bounds are the upper bounds of the classic buckets, in seconds: 1, 5, 20, 100 and 500 us, 2, 10,
// 50 and 200 ms, 1 and 10 s.
var Bounds = [...]float64{1e-6, 5e-6, 20e-6, 100e-6, 500e-6, 2e-3, 10e-3, 50e-3, 200e-3, 1, 10}

// split divides a native bucket at the classic bound that lies in it.
type split struct {
	ns    int64 // the bound; math.MaxInt64: none lies in this bucket
	above int   // the place in Latency.buckets of the durations above it
}

// splits are the divided buckets. There is at most one bound in a bucket: they are further apart
// than an octave.
var splits = func() (s [buckets]split) {
	for at := range s {
		s[at].ns = math.MaxInt64
	}
	for i := range Bounds {
		s[bucketOf(boundNs(i))] = split{boundNs(i), buckets + i}
	}
	return s
}()

// boundNs is a classic bound in nanoseconds.
func boundNs(i int) int64 { return int64(math.Round(Bounds[i] * 1e9)) }

// Distribution is what was counted so far, as a scrape reads it.
type Distribution struct {
	Count uint64
	Sum   float64 // seconds
	// Native has the population of each bucket that is not empty, by its index: bucket i ends at
	// 2^(i/4) seconds.
	Native map[int]int64
	// Classic has, for each of Bounds, how many durations were not longer.
	Classic [len(Bounds)]uint64
}

// Schema is the resolution of Distribution.Native in Prometheus' terms.
const Schema = schema

// Distribution returns what was recorded so far.
func (l *Latency) Distribution() Distribution {
	d := Distribution{Sum: float64(l.sumNs.Load()) / 1e9}
	for at := range buckets {
		d.add(at, l.buckets[at].Load(), splits[at].ns)
		if s := splits[at]; s.above > 0 {
			d.add(at, l.buckets[s.above].Load(), s.ns+1)
		}
	}
	return d
}

// Add counts n more durations of which it is only known that they were not longer than longest.
func (d *Distribution) Add(n uint64, longest time.Duration) {
	d.add(bucketOf(int64(longest)), n, int64(longest))
}

// add counts n more durations, of a native bucket and not longer than ns.
func (d *Distribution) add(at int, n uint64, ns int64) {
	if n == 0 {
		return
	}
	if d.Native == nil {
		d.Native = map[int]int64{}
	}
	d.Native[at+lowest] += int64(n)
	d.Count += n // of the buckets: the sum over Native must equal it
	for i := range Bounds {
		if bucketOf(boundNs(i)) > at || boundNs(i) >= ns {
			d.Classic[i] += n
		}
	}
}
