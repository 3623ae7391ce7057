package perf

import (
	"errors"
	"fmt"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/load"
)

// What the row asks for: see besideLimit.
var (
	besideAll  = atMost("P13", besideLimit, "p99 with everything running against the engine alone")
	besideLock = atMost("P13", besideLimit,
		"the same while another session holds the database's write lock")
)

// The work beside the engine of row P13, as it stands in the names of the lines: nothing; a whole
// installation with a report that is made again and again; the same with the database's write lock
// held by another session, so that everything that writes to the database must wait.
const (
	besideNothing    = "nothing"
	besideEverything = "everything"
	besideLocked     = "everything-sql-held"
)

// everythingWarming is how long a row's engine takes orders before they are measured, so that the
// row does not measure a new journal and services that have just started.
const everythingWarming = 500 * time.Millisecond

// measureEverything is row P13: the latency of the engine alone, then with projection,
// reconciliation, settlement, feeds and a report running beside it, then with the database locked
// as well. The three take turns at one rate.
//
// The load is single orders in mode fsync at a tenth of this run's saturation. Each turn has an
// engine of its own with an empty journal, so that the tables beside it are small: it is not the
// cost of a day's history. The database is the one of the run's settings, by default SQLite in the
// data folder. The listeners of HTTP are open and get nothing. The figures are ratios of p99; in
// microseconds they are in the lines of each round, with the number of trades that SQL has at the
// end of it: the work that the orders had beside them.
func measureEverything(r *Run) error {
	rate, err := r.saturate("fsync")
	if err != nil {
		return err
	}
	p99 := map[string][]time.Duration{}
	var turns []func(round int) error
	for _, beside := range []string{besideNothing, besideEverything, besideLocked} {
		turns = append(turns, func(round int) error {
			took, err := r.everythingBeside(beside, round, rate*besideRate)
			if err == nil {
				p99[beside] = append(p99[beside], took.At(99))
			}
			return err
		})
	}
	w, err := r.watchStandstills()
	if err != nil {
		return err
	}
	begun := time.Now()
	err = inTurns(besideRounds, turns...)
	still, watched := w.end()
	if err := errors.Join(err, watched); err != nil {
		return err
	}
	r.figures("Everything/op=standstills", still.metrics(begun, time.Now())...)
	r.judgeBeside(besideAll,
		pairs(p99[besideNothing], p99[besideEverything]))
	r.judgeBeside(besideLock,
		pairs(p99[besideNothing], p99[besideLocked]))
	return nil
}

// everythingBeside sends single commands at a rate to an engine of its own with the named work
// beside it, first for everythingWarming, then for besideTurn. Only the latter is returned.
func (r *Run) everythingBeside(beside string, round int,
	perSecond float64) (_ *latency.Summary, err error) {
	o := engineOptions{folder: fmt.Sprintf("beside-%s-%d", beside, round), durability: "fsync",
		genesis: flowGenesis(1)}
	var e *fullEngine
	if beside == besideNothing {
		e, err = r.open(o)
	} else {
		e, err = r.openEverything(o, beside == besideLocked)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	clock := load.NewBusyClock()
	target := newEngineTarget(e, clock)
	var result *load.Result
	for _, d := range []time.Duration{everythingWarming, besideTurn} {
		arrivals, err := load.Constant(perSecond)
		if err != nil {
			return nil, err
		}
		if result, err = load.Run(target, load.Options{Arrivals: arrivals, For: r.duration(d),
			Clock: clock}); err != nil {
			return nil, err
		}
	}
	figures := []metric{{perSecond, "commands/s"}, {microseconds(result.Latency.At(50)), "p50-us"},
		{microseconds(result.Latency.At(99)), "p99-us"}}
	if e.rows != nil {
		n, err := e.rows()
		if err != nil {
			return nil, err
		}
		figures = append(figures, metric{float64(n), "rows-booked"})
	}
	r.figures(fmt.Sprintf("Everything/op=command/beside=%s/round=%d", beside, round), figures...)
	return result.Latency, nil
}
