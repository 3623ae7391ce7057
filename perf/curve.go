package perf

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/load"
)

// curveLoads are the points of a curve in hundredths of the saturation: all tens for constant
// distances, fewer for independent callers.
func (r *Run) curveLoads(shape string) []int {
	switch {
	case r.o.Smoke:
		return []int{10, 70, 95}
	case shape == "poisson":
		return []int{10, 30, 50, 70, 90, 95}
	}
	return []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 95}
}

// curveWindow is the number of requests in flight when an engine is saturated.
const curveWindow = 4096

// measureCurves is latency against rate, from a tenth of each target's saturation up to 95 %. The
// requests are single orders to an engine in this process and over HTTP, at constant distances and
// at the distances of as many independent callers.
func measureCurves(r *Run) error {
	for _, durability := range []string{"fsync", "os"} {
		if err := r.curveInProcess(durability); err != nil {
			return err
		}
		if err := r.curveHTTP(durability); err != nil {
			return err
		}
		if err := r.curveSession(durability); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) curveInProcess(durability string) (err error) {
	e, err := r.open(engineOptions{folder: "curve-" + durability, durability: durability,
		genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	clock := load.NewBusyClock()
	c := curve{row: "P6", name: "in-process/durability=" + durability,
		target: newEngineTarget(e, clock), clock: clock, window: curveWindow}
	c.commits = func() (commitCounts, error) { return countsOf(e.Journal.Metrics()), nil }
	return r.curve(c)
}

func (r *Run) curveHTTP(durability string) (err error) {
	s, err := r.startServer("curve-http-"+durability,
		append([]string{"--journal.durability=" + durability}, wideFlags...)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	clock := load.NewClock()
	t, err := newHTTPTarget(httpLoad{addr: s.addr, connections: httpConnections, status: 201,
		request: orderRequest}, clock)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	return r.curve(curve{row: "P8", name: "http/durability=" + durability,
		target: &renumbered{target: t}, clock: clock, window: httpConnections, commits: s.commits})
}

// renumbered gives every request of several runs a number of its own, so that no client order id is
// used twice.
type renumbered struct {
	target load.Target
	base   int // of the current run
	next   int
}

func (r *renumbered) Send(n int) (bool, error) {
	if n == 0 {
		r.base = r.next
	}
	ok, err := r.target.Send(r.base + n)
	if ok {
		r.next = r.base + n + 1
	}
	return ok, err
}

func (r *renumbered) Poll(answered func(n int, at time.Duration)) error {
	return r.target.Poll(func(n int, at time.Duration) { answered(n-r.base, at) })
}

// curve is a target and the other facts that its row needs.
type curve struct {
	row     string // of the performance table, "" for none
	name    string
	target  load.Target
	clock   load.Clock
	window  int
	commits func() (commitCounts, error) // of the journal so far; nil: unknown
}

// How long a point of a curve is measured: all at once, or, where the row judges the flatness of
// the curve, in periods that the loads take in turns.
const (
	pointTime   = 2 * time.Second
	flatPeriods = 3
	periodTime  = 800 * time.Millisecond
)

// curve measures every point of one target.
func (r *Run) curve(c curve) error {
	saturation, err := load.Saturate(c.target, c.window, r.duration(3*time.Second), c.clock)
	if err != nil {
		return err
	}
	r.figures("Curve/op="+c.name+"/load=saturated", metric{saturation, "requests/s"})
	for _, shape := range []string{"constant", "poisson"} {
		points, err := r.curvePoints(c, shape, saturation)
		if err != nil {
			return err
		}
		for _, p := range points {
			if err := r.point(c, shape, p); err != nil {
				return err
			}
		}
		r.flatness(c, shape, points)
	}
	return nil
}

// curvePoints measures the loads of one shape. The loads of the flat part, at constant distances,
// take turns from the lightest on, so that a disturbance by the disk or a neighbour affects them
// all.
func (r *Run) curvePoints(c curve, shape string, saturation float64) ([]*curvePoint, error) {
	var points []*curvePoint
	for _, percent := range r.curveLoads(shape) {
		points = append(points,
			&curvePoint{percent: percent, perSecond: saturation * float64(percent) / 100})
	}
	for n := range flatPeriods {
		for _, p := range points {
			d := periodTime
			if flat := shape == "constant" && p.percent >= flatFrom && p.percent <= flatTo; !flat {
				d = pointTime
				if n > 0 {
					continue
				}
			}
			if err := r.period(c, shape, p, r.duration(d)); err != nil {
				return nil, fmt.Errorf("%s %s %d %%: %w", c.name, shape, p.percent, err)
			}
		}
	}
	return points, nil
}

// period measures one period of a point.
func (r *Run) period(c curve, shape string, p *curvePoint, d time.Duration) error {
	arrivals, err := load.Constant(p.perSecond)
	if shape == "poisson" {
		arrivals, err = load.Poisson(p.perSecond, uint64(p.percent))
	}
	if err != nil {
		return err
	}
	before, err := c.counts()
	if err != nil {
		return err
	}
	begun := time.Now()
	result, err := load.Run(c.target, load.Options{Arrivals: arrivals, For: d, Clock: c.clock})
	if err != nil || result.Requests == 0 {
		return err // a smoke run of a slow target may be too short for one request
	}
	after, err := c.counts()
	if err != nil {
		return err
	}
	p.periods = append(p.periods, period{begun, result, after.since(before)})
	return nil
}

// point writes the result of all periods of a point.
func (r *Run) point(c curve, shape string, p *curvePoint) error {
	if len(p.periods) == 0 {
		return nil
	}
	all, commits := p.together()
	more := append([]metric{{p.perSecond, "asked/s"}, {all.PerSecond(), "requests/s"}},
		distribution(all.Latency)...)
	more = append(more, metric{microseconds(all.Behind), "sent-late-us"})
	if c.commits != nil {
		more = append(more, commits.metrics(all.Requests)...)
	}
	if n := len(p.periods); n > 1 {
		more = append(more, metric{float64(n), "periods"}, metric{microseconds(p.lowest().latency()),
			"lowest-p99.9-us"})
	}
	name := fmt.Sprintf("Curve/op=%s/arrivals=%s/load=%d", c.name, shape, p.percent)
	r.figures(name, more...)
	return r.histograms(name, p.periods[0].begun, all)
}

// distribution are the figures of a latency.
func distribution(s *latency.Summary) (more []metric) {
	for _, p := range []float64{50, 90, 99, 99.9} {
		more = append(more, metric{microseconds(s.At(p)), "p" + strconv.FormatFloat(p, 'g', -1, 64) +
			"-us"})
	}
	return append(more, metric{microseconds(s.Max()), "max-us"})
}

// microseconds is a duration in the unit of the figures.
func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// histograms writes a run's distribution beside the results file, in the two forms that
// HdrHistogram's tools read: <results without .txt>/<name>.hgrm and .hlog.
func (r *Run) histograms(name string, begun time.Time, result *load.Result) error {
	folder := strings.TrimSuffix(r.outFile(), ".txt")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("make histogram folder: %w", err)
	}
	tag := strings.NewReplacer("/", ".", "=", "-").Replace(name)
	file := filepath.Join(folder, tag)
	return errors.Join(
		writeWith(file+".hgrm", result.Latency.WriteHgrm),
		writeWith(file+".hlog",
			func(w io.Writer) error { return latency.WriteHlog(w, tag, begun, result.Intervals) }),
	)
}

// writeWith creates a file and lets write fill it.
func writeWith(name string, write func(io.Writer) error) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return write(file)
}
