package main

import (
	"math"
	"time"
)

// topLook is one look at a stats file.
type topLook struct {
	image statsImage
	alive bool
	at    time.Time // of the look
}

// age is how old the figures were when they were looked at.
func (l *topLook) age() time.Duration {
	return max(l.at.Sub(time.Unix(0, int64(l.image.Clock.WallNanos))), 0)
}

// topSpan is the time between two looks at the same process. All rates come from
// it, divided by the writer's own clock, so that neither a late reader nor a late
// writer bends them.
type topSpan struct {
	from, to *statsImage
	nanos    float64
}

// spanBetween goes from before to after. With nothing before it, or another
// process's figures, it begins where the process began: rates are then since the
// start.
func spanBetween(before, after *topLook) topSpan {
	s := topSpan{from: &statsImage{}, to: &after.image}
	if before != nil && before.image.Header == after.image.Header {
		s.from = &before.image
	}
	if to, from := s.to.Clock.UptimeNanos, s.from.Clock.UptimeNanos; to > from {
		s.nanos = float64(to - from)
	}
	return s
}

// sinceStart reports that there was no earlier look at this process.
func (s *topSpan) sinceStart() bool { return s.from.Header.PID == 0 }

// of is what a counter has gained. One that a start has set, such as a sequence
// that was recovered, has gained nothing before the first look.
func (s *topSpan) of(counter func(*statsImage) uint64) uint64 {
	to, from := counter(s.to), counter(s.from)
	return to - min(from, to)
}

// rate is what a counter gains in a second; not a number when no time has passed.
func (s *topSpan) rate(counter func(*statsImage) uint64) float64 {
	if s.nanos == 0 {
		return math.NaN()
	}
	return float64(s.of(counter)) / s.nanos * 1e9
}

// mean is the mean of what was seen at each look of the process.
func (s *topSpan) mean(sum func(*statsImage) uint64) float64 {
	return ratio(s.of(sum), s.of(func(i *statsImage) uint64 { return i.Path.Looks }))
}

// wait is how long a command was in a stage in the mean: how many were in it, by
// how many left it in a second.
func (s *topSpan) wait(stage int) time.Duration {
	if s.sinceStart() {
		return none // what was recovered did not pass the stage
	}
	in := s.mean(func(i *statsImage) uint64 { return i.Path.Stages[stage].BehindSum })
	out := s.rate(func(i *statsImage) uint64 { return i.Path.Stages[stage].Sequence })
	if math.IsNaN(in) || math.IsNaN(out) || out == 0 {
		return none
	}
	return time.Duration(in / out * 1e9)
}

// ratio is a by b, and not a number by none.
func ratio(a, b uint64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return float64(a) / float64(b)
}

// none is a duration of which nothing is known; unbounded one beyond the last bound.
const (
	none      = time.Duration(-1)
	unbounded = time.Duration(math.MaxInt64)
)

// quantile is the upper bound of the bucket in which the share q of what came
// between from and to ends, none when nothing came.
func quantile(q float64, from, to []uint64, bound func(bucket int) time.Duration) time.Duration {
	var total uint64
	for i := range to {
		total += to[i] - min(from[i], to[i])
	}
	if total == 0 {
		return none
	}
	rank, seen := uint64(math.Ceil(q*float64(total))), uint64(0)
	for i := range to {
		if seen += to[i] - min(from[i], to[i]); seen >= max(rank, 1) {
			return bound(i)
		}
	}
	return unbounded
}

// quantileOf is quantile of a statsDistribution of the image.
func (s *topSpan) quantileOf(q float64, of func(*statsImage) *statsDistribution) time.Duration {
	return quantile(q, of(s.from)[:], of(s.to)[:], statsBound)
}

// commitQuantile is quantile of the journal's commits, whose bounds are in the file.
func (s *topSpan) commitQuantile(q float64) time.Duration {
	c := &s.to.Commits
	return quantile(q, s.from.Commits.Buckets[:], c.Buckets[:], func(bucket int) time.Duration {
		if bucket == len(c.Bounds) {
			return unbounded
		}
		return time.Duration(c.Bounds[bucket])
	})
}
