package perf

import (
	"errors"
	"fmt"
	"time"

	"posttrade/perf/load"
)

// curveLoads are the points of a curve in hundredths of the saturation: all tens for constant
// distances, fewer for independent callers. 95 is the last one, because at 100 the queue would not
// stay bounded.
func (r *Run) curveLoads(shape string) []int {
	switch {
	case r.o.Smoke:
		return []int{10, 70, 95}
	case shape == "poisson":
		return []int{10, 30, 50, 70, 90, 95}
	}
	return []int{10, 20, 30, 40, 50, 60, 70, 80, 90, 95}
}

// curveWindow is the number of requests in flight when an engine is saturated. It is large, so that
// the rate is that of full commits, and smaller than an input ring.
const curveWindow = 4096

// measureCurves is latency against rate, from a tenth of each target's saturation up to 95 %: the
// flat p99.9 of the rows P6, P7 and P8. The requests are single orders to an engine in this
// process, over HTTP and over a session, at constant distances and at the distances of as many
// independent callers.
//
// Every time runs from when the request was due. The distributions of each point are written beside
// the results file, whole. The load generator takes a core's time: at high rates "sent-late-us"
// says by how much it was late itself, which is in the latencies.
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

// curveInProcess is the curve of an engine in this process, in mode fsync or os. One goroutine
// sends and spins, as the only caller.
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

// curveHTTP is the curve of a server over 64 keep-alive connections. A request that finds none free
// waits, and the wait counts: at high loads the connections limit the rate, not the server alone.
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

// curve is a target and the other facts that its row needs.
type curve struct {
	// row is that of the performance table, "" for none: then nothing is judged.
	row string
	// name is in the names of all lines of the curve, and in the names of the files.
	name   string
	target load.Target
	// clock is the one that target stamps answers with.
	clock load.Clock
	// window is how many requests are in flight while the saturation is measured.
	window int
	// commits reads the counts of the journal's commits so far; nil: unknown.
	commits func() (commitCounts, error)
}

// How long a point of a curve is measured: all at once, or, where the row judges the flatness of
// the curve, in periods that the loads take in turns. 800 ms at a tenth of saturation over HTTP are
// a few thousand requests, of which p99.9 is the slowest few: fewer would make it the maximum.
const (
	pointTime   = 2 * time.Second
	flatPeriods = 3
	periodTime  = 800 * time.Millisecond
)

// curve measures every point of one target, whose saturation it measures first. A curve whose
// saturation came out too low has all its points too low: the row shows the rate that was asked
// for.
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

// period measures one period of a point and adds it to p. A period without a request is left out.
// Poisson arrivals have the point's percentage as their seed, so that every run asks for the same
// distances.
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

// point writes the result of all periods of a point: rates, percentiles in microseconds, how late
// the generator was at most, and the commits in between.
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
