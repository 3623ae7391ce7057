package broker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// quick are heartbeats for tests that wait for a missing one.
func quick() TailOptions { return TailOptions{Heartbeat: 100 * time.Millisecond} }

func tailing(t *testing.T, ctx context.Context, b *Broker, o TailOptions) *Tail {
	t.Helper()
	tail, err := b.Tail(ctx, deltas().Name, deltaSubject, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tail.Close(); err != nil {
			t.Error(err)
		}
	})
	return tail
}

// expect reads versions from..to, exactly and in order.
func expect(t *testing.T, ctx context.Context, tail *Tail, from, to int) {
	t.Helper()
	for n := from; n <= to; {
		messages, err := tail.Next(ctx)
		if err != nil || len(messages) == 0 {
			t.Fatalf("waiting for version %d: %d messages, %v", n, len(messages), err)
		}
		for _, m := range messages {
			if m.MsgID != id(n) || !bytes.Equal(m.Data, payload(n)) || m.Subject != deltaSubject ||
				n > to || m.Sequence != uint64(n) {
				t.Fatalf("got %s at %d, want version %d", m.MsgID, m.Sequence, n)
			}
			n++
		}
	}
}

func TestTailDeliversOnlyWhatIsNew(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		empty := tailing(t, ctx, b, TailOptions{})
		if last := empty.LastSequence(); last != 0 {
			t.Errorf("an empty stream ends at %d, want 0", last)
		}
		if _, _, err := b.PublishBatch(ctx, chained(1, 1000)); err != nil {
			t.Fatal(err)
		}
		tail := tailing(t, ctx, b, TailOptions{})
		if last := tail.LastSequence(); last != 1000 {
			t.Errorf("the stream ends at %d, want 1000", last)
		}
		if _, _, err := b.PublishBatch(ctx, chained(1001, 2000)); err != nil {
			t.Fatal(err)
		}
		expect(t, ctx, tail, 1001, 2000)
		expect(t, ctx, empty, 1, 2000)
	})
}

