package replay

import (
	"errors"
	"fmt"
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
// that holds on one connection only.
//
// With a rate, the k-th step is due k/rate after the start. Its latency counts from then, whether
// or not a connection was free, so it includes the wait for a connection.
type driver struct {
	workers []*worker
	rate    float64      // steps a second, 0 = as fast as possible
	done    atomic.Int64 // steps answered so far; written by the workers, read by the progress line
	failed  atomic.Bool
}

// job is a step and the time when it is due; zero: as soon as possible.
type job struct {
	step orderflow.Step
	due  time.Time
}

// queuedJobs is how many steps may wait for a connection.
const queuedJobs = 2048

// newDriver opens the connections.
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

func (d *driver) close() error {
	var errs []error
	for _, w := range d.workers {
		errs = append(errs, w.venue.close())
	}
	return errors.Join(errs...)
}

// run sends the whole flow and returns the first error of the flow or of a connection.
func (d *driver) run(flow orderflow.Source) error {
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

// deal reads the flow and hands each step to its order's connection.
func (d *driver) deal(flow orderflow.Source) error {
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

// tally counts the outcomes of the steps.
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

// totals adds up the connections. The caller calls it after run.
func (d *driver) totals() tally {
	t := tally{Reasons: map[string]int64{}}
	for _, w := range d.workers {
		t.add(&w.tally)
	}
	return t
}

// latencies returns the distribution of each action that occurred, and of all.
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

// worker is one connection and the goroutine that sends over it.
type worker struct {
	venue     venue
	jobs      chan job
	batch     int
	ids       *idTable
	tally     tally
	recorders map[orderflow.Action]*latency.Recorder
	driver    *driver
	err       error

	fresh   []job // new orders of the batch being gathered
	later   []job // steps that came while the batch was gathered and must follow it
	steps   []orderflow.Step
	results []outcomeOf
}

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
// returns false when no more jobs will come.
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

// flush sends the gathered orders, then the steps that must follow them.
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

// change sends a step that is no new order.
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

// busyPatience is how long a venue may be busy before the replay fails.
const busyPatience = 30 * time.Second

// patiently repeats a call that was not sequenced, with growing pauses.
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

// record counts an answered step; its latency counts from when it was due.
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

// maxTracked is the number of orders that a replay knows by the venue's id. The oldest leaves
// first, so that memory stays bounded for a flow of any length.
const maxTracked = 1 << 17

// idTable maps client order ids to the venue's, for the last so many orders.
type idTable struct {
	byClient map[string]string
	order    []string // a ring of the client ids, in order of arrival
	next     int
}

func newIDTable(capacity int) *idTable {
	return &idTable{byClient: map[string]string{}, order: make([]string, max(capacity, 1))}
}

// put forgets the oldest entry, so a flow of any length needs the same memory.
func (t *idTable) put(client, order string) {
	if old := t.order[t.next]; old != "" {
		delete(t.byClient, old)
	}
	t.order[t.next] = client
	t.next = (t.next + 1) % len(t.order)
	t.byClient[client] = order
}

func (t *idTable) get(client string) (order string, ok bool) {
	order, ok = t.byClient[client]
	return order, ok
}

// drop removes an order that is final. Its place in the ring becomes free when the ring comes
// round.
func (t *idTable) drop(client string) { delete(t.byClient, client) }
