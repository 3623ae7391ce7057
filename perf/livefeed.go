package perf

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"posttrade/perf/load"
)

// What the row asks for. The times are milliseconds at the median, over all samples and clients of
// a round. The rate is of all clients together, so a hundredth of it is that of one. Beside the
// full load the times are those of a queue for the cores; calmFeedTime is the same with fewer
// orders.
var (
	feedTime       = atMost("P15", 2, "live feed, from durable to a client's socket, p50, ms")
	feedFanOutRate = atLeast("P15", 1e6, "live feed, fan-out, events/s in all")
	calmFeedTime   = atMost("P15", 2, fmt.Sprintf(
		"live feed at %d orders/s, from durable to a client's socket, p50, ms", feedCalmRate))
	besideClients = atMost("P15", besideLimit, fmt.Sprintf(
		"p99 of orders with %d clients of the live feed, against without", feedClients))
)

// The load of row P15.
const (
	// feedClients is how many connections read at a time. Each gets every event.
	feedClients = 100
	// feedRate is orders a second: more events than two cores carry.
	feedRate = 20_000
	// feedCalmRate leaves two cores room: it shows how long the feed takes, not how long it queues.
	feedCalmRate = feedRate / 10
	// feedTopics asks for everything, so that no topic's filter makes the load smaller.
	feedTopics = "/feed?topics=book:*,bbo:*,trades,orders,prices,contracts"
)

// measureLiveFeed is row P15: clients that read everything over HTTP beside orders at a fixed rate.
//
// The orders go straight into the engine's desk; only the feed goes over HTTP. Clients, server and
// load are in this process and share its cores, and the clients' parsing of events is in the
// figures. So the fan-out rate is what is left of the machine, and a time includes the client's
// wait for a core.
//
// A time begins when a thread here sees that a sequence is durable, which is a little after it
// became so, and ends when a client has read bytes with that sequence or a later one. It lies on
// the low side by that delay. A client that the server ends as slow comes again, and the events it
// missed are in no figure: the note beside the figures says how often.
func measureLiveFeed(r *Run) (err error) {
	e, address, err := r.openServed(engineOptions{folder: "live-feed", durability: "fsync",
		genesis: flowGenesis(1)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	clock := load.NewBusyClock()
	f := &feedFanOut{engine: e, address: address}
	c := beside{name: "live-feed", target: newEngineTarget(e, clock), clock: clock,
		perSecond: feedRate, alone: r.duration(besideTurn)}
	c.work = func(int) error { return f.read(r, c.alone) }
	p, err := r.besideWork(c)
	if err != nil {
		return err
	}
	rate := median(f.rates)
	r.figures("Feed/op=fan-out/clients="+strconv.Itoa(feedClients), metric{rate, "events/s"},
		metric{median(f.p50), "p50-us"}, metric{median(f.p99), "p99-us"},
		metric{float64(f.ended), "ended-as-slow"})
	note := fmt.Sprintf("%d clients, %d orders/s, %d times a client was ended as slow", feedClients,
		feedRate, f.ended)
	r.judge(feedTime, median(f.p50)/1e3).beside("%s", note)
	r.judge(feedFanOutRate, rate).beside("%s", note)
	r.judgeBeside(besideClients, p)

	calm := &feedFanOut{engine: e, address: address}
	c.name, c.perSecond = "live-feed-calm", feedCalmRate
	c.work = func(int) error { return calm.read(r, c.alone) }
	for round := range besideRounds {
		if _, err := r.besidePhase(c, c.name, round, c.work); err != nil {
			return err
		}
	}
	r.figures("Feed/op=fan-out-calm/clients="+strconv.Itoa(feedClients),
		metric{median(calm.rates), "events/s"}, metric{median(calm.p50), "p50-us"},
		metric{median(calm.p99), "p99-us"}, metric{float64(calm.ended), "ended-as-slow"})
	r.judge(calmFeedTime, median(calm.p50)/1e3).beside("%d clients, %.2g events/s in all", feedClients,
		median(calm.rates))
	return nil
}

// feedFanOut is the clients, and what they have measured in every round.
type feedFanOut struct {
	// engine is asked for its durable sequence.
	engine *fullEngine
	// address is that of the order-matcher, host:port.
	address string

	// rates, p50 and p99 have one value for each round: events a second, and microseconds.
	rates, p50, p99 []float64
	// ended is how often a client was ended as slow, in all rounds.
	ended int
}

// read lets the clients read for about d, and adds one value to rates, p50 and p99. The time begins
// when every client has got something, so that no connection is being made in it. With no sample
// read by any client it waits on, for feedSilence at most; no sample at all is an error.
func (f *feedFanOut) read(r *Run, d time.Duration) error {
	t := &turn{f: f, samples: make([]sample, 0, 1<<16)}
	var clients sync.WaitGroup
	failed := make(chan error, feedClients)
	for range feedClients {
		clients.Go(func() {
			if err := t.client(); err != nil {
				failed <- err
			}
		})
	}
	for t.joined.Load() < feedClients {
		select {
		case err := <-failed:
			t.over.Store(true)
			return err
		case <-time.After(time.Millisecond):
		}
	}
	begun, before := time.Now(), t.events.Load()
	for time.Since(begun) < d || t.passes.Load() == 0 && time.Since(begun) < feedSilence {
		if next := f.engine.durable() + 1; f.engine.Watermark.WaitDurable(next, d) == nil {
			t.note(next)
		}
		time.Sleep(time.Millisecond) // a sample a command would cost what it measures
	}
	f.rates = append(f.rates, float64(t.events.Load()-before)/time.Since(begun).Seconds())
	t.over.Store(true)
	clients.Wait()
	close(failed)
	for err := range failed {
		return err
	}
	f.ended += int(t.slow.Load())
	if len(t.took) == 0 {
		return errors.New("live feed: no client got a sample")
	}
	f.p50 = append(f.p50, float64(percentile(t.took, 50))/1e3)
	f.p99 = append(f.p99, float64(percentile(t.took, 99))/1e3)
	return nil
}
