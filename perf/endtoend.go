package perf

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"posttrade/app/latency"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/flow"
	"posttrade/perf/load"
)

// What the row asks for.
//
//   - answersRate: two million commands a second on two cores, every answer synced.
//   - answersFsync: at a tenth of saturation an order waits for a part of the write under way and
//     for its own, hence 1.6 writes and syncs of 64 KiB on this disk.
//   - answersOS: microseconds. No sync is in it, so processor and memory alone decide.
var (
	answersRate  = atLeast("P6", 2e6, "commands/s to a durable answer, mode fsync")
	answersFsync = atMost("P6", 1.6, "p50 at 10 %% of saturation, mode fsync, against fdatasync")
	answersOS    = atMost("P6", 5, "p50 at 10 %% of saturation, mode os, us")
)

// measureEndToEnd is row P6: command to durable answer through gate, input ring, matcher, output
// ring, journal and back, at saturation and at a tenth of it, in both modes.
//
// Saturation is throughput of batches from two goroutines; the latencies are those of single orders
// at constant distances, counted from when each was due. Both loads run in this process and take
// part of the two cores. There is no HTTP and no sidecar; the journal's followers that belong to an
// engine run. Half of the orders trade (see flowSource), on one symbol and a small book.
//
// A tenth of saturation is another rate in each run and mode, so latencies of two runs compare only
// where the rates are alike. A figure lies when the disk's own writes are slower during it than
// when the floor was taken.
func measureEndToEnd(r *Run) error {
	floor, err := journal.CompareRawWrites(context.Background(), r.o.Dir, r.duration(2*time.Second),
		64<<10)
	if err != nil {
		return err
	}
	raw := float64(floor.P50.Nanoseconds()) / 1e3
	r.figures("Disk/op=write+fdatasync/bytes=65536", metric{raw, "p50-us"},
		metric{float64(floor.P99.Nanoseconds()) / 1e3, "p99-us"})
	for _, durability := range []string{"fsync", "os"} {
		rate, err := r.saturate(durability)
		if err != nil {
			return err
		}
		took, err := r.openLoop(engineOptions{folder: "open-loop-" + durability,
			durability: durability}, rate/10)
		if err != nil {
			return err
		}
		p50 := microseconds(took.At(50))
		r.figures("EndToEnd/op=command/durability="+durability,
			metric{rate, "commands/s"}, metric{p50, "p50-us-at-10%"},
			metric{microseconds(took.At(99)), "p99-us-at-10%"},
			metric{microseconds(took.At(99.9)), "p99.9-us-at-10%"},
			metric{microseconds(took.Max()), "max-us-at-10%"})
		if durability == "fsync" {
			r.judge(answersRate, rate)
			r.judge(answersFsync, p50/raw).beside("fdatasync %.4g us", raw)
		} else {
			r.judge(answersOS, p50)
		}
	}
	return nil
}

// flowSource makes sells and buys at the same price in turns. So every second order trades, and the
// book stays small for a flow of any length. The same seed gives the same orders. One goroutine.
type flowSource struct {
	random *flow.Random
	// n counts the orders so far. It decides side and price; a start other than 0 shifts them.
	n uint64
}

// next writes the flow's next order. Sellers have odd account numbers and buyers even ones, of the
// accounts of flowGenesis, so that no order meets one of its own account. PriceTicks is the key for
// idempotency, which no two orders share but by chance.
func (s *flowSource) next(c *matcher.Command) {
	*c = matcher.NewCommand(matcher.OrderNew)
	s.n++
	buy := s.n&1 == 0
	c.AccountID = uint32(s.random.N(flowAccounts/2))*2 + 1
	c.Side = matcher.Sell
	if buy {
		c.AccountID++
		c.Side = matcher.Buy
	}
	c.SecurityID = 1
	c.Qty = 10
	c.LimitPx = 187_000_000 + int64(s.n/2%8)*10_000
	c.PriceTicks = int64(s.random.Uint64() | 1)
	c.EventTimeMillis = 1_700_000_000_000 + int64(s.n/1000)
}

// saturate submits batches from two goroutines, each as fast as answers come, and returns commands
// a second to the last answer. Eight million commands in tickets of 512, sixteen of them in flight
// a goroutine: enough that a commit always has commands to take. The engine is its own, and is
// removed.
func (r *Run) saturate(durability string) (perSecond float64, err error) {
	e, err := r.open(engineOptions{folder: "saturate-" + durability, durability: durability,
		genesis: flowGenesis(1)})
	if err != nil {
		return 0, err
	}
	defer e.close()
	const producers, window, batch = 2, 16, 512
	perProducer := r.scale(8_000_000) / producers / batch * batch
	errs := make([]error, producers)
	var wg sync.WaitGroup
	start := time.Now()
	for p := range producers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[p] = pump(e, uint64(p+1), perProducer, window, batch)
		}()
	}
	wg.Wait()
	elapsed := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	if err := awaitDurable(e.durable, uint64(perProducer*producers)); err != nil {
		return 0, err
	}
	return float64(perProducer*producers) / elapsed.Seconds(), nil
}

