package replay

import (
	"errors"
	"fmt"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/orderflow"
)

// worker is one connection and the goroutine that sends over it. Only that goroutine touches the
// fields, but for jobs.
type worker struct {
	venue venue
	// jobs are the steps for this connection, in the flow's order. The driver writes and closes it.
	jobs  chan job
	batch int
	// ids has the venue's ids of the orders that this connection placed.
	ids   *idTable
	tally tally
	// recorders are by action, made with the first step of each.
	recorders map[orderflow.Action]*latency.Recorder
	driver    *driver
	// err is what ended the worker; the driver reads it when all have ended.
	err error

	// fresh are the new orders of the batch being gathered.
	fresh []job
	// later are the steps that came while the batch was gathered and must follow it.
	later []job
	// steps and results are memory for create, results as long as a batch.
	steps   []orderflow.Step
	results []outcomeOf
}

// newWorker makes the worker of a venue, which it does not close. tracked is how many orders it
// knows by the venue's id.
func newWorker(v venue, batch, tracked int, d *driver) *worker {
	return &worker{
		venue: v, jobs: make(chan job, queuedJobs), batch: batch, ids: newIDTable(tracked), driver: d,
		tally: tally{Reasons: map[string]int64{}}, recorders: map[orderflow.Action]*latency.Recorder{},
		results: make([]outcomeOf, batch),
	}
}

// run sends until there are no more jobs.
func (w *worker) run() error {
	for {
		more := w.gather()
		if err := w.flush(); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// gather waits for a job and takes the other jobs that are there, up to a batch of new orders. It
// returns false when no more jobs will come. It never waits for a batch to fill: a step that is
// alone is sent alone. With a batch of one it takes one step, so that the flow's order is kept.
func (w *worker) gather() bool {
	j, more := <-w.jobs
	for more {
		if j.step.Action == orderflow.New {
			w.fresh = append(w.fresh, j)
		} else {
			w.later = append(w.later, j)
		}
		if len(w.fresh) == w.batch || len(w.later) == queuedJobs || w.batch == 1 {
			return true
		}
		select {
		case j, more = <-w.jobs:
		default:
			return true
		}
	}
	return false
}

// flush sends the gathered orders, then the steps that must follow them, and empties both lists.
// Steps about an order of the batch find its id then.
func (w *worker) flush() error {
	if len(w.fresh) > 0 {
		if err := w.create(); err != nil {
			return err
		}
	}
	for i := range w.later {
		if err := w.change(&w.later[i]); err != nil {
			return err
		}
	}
	w.fresh, w.later = w.fresh[:0], w.later[:0]
	return nil
}

// create sends the gathered orders as one request and keeps the ids of those that were accepted. An
// error names the first order of the batch.
func (w *worker) create() error {
	w.steps = w.steps[:0]
	for i := range w.fresh {
		w.steps = append(w.steps, w.fresh[i].step)
	}
	begin := time.Now()
	err := w.patiently(func() error { return w.venue.create(w.steps, w.results[:len(w.steps)]) })
	if err != nil {
		return fmt.Errorf("order %s: %w", w.steps[0].ClientOrderID, err)
	}
	end := time.Now()
	for i := range w.fresh {
		w.record(&w.fresh[i], begin, end, w.results[i])
		if w.results[i].verdict == accepted {
			w.ids.put(w.steps[i].ClientOrderID, w.results[i].orderID)
		}
	}
	return nil
}

// change sends a step that is no new order. A step about an order without an id here is counted and
// not sent. An order that was cancelled, or is gone, is dropped from the table.
func (w *worker) change(j *job) error {
	s := &j.step
	orderID := ""
	if s.Ref != "" {
		var tracked bool
		if orderID, tracked = w.ids.get(s.Ref); !tracked {
			w.tally.Steps++
			w.tally.Untracked++ // the venue refused its order, or the order is too old for the table
			w.driver.done.Add(1)
			return nil
		}
	}
	var o outcomeOf
	begin := time.Now()
	err := w.patiently(func() (err error) {
		switch s.Action {
		case orderflow.Cancel:
			o, err = w.venue.cancel(orderID)
		case orderflow.Replace:
			o, err = w.venue.replace(orderID, s)
		case orderflow.Trade:
			o, err = w.venue.trade(s)
		case orderflow.Price:
			o, err = w.venue.price(s)
		default:
			panic("replay: action " + s.Action.String())
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s%s: %w", s.Action, s.ClientOrderID, s.Ref, err)
	}
	w.record(j, begin, time.Now(), o)
	if s.Action == orderflow.Cancel || o.verdict == gone {
		w.ids.drop(s.Ref)
	}
	return nil
}

// busyPatience is how long a venue may be busy before the replay fails with its last refusal.
const busyPatience = 30 * time.Second

// patiently repeats a call that was not sequenced, with pauses that double from 1 ms to 100 ms.
// Only errBusy allows that: any other error leaves the outcome open. The pauses are part of the
// step's time.
func (w *worker) patiently(call func() error) error {
	begin := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		err := call()
		if !errors.Is(err, errBusy) || time.Since(begin) > busyPatience {
			return err
		}
		w.tally.Retried++
		time.Sleep(pause)
	}
}

// record counts an answered step; its latency counts from when it was due, or from when it was sent
// if it had no due time.
func (w *worker) record(j *job, begin, end time.Time, o outcomeOf) {
	if !j.due.IsZero() {
		begin = j.due
	}
	r := w.recorders[j.step.Action]
	if r == nil {
		r = latency.NewRecorder()
		w.recorders[j.step.Action] = r
	}
	r.Record(end.Sub(begin))
	w.tally.Steps++
	switch o.verdict {
	case accepted:
		w.tally.Accepted++
	case refused:
		w.tally.Refused++
		w.tally.Reasons[o.reason]++
	case gone:
		w.tally.Gone++
	}
	w.driver.done.Add(1)
}
