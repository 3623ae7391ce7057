package perf

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/ring"
)

// jitterBounds are the gaps that are counted: those of the machine's timer ticks, its exits, its
// scheduler, and its other work. A gap longer than several bounds counts at each of them. A gap up
// to the first bound is the reading of the clock itself.
var (
	jitterBounds = [...]time.Duration{
		time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond,
		10 * time.Millisecond,
	}
	jitterNames = [len(jitterBounds)]string{"1us", "10us", "100us", "1ms", "10ms"}
)

// jitter is the time in which a thread that only reads the clock did not run. It is the floor of
// every latency that a thread of this process can have; no code of this project is in it.
type jitter struct {
	took time.Duration
	// longer counts the gaps longer than each bound.
	longer  [len(jitterBounds)]int
	longest time.Duration
	// lost is the sum of the gaps longer than the first bound.
	lost time.Duration
}

// meter reads now again and again for d. It records every gap longer than the first bound, unless
// gaps is nil. It allocates nothing and never sleeps: it keeps its core busy for d.
func meter(d time.Duration, now func() time.Duration, gaps *latency.Recorder) (j jitter) {
	start := now()
	last := start
	for last-start < d {
		at := now()
		gap := at - last
		last = at
		if gap <= jitterBounds[0] {
			continue
		}
		j.add(gap)
		if gaps != nil {
			gaps.Record(gap)
		}
	}
	j.took = last - start
	return j
}

// add counts a gap. The caller leaves out those up to the first bound.
func (j *jitter) add(gap time.Duration) {
	j.lost += gap
	j.longest = max(j.longest, gap)
	for i, bound := range jitterBounds {
		if gap > bound {
			j.longer[i]++
		}
	}
}

// perSecond is the number of gaps per second that are longer than a bound.
func (j *jitter) perSecond(bound int) float64 { return float64(j.longer[bound]) / j.took.Seconds() }

// metrics are the figures of gaps: how many a second are longer than each bound, the longest in
// microseconds, and the share of the time lost in hundredths. took must not be 0.
func (j *jitter) metrics() (more []metric) {
	for i, name := range jitterNames {
		more = append(more, metric{j.perSecond(i), "gaps>" + name + "/s"})
	}
	return append(more, metric{microseconds(j.longest), "max-us"},
		metric{100 * j.lost.Seconds() / j.took.Seconds(), "lost-%"})
}

// join adds the gaps of another period, which need not follow this one: rates are over both.
func (j *jitter) join(other jitter) {
	j.took += other.took
	j.lost += other.lost
	j.longest = max(j.longest, other.longest)
	for i := range j.longer {
		j.longer[i] += other.longer[i]
	}
}

// String is one line of a results file's header.
func (j jitter) String() string {
	var b strings.Builder
	for i, name := range jitterNames {
		fmt.Fprintf(&b, ">%s %.4g/s ", name, j.perSecond(i))
	}
	fmt.Fprintf(&b, "longest %s lost %.2f %%", latency.Short(j.longest),
		100*j.lost.Seconds()/j.took.Seconds())
	return b.String()
}

// spinOn meters a core with a thread of its own, and waits for it.
func spinOn(cpu int, d time.Duration, gaps *latency.Recorder) jitter {
	result := make(chan jitter)
	go func() {
		// never unlocked: the thread ends with the goroutine, and its pinning with it
		runtime.LockOSThread()
		_ = ring.PinThread(cpu) // refused in a narrower cpuset: then the kernel chooses the core
		start := time.Now()
		result <- meter(d, func() time.Duration { return time.Since(start) }, gaps)
	}()
	return <-result
}

// jitter is the line for the header and the footer: half a second on the last core, a fiftieth of
// that in a smoke run.
func (r *Run) jitter() string {
	return spinOn(runtime.NumCPU()-1, r.duration(500*time.Millisecond), nil).String()
}

// measureJitter is the floor of every latency here: the gaps of a spinning thread on each core,
// three seconds each. No figure is reduced by it; it is only shown, and nothing is judged. On an
// idle machine it misses what the other rows cause themselves, such as the kernel's own work for
// the disk.
func measureJitter(r *Run) error {
	for cpu := range runtime.NumCPU() {
		gaps := latency.NewRecorder()
		j := spinOn(cpu, r.duration(3*time.Second), gaps)
		r.figures(fmt.Sprintf("Jitter/op=spin/cpu=%d", cpu),
			append(j.metrics(), metric{microseconds(latency.Merge(gaps).At(99)), "p99-gap-us"})...)
	}
	return nil
}
