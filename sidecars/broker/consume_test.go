package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
)

const bookings = "trades.booking"

func bookingConsumer() ConsumerConfig {
	return ConsumerConfig{Stream: Stream{Name: "SVC_TRADES", Subjects: []string{bookings}},
		Durable: "trade-processor"}
}

// consuming runs Consume until the test ends or the returned stop is called. stop waits for Consume
// and expects it to end without an error.
func consuming(t *testing.T, b *Broker, c ConsumerConfig,
	fn func(context.Context, []Message) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Consume(ctx, c, fn) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Consume ends with %v", err)
			}
		case <-time.After(2 * time.Minute):
			t.Error("Consume does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

func book(t *testing.T, ctx context.Context, b *Broker, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		until(t, ctx, "booked", func() bool {
			_, err := b.Publish(ctx, bookings, payload(n), PublishOptions{MsgID: id(n)})
			return err == nil
		})
	}
}

// seen counts deliveries by message id.
type seen struct {
	mu     sync.Mutex
	count  map[string]int
	order  []uint64
	batch  int // the largest
	changs chan struct{}
}

func newSeen() *seen { return &seen{count: map[string]int{}, changs: make(chan struct{}, 1)} }

func (s *seen) add(batch []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range batch {
		s.count[m.MsgID]++
		s.order = append(s.order, m.Sequence)
	}
	s.batch = max(s.batch, len(batch))
	select {
	case s.changs <- struct{}{}:
	default:
	}
}

// take is a callback that accepts every message.
func (s *seen) take(_ context.Context, batch []Message) error {
	s.add(batch)
	return nil
}

func (s *seen) await(t *testing.T, ctx context.Context, distinct int) {
	t.Helper()
	for {
		s.mu.Lock()
		n := len(s.count)
		s.mu.Unlock()
		if n >= distinct {
			return
		}
		select {
		case <-s.changs:
		case <-ctx.Done():
			t.Fatalf("%d of %d messages came", n, distinct)
		}
	}
}

func TestConsumeDeliversEverythingInOrderOnce(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx, s := patience(t), newSeen()
		stop := consuming(t, b, bookingConsumer(), func(_ context.Context, batch []Message) error {
			for _, m := range batch {
				if m.Subject != bookings || m.Delivered != 1 || len(m.Data) == 0 || m.PublishedAt.IsZero() {
					t.Errorf("got %+v", m)
				}
			}
			s.add(batch)
			return nil
		})
		until(t, ctx, "the consumer's stream", func() bool {
			return b.EnsureStream(ctx, bookingConsumer().Stream) == nil
		})
		book(t, ctx, b, 1, 300)
		s.await(t, ctx, 300)
		stop()
		if !slices.IsSorted(s.order) || len(s.order) != 300 {
			t.Errorf("%d deliveries, want 300 in order", len(s.order))
		}
		// The durable keeps its position: a second Consume gets only new messages, in large batches.
		var out []Outgoing
		for n := 301; n <= 1300; n++ {
			out = append(out, Outgoing{Subject: bookings, Data: payload(n),
				PublishOptions: PublishOptions{MsgID: id(n)}})
		}
		if _, _, err := b.PublishBatch(ctx, out); err != nil {
			t.Fatal(err)
		}
		s2 := newSeen()
		defer consuming(t, b, bookingConsumer(), s2.take)()
		s2.await(t, ctx, 1000)
		s2.mu.Lock()
		defer s2.mu.Unlock()
		if len(s2.order) != 1000 || s2.order[0] != 301 || !slices.IsSorted(s2.order) {
			t.Errorf("%d deliveries from %d, want 1000 from 301", len(s2.order), s2.order[0])
		}
		if s2.batch < 100 {
			t.Errorf("the largest of the batches has %d messages of 1000 that wait", s2.batch)
		}
	})
}

