package perf

import (
	"errors"
	"time"

	"posttrade/app/latency"
	"posttrade/matcher/flow"
)

// measureFirstOrders measures the first orders after a start, one after the other: an object that
// is made on first use delays one of them. first-us is the very first one, the other figures are of
// all. There is no target, because one time of one order is not a distribution.
func measureFirstOrders(r *Run) error {
	for _, durability := range []string{"fsync", "os"} {
		first, all, err := r.firstOrders(durability,
			r.scale(map[string]int{"fsync": 20_000, "os": 200_000}[durability]))
		if err != nil {
			return err
		}
		r.figures("FirstOrders/durability="+durability,
			append([]metric{{microseconds(first), "first-us"}}, distribution(all)...)...)
	}
	return nil
}

// firstOrders submits n orders to an engine that has just started, each after the answer to the one
// before. The caller waits for each answer, so a slow answer delays the next order and is counted
// once.
func (r *Run) firstOrders(durability string,
	n int) (first time.Duration, all *latency.Summary, err error) {
	e, err := r.open(engineOptions{folder: "first-" + durability, durability: durability,
		genesis: flowGenesis(1)})
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	source, recorder := &flowSource{random: flow.NewRandom(5)}, latency.NewRecorder()
	for i := range n {
		took, err := roundTrip(e, source)
		if err != nil {
			return 0, nil, err
		}
		if i == 0 {
			first = took
		}
		recorder.Record(took)
	}
	return first, latency.Merge(recorder), nil
}
