package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/perf/load"
)

// What the row asks for: the longest gap of the matcher's thread may be twice that of a thread that
// does nothing, in the same period on the same machine.
var longestPause = atMost("pause", pauseLimit,
	"longest pause of the matcher's thread in %v against a bare thread's longest gap").
	as("longest pause of the matcher's thread against a bare thread's longest gap")

// defaultPause is how long the matcher's thread is observed. A longer run meets rarer events and
// has a longer longest gap, so only runs of one length compare.
const defaultPause = 20 * time.Second

// pauseRate is the rate of the flow meanwhile: orders come all the time, but never so many that
// deciding them takes long.
const pauseRate = 20_000

// pauseLimit is the greatest allowed ratio of the matcher's longest gap to a bare thread's longest
// gap in the same period. What the machine does to any thread is in both.
const pauseLimit = 2

// measurePause is the matcher's longest pause while orders come, by cause, beside the gaps of a
// thread in the same process that only reads the clock.
//
// The load is single orders at 20,000 a second to a whole engine in mode fsync, whose matcher's
// stage is replaced by a loop that reads the clock in every turn (watchedLoop). A gap is the time
// between two turns, work included. Sleeping because there is nothing to decide is no gap.
//
// The figures are microseconds. The bare thread runs for a tenth of the time, so it meets fewer
// rare events than the matcher: the ratio is rather too high. It lies when the machine stands still
// in one of the bare thread's windows only; a reader sees that in both longest gaps.
func measurePause(r *Run) (err error) {
	e, loop, err := r.openWatched(engineOptions{folder: "pause", durability: "fsync",
		genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	arrivals, err := load.Constant(pauseRate)
	if err != nil {
		return err
	}
	d := defaultPause
	if r.o.Smoke {
		d = time.Second
	}
	d = cmp.Or(r.o.Pause, d)
	for loop.thread.Load() == 0 {
		runtime.Gosched() // until the loop has started
	}
	s := beginPauses(int(loop.thread.Load()))
	ctx, cancel := context.WithCancel(context.Background())
	bare := make(chan jitter, 1)
	go func() { bare <- bareThread(ctx) }()
	followed := make(chan struct{})
	go func() { s.follow(ctx); close(followed) }()
	clock := load.NewClock()
	result, err := load.Run(newEngineTarget(e, clock), load.Options{Arrivals: arrivals, For: d,
		Clock: clock})
	cancel()
	beside := <-bare
	<-followed
	if err != nil {
		return err
	}
	s.end()
	if err := e.stop(); err != nil {
		return err
	}
	r.pauseFigures(s, loop.gaps, beside, result)
	return nil
}

// The bare thread reads the clock for a tenth of the time. All of the time would take a core away
// from the engine.
const (
	bareWindow = 10 * time.Millisecond
	bareEvery  = 100 * time.Millisecond
)

// bareThread meters a thread that may run on any core, in windows, until ctx ends. It meters one
// window at least. Its goroutine keeps its thread, which ends with it.
func bareThread(ctx context.Context) (all jitter) {
	runtime.LockOSThread() // never unlocked
	tick := time.NewTicker(bareEvery)
	defer tick.Stop()
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	for {
		all.join(meter(bareWindow, now, nil))
		select {
		case <-ctx.Done():
			return all
		case <-tick.C:
		}
	}
}

// pauseSources are the other facts about a period: the collector's stops, the time the thread
// waited for a core, and the time that the hypervisor gave to other machines. begin and end are
// readings of counters; follow collects in between what the runtime would forget.
type pauseSources struct {
	// thread is the kernel's number of the matcher's thread.
	thread int
	// delay is the time that the thread was ready to run and did not; before end, the reading at the
	// start.
	delay time.Duration
	// stolen is the reading of the machine's ticks at the start.
	stolen ticks
	// gc has the last stop of each of the collector's cycles. follow writes it; others read it when
	// follow has returned.
	gc []gcPause
	// pauses is the runtime's histogram of the collector's stops, as it was at the start.
	pauses *metrics.Float64Histogram
	// share is the stolen share of the period, as text.
	share string
	// longest is a lower bound of the longest stop: the lower end of its bucket.
	longest time.Duration
	// stops is the number of stops in the period.
	stops uint64
}

// gcPause is a stop of the world by the collector, the last one of its cycle.
type gcPause struct {
	end  time.Time
	took time.Duration
}

// pauseMetric counts every stop of the world for the collector by its length, in seconds.
const pauseMetric = "/sched/pauses/total/gc:seconds"

// beginPauses reads all counters, just before the load begins.
func beginPauses(thread int) *pauseSources {
	return &pauseSources{thread: thread, delay: runDelay(thread), stolen: host{"/"}.ticks(),
		pauses: readPauses()}
}

// readPauses reads the runtime's histogram of the collector's stops. The runtime counts on; the
// reading is a copy.
func readPauses() *metrics.Float64Histogram {
	sample := []metrics.Sample{{Name: pauseMetric}}
	metrics.Read(sample)
	return sample[0].Value.Float64Histogram()
}

// follow collects the collector's pauses once a second until ctx ends, and once more then; the
// runtime keeps only the latest ones.
func (s *pauseSources) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s.collect()
		select {
		case <-ctx.Done():
			s.collect()
			return
		case <-tick.C:
		}
	}
}