// fn fails for a while: nothing is lost, and the deliveries pause.
func TestConsumeHandsBackWhatFailed(t *testing.T) {
	var log record
	b := open(t, Options{URL: brokertest.External(t).URL(), Logger: log.logger()})
	ctx, s := patience(t), newSeen()
	ensure(t, ctx, b, bookingConsumer().Stream)
	book(t, ctx, b, 1, 50)
	var mu sync.Mutex
	attempts, most := 0, uint64(0)
	began := time.Now()
	consuming(t, b, bookingConsumer(), func(_ context.Context, batch []Message) error {
		mu.Lock()
		attempts++
		n := attempts
		for _, m := range batch {
			most = max(most, m.Delivered)
		}
		mu.Unlock()
		if n <= 3 {
			return errors.New("database away")
		}
		s.add(batch)
		return nil
	})
	s.await(t, ctx, 50)
	mu.Lock()
	defer mu.Unlock()
	if took := time.Since(began); took < 700*time.Millisecond || most < 2 {
		t.Errorf(
			"three failures took %v, %d deliveries; want pauses of 100, 200 and 400 ms and a redelivery",
			took, most)
	}
	if n := strings.Count(log.String(), "database away"); n != 1 {
		t.Errorf("the failure is logged %d times, want once:\n%s", n, log.String())
	}
	for id, n := range s.count {
		if n != 1 {
			t.Errorf("%s succeeded %d times", id, n)
		}
	}
}

// Messages that fn settled stay settled when fn fails afterwards; the others come again.
func TestConsumeTerminatesMalformedOnes(t *testing.T) {
	b, _ := external(t)
	ctx, s := patience(t), newSeen()
	ensure(t, ctx, b, bookingConsumer().Stream)
	book(t, ctx, b, 1, 20)
	failed := false
	terminated := map[uint64]int{}
	stop := consuming(t, b, bookingConsumer(), func(_ context.Context, batch []Message) error {
		var good []Message
		for _, m := range batch {
			if m.Sequence%5 == 0 {
				terminated[m.Sequence]++
				if err := m.Term("malformed"); err != nil {
					t.Error(err)
				}
				if err := m.Ack(); !errors.Is(err, ErrSettled) {
					t.Errorf("ack after term gives %v", err)
				}
				continue
			}
			good = append(good, m)
		}
		if !failed {
			failed = true
			return errors.New("once")
		}
		s.add(good)
		return nil
	})
	s.await(t, ctx, 16)
	stop()
	for _, n := range []uint64{5, 10, 15, 20} {
		if terminated[n] != 1 {
			t.Errorf("message %d was terminated %d times, want once", n, terminated[n])
		}
	}
}

// The process dies with unacknowledged messages: they come again to the next process.
func TestConsumeRedeliversWhatWasNotAcknowledged(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	c := bookingConsumer()
	c.AckWait = 200 * time.Millisecond
	ensure(t, ctx, b, c.Stream)
	book(t, ctx, b, 1, 30)

	dying := must.Get(Open(Options{URL: srv.URL()}))(t)
	inHand := make(chan int, 1)
	ended := make(chan struct{})
	consuming(t, dying, c, func(ctx context.Context, batch []Message) error {
		srv.Cut() // no acknowledgement gets through any more
		inHand <- len(batch)
		<-ctx.Done()
		close(ended)
		return nil
	})
	first := <-inHand
	dying.Close()
	<-ended

	s := newSeen()
	again := 0
	stop := consuming(t, b, c, func(_ context.Context, batch []Message) error {
		for _, m := range batch {
			if m.Delivered > 1 {
				again++
			}
		}
		s.add(batch)
		return nil
	})
	s.await(t, ctx, 30)
	stop()
	if again < first {
		t.Errorf("%d messages came again, %d were in hand", again, first)
	}
}

// The server restarts, disappears, hangs and is cut off. Every message is delivered in the end, and
// no operator has to restart the consumer.
func TestConsumeSurvivesTheServer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 7))
	b, srv := external(t)
	ctx, s := patience(t), newSeen()
	var log record
	c := bookingConsumer()
	c.AckWait = time.Second
	consumer := open(t, Options{URL: srv.URL(), Logger: log.logger()})
	consuming(t, consumer, c, s.take)
	n := 0
	for range 8 {
		until(t, ctx, "the stream", func() bool { return b.EnsureStream(ctx, c.Stream) == nil })
		book(t, ctx, b, n+1, n+20)
		switch random.IntN(4) {
		case 0:
			srv.Cut()
		case 1:
			srv.Restart()
		case 2:
			srv.Stop()
			srv.Restart()
		case 3:
			srv.Mute()
			srv.Cut()
			srv.Resume()
		}
		n += 20
	}
	s.await(t, ctx, n)
	for i := range n {
		if s.count[fmt.Sprint("account:", i+1)] == 0 {
			t.Errorf("message %d did not come", i+1)
		}
	}
}

