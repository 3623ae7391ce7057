package top

import (
	"math"
	"time"

	"posttrade/app/stats"
)

// statsReading is one reading of a stats file. It is not changed after Screen.read.
type statsReading struct {
	image stats.Image
	// The writer held its lock at the reading.
	alive bool
	at    time.Time // of the reading
}

// age is how old the figures were at the time of the reading.
//
// The clocks of both processes are that of one machine. A clock that was set back gives 0, not
// less.
func (l *statsReading) age() time.Duration {
	return max(l.at.Sub(time.Unix(0, int64(l.image.Clock.WallNanos))), 0)
}

// span is the time between two readings of the same process. All rates come from it. They are
// divided by the writer's own clock, so that neither a late reader nor a late writer distorts them.
//
// It is made for one frame and points into the two readings.
type span struct {
	// from is an image of zeros when the span begins with the process.
	from, to *stats.Image
	// The time of the span by the writer's clock; 0 when the writer has not looked in between.
	nanos float64
}

// spanBetween goes from before to after. When there is no reading before, or one at another
// process, the span begins with the process, and rates are those since the start.
//
// Equal Headers stand for one life of one process: process id and time of the start are in it.
func spanBetween(before, after *statsReading) span {
	s := span{from: &stats.Image{}, to: &after.image}
	if before != nil && before.image.Header == after.image.Header {
		s.from = &before.image
	}
	if to, from := s.to.Clock.UptimeNanos, s.from.Clock.UptimeNanos; to > from {
		s.nanos = float64(to - from)
	}
	return s
}

// sinceStart reports that there was no earlier reading of this process.
func (s *span) sinceStart() bool { return s.from.Header.PID == 0 }

// of is what a counter has gained. A counter that the start has set, such as a recovered sequence,
// has gained nothing before the first reading.
//
// counter picks a word of an image. A counter that has fallen has gained nothing.
func (s *span) of(counter func(*stats.Image) uint64) uint64 {
	to, from := counter(s.to), counter(s.from)
	return to - min(from, to)
}

// rate is what a counter gains in a second; NaN when no time has passed.
func (s *span) rate(counter func(*stats.Image) uint64) float64 {
	if s.nanos == 0 {
		return math.NaN()
	}
	return float64(s.of(counter)) / s.nanos * 1e9
}

// mean is the mean of a sum over the readings of the process.
//
// sum is one that grows at each look of the writer, such as Ring.DepthSum. NaN: there was no look.
func (s *span) mean(sum func(*stats.Image) uint64) float64 {
	return ratio(s.of(sum), s.of(func(i *stats.Image) uint64 { return i.Path.Looks }))
}

// wait is how long a command was in a stage on average: the number of commands in it, divided by
// the number that left it in a second.
//
// It is Little's law. stats.None stands for a wait that is not known: nothing left the stage, or
// there is no earlier reading.
func (s *span) wait(stage int) time.Duration {
	if s.sinceStart() {
		return stats.None // recovered commands did not pass the stage
	}
	in := s.mean(func(i *stats.Image) uint64 { return i.Path.Stages[stage].BehindSum })
	out := s.rate(func(i *stats.Image) uint64 { return i.Path.Stages[stage].Sequence })
	if math.IsNaN(in) || math.IsNaN(out) || out == 0 {
		return stats.None
	}
	return time.Duration(in / out * 1e9)
}

// ratio is a divided by b, NaN when b is 0.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// quantile is the upper bound of the bucket that has the quantile q of what came between from and
// to; None when nothing came.
//
// q is above 0 to 1; from and to have the same length. The result is too long by at most a
// bucket's width. The cost is two passes over the buckets.
func quantile(q float64, from, to []uint64, bound func(bucket int) time.Duration) time.Duration {
	var total uint64
	for i := range to {
		total += to[i] - min(from[i], to[i])
	}
	if total == 0 {
		return stats.None
	}
	rank, seen := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i := range to {
		if seen += to[i] - min(from[i], to[i]); seen >= max(rank, 1) {
			return bound(i)
		}
	}
	return stats.Unbounded
}

// quantileOf is quantile of a Distribution of the image.
func (s *span) quantileOf(q float64, of func(*stats.Image) *stats.Distribution) time.Duration {
	return quantile(q, of(s.from)[:], of(s.to)[:], stats.Bound)
}

// commitQuantile is quantile of the journal's commits; the file has their bounds.
func (s *span) commitQuantile(q float64) time.Duration {
	c := &s.to.Commits
	return quantile(q, s.from.Commits.Buckets[:], c.Buckets[:], func(bucket int) time.Duration {
		if bucket == len(c.Bounds) {
			return stats.Unbounded
		}
		return time.Duration(c.Bounds[bucket])
	})
}
