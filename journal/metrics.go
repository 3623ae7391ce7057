package journal

import (
	"sync/atomic"
	"time"

	"posttrade/ring/timing"
)

// CommitBuckets are the upper bounds of Metrics.CommitCounts, in seconds. The last bucket has no
// bound.
var CommitBuckets = [...]float64{
	0.00005, 0.0001, 0.00015, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005,
	0.0075, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5,
}

// counters are written by the committer, or the log's writers, and read by any goroutine.
type counters struct {
	commits atomic.Uint64
	bytes   atomic.Uint64
	// Sum and maximum of the times of commits, in nanoseconds.
	nanos   atomic.Uint64
	maxNs   atomic.Int64
	buckets [len(CommitBuckets) + 1]atomic.Uint64
	times   timing.Latency
}

// committed counts a group of commands that has become durable, and the time that it took. The
// committer and the writers of a log call it at the same time; it takes no lock.
func (c *counters) committed(took time.Duration) {
	c.commits.Add(1)
	c.nanos.Add(uint64(took))
	for was := c.maxNs.Load(); int64(took) > was && !c.maxNs.CompareAndSwap(was, int64(took)); {
		was = c.maxNs.Load()
	}
	c.times.Record(int64(took))
	s, i := took.Seconds(), 0
	for i < len(CommitBuckets) && s > CommitBuckets[i] {
		i++
	}
	c.buckets[i].Add(1)
}

// Metrics is a reading of the journal's counters, of approximately one moment: each number is read
// by itself.
type Metrics struct {
	Applied, Durable uint64
	Commits          uint64 // of the store or, in "fsync" mode with a tail, of the tail
	CommitBytes      uint64 // packed bytes handed to the store
	CommitSeconds    float64
	MaxCommit        time.Duration
	CommitCounts     [len(CommitBuckets) + 1]uint64 // per bucket, not cumulative
	InFlight         int64
	StorageFull      bool
	Poisoned         bool
}

// Metrics reads the counters. Any goroutine; no lock, no allocation.
func (j *Journal) Metrics() Metrics {
	c := &j.metrics
	m := Metrics{
		Applied: j.Applied(), Durable: j.Durable(),
		Commits: c.commits.Load(), CommitBytes: c.bytes.Load(),
		CommitSeconds: time.Duration(c.nanos.Load()).Seconds(), MaxCommit: time.Duration(c.maxNs.Load()),
		InFlight: j.inFlight.Load(), StorageFull: j.full.Load(), Poisoned: j.latch.Err() != nil,
	}
	for i := range c.buckets {
		m.CommitCounts[i] = c.buckets[i].Load()
	}
	return m
}

// CommitTimes is the time from a block's append, or from a frame's, to its durability. Any
// goroutine.
func (j *Journal) CommitTimes() timing.Distribution { return j.metrics.times.Distribution() }
