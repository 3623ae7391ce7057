package replay

import (
	"errors"
	"hash/maphash"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/orderflow"
)

// driver sends a flow over several connections. One goroutine reads the flow and gives each step to
// the connection of its order, so that the steps of one order stay in their order. Between orders
// that holds on one connection only: a flow whose book must be the same each time needs one
// connection.
//
// With a rate, the k-th step is due k/rate after the start. Its latency counts from then, whether
// or not a connection was free, so it includes the wait for a connection. Without a rate it counts
// from when the step was sent.
type driver struct {
	// workers are the connections; constant after newDriver.
	workers []*worker
	// rate is steps a second, 0 for as fast as possible.
	rate float64
	// done is the number of steps answered so far. The workers write it, the progress line reads it.
	done atomic.Int64
	// failed is set by the first worker that fails; the reader of the flow then stops.
	failed atomic.Bool
}

// job is a step and the time when it is due; zero: as soon as possible.
type job struct {
	step orderflow.Step
	due  time.Time
}

// queuedJobs is how many steps may wait for a connection. The reader blocks when one connection has
// so many, also while others are idle: with a rate, the steps behind it are then late, which
// counts.
const queuedJobs = 2048

// newDriver opens the connections. batch is the most new orders in one request. When one cannot be
// opened, those before it are closed.
func newDriver(open venues, connections, batch int, rate float64) (*driver, error) {
	d := &driver{rate: rate}
	for range connections {
		v, err := open()
		if err != nil {
			d.close()
			return nil, err
		}
		d.workers = append(d.workers, newWorker(v, batch, maxTracked/connections, d))
	}
	return d, nil
}

// close closes the venues; no worker may be running.
func (d *driver) close() error {
	var errs []error
	for _, w := range d.workers {
		errs = append(errs, w.venue.close())
	}
	return errors.Join(errs...)
}

// run sends the whole flow and returns the errors of the flow and of the connections. It returns
// when every step handed out was answered. When a connection fails, the others finish what they
// have.
func (d *driver) run(flow orderflow.StepReader) error {
	var all sync.WaitGroup
	for _, w := range d.workers {
		all.Go(func() {
			if w.err = w.run(); w.err != nil {
				d.failed.Store(true)
				for range w.jobs { // drains the channel, so that the reader goes on until it sees the failure
				}
			}
		})
	}
	err := d.deal(flow)
	for _, w := range d.workers {
		close(w.jobs)
	}
	all.Wait()
	for _, w := range d.workers {
		err = errors.Join(err, w.err)
	}
	return err
}

// deal reads the flow and hands each step to its order's connection, by a hash of the client order
// id. The hash has a new seed in each run, so runs differ in which orders share a connection.
func (d *driver) deal(flow orderflow.StepReader) error {
	seed := maphash.MakeSeed()
	start := time.Now()
	for n := 0; !d.failed.Load(); n++ {
		var j job
		if err := flow.Next(&j.step); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if d.rate > 0 {
			j.due = start.Add(time.Duration(float64(n) / d.rate * float64(time.Second)))
			time.Sleep(time.Until(j.due))
		}
		key := j.step.ClientOrderID
		if j.step.Ref != "" {
			key = j.step.Ref
		}
		d.workers[maphash.String(seed, key)%uint64(len(d.workers))].jobs <- j
	}
	return nil
}

// tally counts the outcomes of the steps. Every step is accepted, refused, gone or untracked.
//
//   - Gone: the named order is unknown to the venue or can no longer change.
//   - Untracked: the step was not sent, because its order has no id here.
//   - Retried: calls that were repeated because the venue was busy; not steps.
//   - Reasons: the refused steps by the venue's reason.
type tally struct {
	Steps, Accepted, Refused, Gone, Untracked, Retried int64
	Reasons                                            map[string]int64
}

func (t *tally) add(o *tally) {
	t.Steps += o.Steps
	t.Accepted += o.Accepted
	t.Refused += o.Refused
	t.Gone += o.Gone
	t.Untracked += o.Untracked
	t.Retried += o.Retried
	for reason, n := range o.Reasons {
		t.Reasons[reason] += n
	}
}

// totals adds up the connections. The caller calls it after run, when no worker writes any more.
func (d *driver) totals() tally {
	t := tally{Reasons: map[string]int64{}}
	for _, w := range d.workers {
		t.add(&w.tally)
	}
	return t
}

// latencies returns the distribution of each action that occurred, and of all as the last row. The
// orders of one batch have the same time: that of the batch. The caller calls it after run.
func (d *driver) latencies() (names []string, rows []*latency.Summary) {
	byAction := map[orderflow.Action][]*latency.Recorder{}
	var all []*latency.Recorder
	for _, w := range d.workers {
		for action, r := range w.recorders {
			byAction[action] = append(byAction[action], r)
			all = append(all, r)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(byAction)) {
		names = append(names, action.String())
		rows = append(rows, latency.Merge(byAction[action]...))
	}
	return append(names, "all"), append(rows, latency.Merge(all...))
}
