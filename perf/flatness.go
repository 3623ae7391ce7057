package perf

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"posttrade/app/latency"
	"posttrade/journal"
	"posttrade/perf/load"
)

// flat is what a row of the table asks of a curve: between a light and a brisk load p99.9 may at
// most double. More would be a queue at a load that should have none.
func flat(row, name string) goal {
	return atMost(row, flatLimit, fmt.Sprintf(
		"%s: highest against lowest p99.9 from %d to %d %%%% of saturation", name, flatFrom, flatTo)).
		unless("too few requests were answered at two points")
}

// curvePoint is one load of a curve and the periods in which it was measured.
type curvePoint struct {
	// percent is the load in hundredths of the saturation, perSecond the rate that this was in this
	// run.
	percent   int // of saturation
	perSecond float64
	// periods are those with requests in them.
	periods []period
}

// period is one uninterrupted measurement of a load.
type period struct {
	begun  time.Time
	result *load.Result
	// commits are those of the journal from just before the period to just after it.
	commits commitCounts
}

// latency is p99.9 of the requests.
func (p period) latency() time.Duration { return p.result.Latency.At(99.9) }

// commitLatency is p99.9 of the commits.
func (p period) commitLatency() time.Duration { return p.commits.at(99.9) }

// lowest is the period with the lowest p99.9 of the requests. A stall of the disk is in one of the
// periods; the effect of the load itself is in all of them. There is at least one period.
//
// Not the median: a period that the disk disturbed twice in three would still count. The figure is
// a floor, so it cannot show a stall that comes rarely; the same over all periods stands beside it.
func (p *curvePoint) lowest() period {
	return slices.MinFunc(p.periods,
		func(a, b period) int { return cmp.Compare(a.latency(), b.latency()) })
}

// together is all periods as one result, as if they had followed each other, with the sum of their
// commits. The periods stay as they are; Behind is the worst of them.
func (p *curvePoint) together() (*load.Result, commitCounts) {
	all, commits := &load.Result{}, commitCounts{}
	var recorders []*latency.Recorder
	for _, period := range p.periods {
		from := all.Took
		all.Requests += period.result.Requests
		all.Took += period.result.Took
		all.Behind = max(all.Behind, period.result.Behind)
		for _, interval := range period.result.Intervals {
			interval.From += from
			all.Intervals = append(all.Intervals, interval)
			recorders = append(recorders, interval.Recorder)
		}
		commits = commits.plus(period.commits)
	}
	all.Latency = latency.Merge(recorders...)
	return all, commits
}

// The flat part of a curve, in hundredths of the saturation, and how much its highest p99.9 may be
// above its lowest. Loads above it are measured and shown, but not judged.
const (
	flatFrom, flatTo = 10, 70
	flatLimit        = 2
)

// flatness states how much p99.9 differs between light and brisk load, each in the lowest of its
// periods. Beside it stand the same figure for the commits in the same periods, for which every
// durable answer waits, and the figure over all periods together.
//
// It judges constant distances only; Poisson arrivals have bursts of their own at every load. Fewer
// than two points with requests state nothing.
func (r *Run) flatness(c curve, shape string, points []*curvePoint) {
	requests, low,
		high := spread(points, func(p *curvePoint) time.Duration { return p.lowest().latency() })
	commits, _, _ := spread(points,
		func(p *curvePoint) time.Duration { return p.lowest().commitLatency() })
	whole, _, _ := spread(points, func(p *curvePoint) time.Duration {
		all, _ := p.together()
		return all.Latency.At(99.9)
	})
	if requests == 0 {
		return
	}
	r.figures(fmt.Sprintf("Curve/op=%s/arrivals=%s/flat=%d-%d", c.name, shape, flatFrom, flatTo),
		metric{requests, "p99.9-highest/lowest"}, metric{float64(low), "%-of-the-lowest"},
		metric{float64(high), "%-of-the-highest"},
		metric{commits, "commit-p99.9-highest/lowest"},
		metric{whole, "p99.9-of-all-periods-highest/lowest"})
	if c.row != "" && shape == "constant" {
		r.judge(flat(c.row, c.name), requests).
			beside("the lowest of %d periods at each load; of all periods %.3g; the commits' own p99.9 in "+
				"the same: %.3g; lowest at %d %%, highest at %d %%",
				flatPeriods, whole, commits, low, high)
	}
}