// What is published after Tail has returned is delivered, without exception,
// while somebody else publishes all the time: the first message follows LastSequence.
func TestTailMissesNothingAfterItsCreation(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		done := make(chan struct{})
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(done)
		var published atomic.Int64
		wg.Go(func() {
			for n := 1; !idle(done); n++ {
				if _, err := b.Publish(ctx, deltaSubject, payload(n), PublishOptions{MsgID: id(n)}); err != nil {
					t.Error(err)
					return
				}
				published.Store(int64(n))
			}
		})
		for range 100 {
			before := published.Load()
			tail := tailing(t, ctx, b, TailOptions{})
			after := published.Load()
			first := int(tail.LastSequence()) + 1
			if first <= int(before) || first > int(after)+2 {
				t.Fatalf("the tail begins at %d; %d were published before it and %d after", first, before, after)
			}
			for n := first; n < first+3; {
				messages, err := tail.Next(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range messages {
					if m.MsgID != id(n) || m.Sequence != uint64(n) {
						t.Fatalf("got %s at %d, want version %d", m.MsgID, m.Sequence, n)
					}
					n++
				}
			}
			if err := tail.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A snapshot takes its time: nobody calls Next meanwhile, and everything is
// there afterwards, also when it is more than a batch and long after a request.
func TestTailWaitsForASlowReader(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	tail := tailing(t, ctx, b, TailOptions{Heartbeat: 20 * time.Millisecond, BatchMessages: 50})
	put(t, ctx, b, 1)
	expect(t, ctx, tail, 1, 1)
	pause(ctx, 600*time.Millisecond, nil) // the request of now has expired
	if _, _, err := b.PublishBatch(ctx, chained(2, 700)); err != nil {
		t.Fatal(err)
	}
	expect(t, ctx, tail, 2, 700)
}

func TestTailHeartbeatIsASignOfLife(t *testing.T) {
	srvBroker, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, srvBroker, deltas())
	var clock atomic.Int64
	clock.Store(1_000)
	b := open(t, Options{URL: srv.URL(), Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	tail := tailing(t, ctx, b, quick())
	if heard := tail.LastHeard(); heard != time.Unix(1_000, 0) {
		t.Errorf("heard at %v, want the moment of its confirmation", heard)
	}
	next, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := tail.Next(next)
		ended <- err
	}()
	for second := int64(2_000); second < 2_030; second++ { // two requests long, and nothing is published
		clock.Store(second)
		until(t, ctx, "a heartbeat", func() bool { return tail.LastHeard() == time.Unix(second, 0) })
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || errors.Is(err, ErrDisconnected) {
		t.Errorf("Next ends with %v, want its context's error", err)
	}
	put(t, ctx, srvBroker, 1)
	expect(t, ctx, tail, 1, 1)
}

// Everything that may make a tail miss messages ends it with ErrDisconnected, and
// it stays ended.
func TestTailThatMayHaveMissedSomethingIsDisconnected(t *testing.T) {
	tests := []struct {
		name string
		do   func(srv brokerServer)
	}{
		{"connection cut", func(s brokerServer) { s.Cut() }},
		{"server stopped", func(s brokerServer) { s.Stop() }},
		{"server restarted", func(s brokerServer) { s.Restart() }},
		{"server hangs", func(s brokerServer) { s.Hang() }},
		{"server is not heard", func(s brokerServer) { s.Mute() }},
		{"consumer deleted", func(s brokerServer) { s.DeleteConsumers(deltas().Name) }},
		{"stream deleted", func(s brokerServer) { s.DeleteStream(deltas().Name) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, srv := external(t)
			ctx := patience(t)
			ensure(t, ctx, b, deltas())
			tail := tailing(t, ctx, b, quick())
			put(t, ctx, b, 1)
			expect(t, ctx, tail, 1, 1)
			tt.do(srv)
			began := time.Now()
			messages, err := tail.Next(ctx)
			if !errors.Is(err, ErrDisconnected) || len(messages) > 0 {
				t.Errorf("got %d messages, %v; want ErrDisconnected", len(messages), err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			srv.Resume()
			if _, err := tail.Next(ctx); !errors.Is(err, ErrDisconnected) {
				t.Errorf("afterwards: %v, want ErrDisconnected", err)
			}
		})
	}
}

type brokerServer interface {
	Cut()
	Stop()
	Restart()
	Hang()
	Mute()
	DeleteConsumers(string) int
	DeleteStream(string)
}

// The server says that the consumer is gone, and that is enough: the heartbeats
// are so far apart that their absence would not be noticed in time. It is deleted
// before the first request, which nobody answers, or while one waits.
func TestTailBelievesTheServerThatTheConsumerIsGone(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		b, srv := external(t)
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		tail := tailing(t, ctx, b, TailOptions{Heartbeat: time.Minute})
		if waiting {
			put(t, ctx, b, 1)
			expect(t, ctx, tail, 1, 1) // the rest of this request waits
		}
		srv.DeleteConsumers(deltas().Name)
		if _, err := tail.Next(ctx); !errors.Is(err, ErrDisconnected) {
			t.Errorf("waiting %v: got %v, want ErrDisconnected", waiting, err)
		}
	}
}

// Somebody deletes a message before the tail gets it: what comes before the
// hole is delivered, then the hole is reported.
func TestTailReportsAHoleInTheStream(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	tail := tailing(t, ctx, b, TailOptions{})
	for n := 1; n <= 6; n++ {
		put(t, ctx, b, n)
	}
	srv.DeleteMessage(deltas().Name, 4)
	expect(t, ctx, tail, 1, 3)
	for range 2 {
		if messages, err := tail.Next(ctx); !errors.Is(err, ErrGap) || len(messages) > 0 {
			t.Errorf("got %d messages, %v; want ErrGap", len(messages), err)
		}
	}
}

// With a filter on a stream of several subjects, holes in its sequences are no gaps.
func TestTailOfOneSubjectOfMany(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, Stream{Name: "TWO", Subjects: []string{"two.>"}})
	tail, err := b.Tail(ctx, "TWO", "two.a", TailOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	for n := range 20 {
		if _, err := b.Publish(ctx, []string{"two.a", "two.b", "two.c"}[n%3], payload(n), PublishOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var got []uint64
	for len(got) < 7 {
		messages, err := tail.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			got = append(got, m.Sequence)
		}
	}
	for i, sequence := range got {
		if sequence != uint64(3*i+1) {
			t.Errorf("message %d has sequence %d, want %d", i, sequence, 3*i+1)
		}
	}
}

func TestTailNeedsAStreamAndAServer(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	if _, err := b.Tail(ctx, "NONE", "x", TailOptions{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no stream gives %v, want ErrNotFound", err)
	}
	absent := open(t, Options{URL: "nats://127.0.0.1:1"})
	if _, err := absent.Tail(ctx, "NONE", "x", TailOptions{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no server gives %v, want ErrUnavailable", err)
	}
}

func TestTailLeavesNoConsumerBehind(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	for range 5 {
		tail := tailing(t, ctx, b, TailOptions{})
		for range 2 {
			if err := tail.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tail.Next(ctx); !errors.Is(err, ErrDisconnected) {
			t.Errorf("Next of a closed tail gives %v, want ErrDisconnected", err)
		}
	}
	if info, err := b.StreamInfo(ctx, deltas().Name); err != nil || info.Consumers != 0 {
		t.Errorf("%d consumers left, %v", info.Consumers, err)
	}
}

func TestTailCloseEndsANextThatWaits(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	tail := tailing(t, ctx, b, TailOptions{Heartbeat: time.Minute})
	ended := make(chan error, 1)
	go func() {
		_, err := tail.Next(ctx)
		ended <- err
	}()
	if err := tail.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", err)
	}
}

// Closing the Broker ends a Next that waits.
func TestTailEndsWithTheBroker(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		tail := tailing(t, ctx, b, TailOptions{})
		ended := make(chan error, 1)
		go func() {
			_, err := tail.Next(ctx)
			ended <- err
		}()
		until(t, ctx, "it waits", func() bool {
			i, err := b.StreamInfo(ctx, deltas().Name)
			return err == nil && i.Consumers == 1
		})
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected", err)
		}
	})
}
