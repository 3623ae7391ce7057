//perf:hot

package timing

import (
	"math"
	"sync/atomic"
)

// Latency counts durations in native-histogram buckets: four to an octave (schema 2), from about a
// nanosecond to about 17 minutes. Any goroutine records; a scrape reads.
type Latency struct {
	sumNs   atomic.Uint64
	buckets [buckets + len(Bounds)]atomic.Uint64 // the last ones: see splits
}

const (
	schema  = 2
	octaves = 40
	buckets = octaves << schema
	lowest  = -30 << schema // native index of the first bucket, of about a nanosecond
)

// octave are the upper bounds of a bucket within an octave of [0.5, 1).
var octave = [1 << schema]float64{0.5, 0.5946035575013605, 0.7071067811865475, 0.8408964152537144}

// Record counts one duration in nanoseconds.
func (l *Latency) Record(ns int64) {
	at := bucketOf(ns)
	if s := &splits[at]; ns > s.ns {
		at = s.above
	}
	l.buckets[at].Add(1)
	l.sumNs.Add(uint64(max(ns, 1)))
}

// bucketOf is the native bucket of a duration, from 0.
func bucketOf(ns int64) int {
	fraction, exponent := math.Frexp(float64(max(ns, 1)) * 1e-9)
	at := 0
	for at < len(octave) && octave[at] < fraction {
		at++
	}
	at += (exponent-1)<<schema - lowest
	return min(max(at, 0), buckets-1)
}