// collect adds the pauses that are not known yet, by the moment of their end.
func (s *pauseSources) collect() {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	for i := range stats.Pause {
		p := gcPause{stats.PauseEnd[i], stats.Pause[i]}
		if !slices.ContainsFunc(s.gc, func(known gcPause) bool { return known.end.Equal(p.end) }) {
			s.gc = append(s.gc, p)
		}
	}
}

// end computes the differences. The thread must still exist.
func (s *pauseSources) end() {
	s.delay = runDelay(s.thread) - s.delay
	s.share = host{"/"}.ticks().stolenSince(s.stolen)
	now := readPauses()
	for i, n := range now.Counts {
		if n -= s.pauses.Counts[i]; n > 0 {
			s.stops += n
			s.longest = time.Duration(max(now.Buckets[i], 0) * 1e9)
		}
	}
}

// runDelay is how long a thread has waited for a core so far, 0 where the kernel does not report
// it.
//
// It is the second number of the thread's schedstat, in nanoseconds.
func runDelay(thread int) time.Duration {
	words := strings.Fields(firstLine(fmt.Sprintf("/proc/self/task/%d/schedstat", thread)))
	if len(words) < 2 {
		return 0
	}
	ns, err := strconv.ParseInt(words[1], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(ns)
}

// pauseFigures states and judges: the orders' latency, the bare thread's gaps, the matcher's, and
// those of each cause that was met. Shorter gaps than kept have no cause: the line says how long
// those are.
func (r *Run) pauseFigures(s *pauseSources, l *gapLog, bare jitter, result *load.Result) {
	r.figures("Pause/op=orders",
		append(distribution(result.Latency), metric{result.PerSecond(), "requests/s"})...)
	r.figures("Pause/op=bare-thread", bare.metrics()...)
	r.figures("Pause/op=matcher", append(l.all.metrics(),
		metric{1e3 * s.delay.Seconds() / l.all.took.Seconds(), "waited-for-a-core-ms/s"},
		metric{float64(s.stops), "stops-of-the-world"},
		metric{microseconds(s.longest), "longest-stop-us"},
		metric{microseconds(l.kept), "causes-of-gaps>us"}, metric{float64(l.lost), "shorter-gaps"})...)
	causes := l.byCause(s.gc)
	for _, cause := range pauseCauses {
		if j, met := causes[cause]; met {
			r.figures("Pause/op=matcher/cause="+cause, metric{j.perSecond(0), "gaps/s"},
				metric{microseconds(j.longest), "max-us"},
				metric{100 * j.lost.Seconds() / j.took.Seconds(), "lost-%"})
		}
	}
	r.note("pause: stolen from the machine meanwhile: " + s.share)
	r.judge(longestPause, l.all.longest.Seconds()/bare.longest.Seconds(),
		l.all.took.Round(time.Second)).beside("bare thread %.4g us",
		microseconds(bare.longest))
}