func TestConsumeWaitsForAServerAndLogsThatOnce(t *testing.T) {
	var log record
	b := open(t, Options{URL: "nats://127.0.0.1:1", Logger: log.logger()})
	stop := consuming(t, b, bookingConsumer(), func(context.Context, []Message) error { return nil })
	ctx := patience(t)
	until(t, ctx, "the trouble is logged", func() bool {
		return strings.Contains(log.String(), "consumer interrupted")
	})
	changed := b.Changed()
	pause(ctx, 800*time.Millisecond, changed) // several retries
	stop()
	if n := strings.Count(log.String(), "consumer interrupted"); n > 2 {
		t.Errorf("the absence is logged %d times:\n%s", n, log.String())
	}
}

// A consumer that an operator deletes is made again. The durable's position is lost with it, so
// messages come again rather than not at all.
func TestConsumeMakesADeletedConsumerAgain(t *testing.T) {
	b, srv := external(t)
	ctx, s := patience(t), newSeen()
	c := bookingConsumer()
	ensure(t, ctx, b, c.Stream)
	book(t, ctx, b, 1, 5)
	consuming(t, b, c, s.take)
	s.await(t, ctx, 5)
	if n := srv.DeleteConsumers(c.Stream.Name); n != 1 {
		t.Fatalf("%d consumers deleted, want 1", n)
	}
	book(t, ctx, b, 6, 10)
	s.await(t, ctx, 10)
}

func TestConsumeFiltersBySubject(t *testing.T) {
	b, _ := external(t)
	ctx, s := patience(t), newSeen()
	eod := Stream{Name: "SVC_EOD", Subjects: []string{"eod.>"}}
	c := ConsumerConfig{Stream: eod, Durable: "risk-extract", Subject: "eod.pnl.done"}
	ensure(t, ctx, b, c.Stream)
	for i, subject := range []string{"eod.other", "eod.pnl.done", "eod.pnl", "eod.pnl.done"} {
		must.Get(b.Publish(ctx, subject, nil, PublishOptions{MsgID: id(i)}))(t)
	}
	stop := consuming(t, b, c, s.take)
	s.await(t, ctx, 2)
	stop()
	if !slices.Equal(s.order, []uint64{2, 4}) {
		t.Errorf("sequences %v, want 2 and 4", s.order)
	}
}

func TestConsumeRefusesAConfigurationWithoutNames(t *testing.T) {
	b := open(t, Options{URL: "nats://127.0.0.1:1"})
	for _, c := range []ConsumerConfig{{Durable: "d"}, {Stream: deltas()}} {
		if err := b.Consume(patience(t), c, nil); err == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}

// TestReturnOfTheServerEndsTheRest has a consumer that has failed for long. A change of the
// connection makes it try at once, and soon again. A goroutine that waits for Changed wakes as
// well.
func TestReturnOfTheServerEndsTheRest(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, bookingConsumer().Stream)
	r := &consumption{b: b, c: bookingConsumer(), retry: backOff{next: retryMost}}
	changed := b.Changed()
	srv.Cut()
	<-changed // else the test hangs
	before := b.Changed()
	srv.Stop()
	srv.Restart()
	for range 100 {
		r.awaitRetry(ctx, changed)
		if r.retry.next != 0 {
			t.Fatalf("the next rest would take %v", r.retry.next)
		}
		r.retry.next = 24 * time.Hour
	}
	select {
	case <-before:
	case <-ctx.Done():
		t.Error("no goroutine is told that the server is back")
	}
}

// TestReconnectsAreTriedOften whatever the length of the outage.
func TestReconnectsAreTriedOften(t *testing.T) {
	for rounds := range 100 {
		if d := reconnectDelay(rounds); d < retryFirst || d > time.Second/2 {
			t.Errorf("after %d rounds: %v", rounds, d)
		}
	}
}
