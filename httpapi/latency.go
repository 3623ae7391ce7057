//perf:hot

package httpapi

import (
	"math"
	"sync/atomic"
)

// Latency counts durations in native-histogram buckets: four to an octave (schema 2), from about a
// nanosecond to about 17 minutes. Any goroutine records; a scrape reads.
type Latency struct {
	sumNs   atomic.Uint64
	buckets [latencyBuckets]atomic.Uint64
}

const (
	latencySchema  = 2
	latencyOctaves = 40
	latencyBuckets = latencyOctaves << latencySchema
	latencyLowest  = -30 << latencySchema // bucket index of about a nanosecond
)

// latencyBounds are the upper bounds of a bucket within an octave of [0.5, 1).
var latencyBounds = [1 << latencySchema]float64{0.5, 0.5946035575013605, 0.7071067811865475,
	0.8408964152537144}

// Record counts one duration in nanoseconds.
func (l *Latency) Record(ns int64) {
	if ns < 1 {
		ns = 1
	}
	fraction, exponent := math.Frexp(float64(ns) * 1e-9)
	at := 0
	for at < len(latencyBounds) && latencyBounds[at] < fraction {
		at++
	}
	at += (exponent-1)<<latencySchema - latencyLowest
	l.buckets[min(max(at, 0), latencyBuckets-1)].Add(1)
	l.sumNs.Add(uint64(ns))
}
