package installation

import (
	"posttrade/app/stats"
	"posttrade/matcher/session"
	"posttrade/ring/timing"
)

// distributionOf is Times as a histogram. A bucket of Times is an octave wide; its count goes into
// the bucket that holds its upper bound. The sum, and so a mean, takes each command for the middle
// of its bucket.
func distributionOf(times session.Times) (d timing.Distribution) {
	for b, n := range times {
		d.Add(n, stats.SessionBound(b))
		d.Sum += float64(n) * stats.SessionMiddle(b).Seconds()
	}
	return d
}
