package perf

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"posttrade/perf/load"
)

// What the row asks for.
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
	feedClients = 100
	feedRate    = 20_000 // orders a second: more events than two cores carry
	// feedCalmRate leaves two cores room: it shows how long the feed takes, not how long it queues.
	feedCalmRate = feedRate / 10
	feedTopics   = "/feed?topics=book:*,bbo:*,trades,orders,prices,contracts"
)

// measureLiveFeed is row P15: clients that read everything over HTTP beside orders at a fixed rate.
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
	engine  *fullEngine
	address string // of the order-matcher

	rates, p50, p99 []float64 // events a second; microseconds
	ended           int
}

// sample is a moment at which a sequence was durable.
type sample struct {
	inputSeq uint64
	at       time.Time
}

// read lets the clients read for about d.
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

// turn is one round of reading.
type turn struct {
	f      *feedFanOut
	joined atomic.Int64 // clients that have got something
	events atomic.Int64
	slow   atomic.Int64
	over   atomic.Bool
	passes atomic.Int64 // samples that came to a client

	mu      sync.Mutex
	samples []sample
	took    []int64 // ns from durable to a client's socket
}

func (t *turn) note(inputSeq uint64) {
	now := time.Now()
	t.mu.Lock()
	t.samples = append(t.samples, sample{inputSeq, now})
	t.mu.Unlock()
}

// client reads the feed until the turn is over; a client that is ended as slow comes again.
func (t *turn) client() error {
	joined := false
	for !t.over.Load() {
		conn, err := net.Dial("tcp", t.f.address)
		if err != nil {
			return err
		}
		err = t.connection(conn, &joined)
		if err = errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
	return nil
}

// connection reads one stream. It looks at the last id of what a read returns: the events before it
// have come with it or earlier.
func (t *turn) connection(conn net.Conn, joined *bool) error {
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", feedTopics); err != nil {
		return err
	}
	var took []int64
	defer func() {
		t.mu.Lock()
		t.took = append(t.took, took...)
		t.mu.Unlock()
	}()
	in := bufio.NewReaderSize(conn, 64<<10)
	status, err := in.ReadString('\n')
	if err != nil || !bytes.Contains([]byte(status), []byte(" 200 ")) {
		return errors.Join(fmt.Errorf("live feed: answer %q", status), err)
	}
	next := t.sampled()
	buf := make([]byte, 64<<10)
	for !t.over.Load() {
		if err := conn.SetReadDeadline(time.Now().Add(feedSilence)); err != nil {
			return err
		}
		n, err := in.Read(buf)
		now := time.Now()
		if err != nil {
			return fmt.Errorf("live feed: %w", err)
		}
		if !*joined {
			*joined = true
			t.joined.Add(1)
		}
		text := buf[:n]
		t.events.Add(int64(bytes.Count(text, []byte("\ndata: "))))
		if bytes.Contains(text, []byte("\nevent: gone")) || bytes.HasPrefix(text, []byte("event: gone")) {
			t.slow.Add(1)
			return nil
		}
		if last, ok := lastSequence(text); ok {
			took, next = t.passed(took, next, last, now)
		}
	}
	return nil
}

// feedSilence is longer than a server that has nothing to say stays silent.
const feedSilence = 30 * time.Second

// lastSequence is the sequence of the last whole id in a text.
func lastSequence(text []byte) (uint64, bool) {
	at := bytes.LastIndex(text, []byte("id: "))
	if at < 0 {
		return 0, false
	}
	number, _, whole := bytes.Cut(text[at+len("id: "):], []byte("."))
	if !whole {
		return 0, false
	}
	n, err := strconv.ParseUint(string(number), 10, 64)
	return n, err == nil
}

// sampled is the number of samples so far.
func (t *turn) sampled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.samples)
}

// passed adds how long ago the samples from next on, up to a sequence, were durable.
func (t *turn) passed(took []int64, next int, last uint64, now time.Time) ([]int64, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end := next + slices.IndexFunc(t.samples[next:], func(s sample) bool { return s.inputSeq > last })
	if end < next {
		end = len(t.samples)
	}
	t.passes.Add(int64(end - next))
	for ; next < end; next++ {
		took = append(took, now.Sub(t.samples[next].at).Nanoseconds())
	}
	return took, next
}