// spread is the highest value of a figure divided by the lowest in the flat part, and the loads of
// both; 0 when fewer than two points are known. A value of 0 is unknown, as that of a journal
// without counts.
func spread(points []*curvePoint,
	of func(*curvePoint) time.Duration) (ratio float64, low, high int) {
	var least, most time.Duration
	n := 0
	for _, p := range points {
		if p.percent < flatFrom || p.percent > flatTo || len(p.periods) == 0 {
			continue
		}
		v := of(p)
		if v == 0 {
			continue
		}
		n++
		if least == 0 || v < least {
			least, low = v, p.percent
		}
		if v > most {
			most, high = v, p.percent
		}
	}
	if n < 2 {
		return 0, 0, 0
	}
	return most.Seconds() / least.Seconds(), low, high
}

// commitCounts are a journal's commits by how long they took, since the journal was opened, or
// between two readings.
type commitCounts struct {
	// commits is their number, buckets how many fell into each of journal.CommitBuckets and beyond the
	// last.
	commits uint64
	buckets [len(journal.CommitBuckets) + 1]uint64
}

// countsOf are the commits of a journal since it was opened.
func countsOf(m journal.Metrics) commitCounts { return commitCounts{m.Commits, m.CommitCounts} }

// counts are the commits of the curve's target so far.
func (c *curve) counts() (n commitCounts, err error) {
	if c.commits == nil {
		return n, nil
	}
	return c.commits()
}

// since is the difference to an earlier reading of the same journal.
func (c commitCounts) since(before commitCounts) commitCounts {
	c.commits -= before.commits
	for i := range c.buckets {
		c.buckets[i] -= before.buckets[i]
	}
	return c
}

// plus is the sum of both.
func (c commitCounts) plus(d commitCounts) commitCounts {
	c.commits += d.commits
	for i := range c.buckets {
		c.buckets[i] += d.buckets[i]
	}
	return c
}

// at is the time that percent of the commits did not exceed: the upper bound of its bucket, twice
// the last bound when it has none, 0 without commits. It is as coarse as the buckets, so two loads
// with the same bound need not be equal.
func (c commitCounts) at(percent float64) time.Duration {
	want, sum := float64(c.commits)*percent/100, uint64(0)
	for i, n := range c.buckets {
		if sum += n; n > 0 && float64(sum) >= want {
			return commitBound(i)
		}
	}
	return 0
}

// commitBound is a bucket's upper bound.
func commitBound(i int) time.Duration {
	last := len(journal.CommitBuckets) - 1
	if i > last {
		return time.Duration(2 * journal.CommitBuckets[last] * 1e9)
	}
	return time.Duration(journal.CommitBuckets[i] * 1e9)
}

// metrics are the figures of the commits that requests shared: how many requests a commit had on
// average, and upper bounds of the commits' p50 and p99.9 in microseconds.
func (c commitCounts) metrics(requests int) []metric {
	return []metric{
		{float64(requests) / float64(max(c.commits, 1)), "commands/commit"},
		{microseconds(c.at(50)), "commit-p50<=us"}, {microseconds(c.at(99.9)), "commit-p99.9<=us"},
	}
}

// histogram are the figures of every bucket that has commits in it. The unit has the bucket's
// bound, so each bucket is a figure of its own.
func (c commitCounts) histogram() (more []metric) {
	for i, n := range c.buckets {
		if n > 0 {
			more = append(more, metric{float64(n), "commits<=" + commitBound(i).String()})
		}
	}
	return more
}