// awaitDurable compares what was answered with the engine's durable sequence. The answers of a
// commit are sent just before that sequence changes, so it waits for a moment. An answer without a
// durable command is the worst fault that there is, so it is an error of the row.
func awaitDurable(durable func() uint64, answered uint64) error {
	const patience = 10 * time.Second
	for begun := time.Now(); durable() < answered; time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			return fmt.Errorf("%d commands durable, %d were answered", durable(), answered)
		}
	}
	return nil
}

// pump keeps window tickets of batch commands in flight until n are answered. It sends whole
// tickets, so n is rounded up to one. It waits for the oldest ticket before it acquires another
// one. Each seed has commands of its own. One goroutine for each pump; an answer that is no
// acceptance ends it.
func pump(e *fullEngine, seed uint64, n, window, batch int) error {
	source := &flowSource{random: flow.NewRandom(seed), n: seed}
	var inFlight []*desk.Ticket
	finish := func() error {
		t := inFlight[0]
		inFlight = append(inFlight[:0], inFlight[1:]...)
		return accepted(t)
	}
	for sent := 0; sent < n; sent += batch {
		if len(inFlight) == window {
			if err := finish(); err != nil {
				return err
			}
		}
		t, err := e.Desk.Acquire(batch)
		if err != nil {
			return err
		}
		if err := source.fill(t, e); err != nil {
			t.Release()
			return err
		}
		for err = t.Submit(); err == desk.ErrFull; err = t.Submit() {
			runtime.Gosched()
		}
		if err != nil {
			t.Release()
			return err
		}
		inFlight = append(inFlight, t)
	}
	for len(inFlight) > 0 {
		if err := finish(); err != nil {
			return err
		}
	}
	return nil
}

// pumpedBatch is how many commands pumped has in a ticket.
const pumpedBatch = 512

// pumped opens an engine and sends n commands through it, scaled and in whole batches. It returns
// how many those were. After an error the engine is closed.
func (r *Run) pumped(o engineOptions, n int) (*fullEngine, int, error) {
	n = max(r.scale(n)/pumpedBatch, 1) * pumpedBatch
	e, err := r.open(o)
	if err != nil {
		return nil, 0, err
	}
	if err := pump(e, 1, n, 16, pumpedBatch); err != nil {
		return nil, 0, errors.Join(err, e.close())
	}
	return e, n, nil
}

// fill writes the flow's next commands into a ticket and screens them in the gate, as the edge
// does. A refusal is an error: the flow's orders are good ones.
func (s *flowSource) fill(t *desk.Ticket, e *fullEngine) error {
	for i := range t.Len() {
		c := t.Command(i)
		s.next(c)
		if reason := e.Gate.Screen(c); reason != matcher.Accepted {
			return fmt.Errorf("gate refused: %v", reason)
		}
	}
	return nil
}

// accepted waits for a ticket's answers, without a limit, and releases the ticket. An answer that
// is no acceptance is an error.
func accepted(t *desk.Ticket) error {
	defer t.Release()
	if err := t.Wait(0); err != nil {
		return err
	}
	for i := range t.Len() {
		if a := t.Answer(i); a.Kind != matcher.EventAccepted {
			return fmt.Errorf("command refused: %v", a.Reason)
		}
	}
	return nil
}

// roundTrip is the time of the flow's next command from its gate to its answer. The caller parks
// meanwhile, so the wake-up of its goroutine is in it: one caller that waits for each answer.
func roundTrip(e *fullEngine, source *flowSource) (time.Duration, error) {
	begun := time.Now()
	t, err := e.Desk.Acquire(1)
	if err != nil {
		return 0, err
	}
	if err := source.fill(t, e); err != nil {
		return 0, err
	}
	if err := t.Submit(); err != nil {
		return 0, err
	}
	if err := accepted(t); err != nil {
		return 0, err
	}
	return time.Since(begun), nil
}

// openLoop sends single commands at a fixed rate to an engine of its own for five seconds. It
// returns the time of each command since it was due. A rate above what the engine can take gives
// ever longer times, not an error.
func (r *Run) openLoop(o engineOptions, perSecond float64) (_ *latency.Summary, err error) {
	o.genesis = flowGenesis(1)
	e, err := r.open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	arrivals, err := load.Constant(perSecond)
	if err != nil {
		return nil, err
	}
	clock := load.NewBusyClock()
	result, err := load.Run(newEngineTarget(e, clock), load.Options{
		Arrivals: arrivals, For: r.duration(5 * time.Second), Clock: clock,
	})
	if err != nil {
		return nil, err
	}
	return result.Latency, nil
}
