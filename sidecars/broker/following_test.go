package broker

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/ring/must"
)

// calm returns options with heartbeats that a busy machine does not miss, and so does not detect
// their absence in time.
func calm() FollowOptions { return FollowOptions{Heartbeat: time.Minute} }

func followed(t *testing.T, ctx context.Context, b *Broker, o FollowOptions) *Following {
	t.Helper()
	following := must.Get(b.Follow(ctx, deltas().Name, deltaSubject, o))(t)
	t.Cleanup(func() {
		if err := following.Close(); err != nil {
			t.Error(err)
		}
	})
	return following
}

// expect reads versions from..to, exactly and in order.
func expect(t *testing.T, ctx context.Context, following *Following, from, to int) {
	t.Helper()
	for n := from; n <= to; {
		messages, err := following.Next(ctx)
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

func TestFollowingDeliversOnlyWhatIsNew(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		empty := followed(t, ctx, b, calm())
		if last := empty.LastSequence(); last != 0 {
			t.Errorf("an empty stream ends at %d, want 0", last)
		}
		if _, _, err := b.PublishBatch(ctx, chained(1, 1000)); err != nil {
			t.Fatal(err)
		}
		following := followed(t, ctx, b, calm())
		if last := following.LastSequence(); last != 1000 {
			t.Errorf("the stream ends at %d, want 1000", last)
		}
		if _, _, err := b.PublishBatch(ctx, chained(1001, 2000)); err != nil {
			t.Fatal(err)
		}
		expect(t, ctx, following, 1001, 2000)
		expect(t, ctx, empty, 1, 2000)
	})
}

// Every message published after Follow has returned is delivered while another goroutine
// publishes all the time: the first message follows LastSequence.
func TestFollowingMissesNothingAfterItsCreation(t *testing.T) {
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
				if _, err := b.Publish(ctx, deltaSubject, payload(n),
					PublishOptions{MsgID: id(n)}); err != nil {
					t.Error(err)
					return
				}
				published.Store(int64(n))
			}
		})
		for range size(100, 40) {
			before := published.Load()
			following := followed(t, ctx, b, calm())
			after := published.Load()
			first := int(following.LastSequence()) + 1
			if first <= int(before) || first > int(after)+2 {
				t.Fatalf("the following begins at %d; %d were published before it and %d after", first,
					before, after)
			}
			for n := first; n < first+3; {
				messages := must.Get(following.Next(ctx))(t)
				for _, m := range messages {
					if m.MsgID != id(n) || m.Sequence != uint64(n) {
						t.Fatalf("got %s at %d, want version %d", m.MsgID, m.Sequence, n)
					}
					n++
				}
			}
			must.OK(t, following.Close())
		}
	})
}

// A snapshot takes its time. Next is not called meanwhile, and every message is there afterwards,
// also when there are more than a batch, and long after a request.
func TestFollowingWaitsForASlowReader(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	o := calm()
	o.BatchMessages = 50
	following := followed(t, ctx, b, o)
	// As a Next with more frequent heartbeats does.
	must.OK(t, following.p.ask(50, 300*time.Millisecond, 20*time.Millisecond))
	put(t, ctx, b, 1)
	expect(t, ctx, following, 1, 1)
	pause(ctx, 600*time.Millisecond, nil) // the current request has expired
	if _, _, err := b.PublishBatch(ctx, chained(2, 700)); err != nil {
		t.Fatal(err)
	}
	expect(t, ctx, following, 2, 700)
}

func TestFollowingHeartbeatIsASignOfLife(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	heartbeat := 100 * time.Millisecond
	for !beats(t, ctx, srv.URL(), heartbeat) {
		if heartbeat *= 2; heartbeat > 5*time.Second {
			t.Fatal("heartbeats do not come")
		}
	}
}

// The age of LastHeard must not change when the wall clock is set.
func TestFollowingLastHeardIsMonotonic(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	following := followed(t, ctx, b, calm())
	if heard := following.LastHeard(); heard == heard.Round(0) { // Round(0) drops the reading
		t.Errorf("%v has no reading of the monotonic clock", heard)
	}
}

// beats follows the heartbeats of two requests. It returns false when the machine was so busy that
// three of them were late.
func beats(t *testing.T, ctx context.Context, url string, heartbeat time.Duration) bool {
	t.Helper()
	var clock atomic.Int64
	clock.Store(1_000)
	b := open(t, Options{URL: url, Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	following := followed(t, ctx, b, FollowOptions{Heartbeat: heartbeat})
	if heard := following.LastHeard(); heard != time.Unix(1_000, 0) {
		t.Errorf("heard at %v, want the moment of its confirmation", heard)
	}
	next, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := nextOf(next, following)
	// This is the time of two requests, and nothing is published.
	for second := int64(2_000); second < 2_030; second++ {
		clock.Store(second)
		until(t, ctx, "a heartbeat", func() bool {
			return following.LastHeard() == time.Unix(second, 0) || len(ended) > 0
		})
	}
	cancel()
	err := <-ended
	if errors.Is(err, ErrDisconnected) {
		return false
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Next ends with %v, want its context's error", err)
	}
	following.o.Heartbeat = time.Minute
	info, err := b.StreamInfo(ctx, deltas().Name)
	must.OK(t, err)
	n := int(info.LastSeq) + 1
	put(t, ctx, b, n)
	expect(t, ctx, following, n, n)
	return true
}

// Every event that may make a following miss messages ends it with ErrDisconnected, and it stays
// ended.
func TestFollowingThatMayHaveMissedSomethingIsDisconnected(t *testing.T) {
	const quick = 100 * time.Millisecond // for faults that only missing heartbeats reveal
	tests := []struct {
		name      string
		heartbeat time.Duration
		do        func(srv brokerServer)
	}{
		{"connection cut", time.Minute, func(s brokerServer) { s.Cut() }},
		{"server stopped", time.Minute, func(s brokerServer) { s.Stop() }},
		{"server restarted", time.Minute, func(s brokerServer) { s.Restart() }},
		{"server hangs", quick, func(s brokerServer) { s.Hang() }},
		{"server is not heard", quick, func(s brokerServer) { s.Mute() }},
		{"consumer deleted", time.Minute, func(s brokerServer) { s.DeleteConsumers(deltas().Name) }},
		// The server stops the stream's sender beside the notice, which may be lost with it.
		{"stream deleted", quick, func(s brokerServer) { s.DeleteStream(deltas().Name) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, srv := external(t)
			ctx := patience(t)
			ensure(t, ctx, b, deltas())
			following := followed(t, ctx, b, calm())
			put(t, ctx, b, 1)
			expect(t, ctx, following, 1, 1)
			tt.do(srv)
			following.o.Heartbeat = tt.heartbeat
			messages, err := following.Next(ctx)
			if !errors.Is(err, ErrDisconnected) || len(messages) > 0 {
				t.Errorf("got %d messages, %v; want ErrDisconnected", len(messages), err)
			}
			srv.Resume()
			if _, err := following.Next(ctx); !errors.Is(err, ErrDisconnected) {
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

// The server reports that the consumer is gone, and that is enough: the heartbeats are so far apart
// that their absence would not be noticed in time. The consumer is deleted before the first
// request, which gets no answer, or while a request waits.
func TestFollowingBelievesTheServerThatTheConsumerIsGone(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		b, srv := external(t)
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		following := followed(t, ctx, b, calm())
		if waiting {
			put(t, ctx, b, 1)
			expect(t, ctx, following, 1, 1) // the rest of this request waits
		}
		srv.DeleteConsumers(deltas().Name)
		if _, err := following.Next(ctx); !errors.Is(err, ErrDisconnected) {
			t.Errorf("waiting %v: got %v, want ErrDisconnected", waiting, err)
		}
	}
}

// Another client deletes a message before the following gets it: the messages before the hole are
// delivered, then the hole is reported.
func TestFollowingReportsAHoleInTheStream(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	following := followed(t, ctx, b, calm())
	for n := 1; n <= 6; n++ {
		put(t, ctx, b, n)
	}
	srv.DeleteMessage(deltas().Name, 4)
	expect(t, ctx, following, 1, 3)
	for range 2 {
		if messages, err := following.Next(ctx); !errors.Is(err, ErrGap) || len(messages) > 0 {
			t.Errorf("got %d messages, %v; want ErrGap", len(messages), err)
		}
	}
}

// With a filter on a stream of several subjects, holes in its sequences are no gaps.
func TestFollowingOfOneSubjectOfMany(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, Stream{Name: "TWO", Subjects: []string{"two.>"}})
	following := must.Get(b.Follow(ctx, "TWO", "two.a", calm()))(t)
	defer following.Close()
	for n := range 20 {
		must.Get(b.Publish(ctx, []string{"two.a", "two.b", "two.c"}[n%3], payload(n),
			PublishOptions{}))(t)
	}
	var got []uint64
	for len(got) < 7 {
		messages := must.Get(following.Next(ctx))(t)
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

func TestFollowingNeedsAStreamAndAServer(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	if _, err := b.Follow(ctx, "NONE", "x", FollowOptions{}); !errors.Is(err, ErrNotFound) {
		t.Errorf("no stream gives %v, want ErrNotFound", err)
	}
	absent := open(t, Options{URL: "nats://127.0.0.1:1"})
	if _, err := absent.Follow(ctx, "NONE", "x", FollowOptions{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("no server gives %v, want ErrUnavailable", err)
	}
}

func TestFollowingLeavesNoConsumerBehind(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	for range 5 {
		following := followed(t, ctx, b, FollowOptions{})
		for range 2 {
			must.OK(t, following.Close())
		}
		if _, err := following.Next(ctx); !errors.Is(err, ErrDisconnected) {
			t.Errorf("Next of a closed following gives %v, want ErrDisconnected", err)
		}
	}
	if info, err := b.StreamInfo(ctx, deltas().Name); err != nil || info.Consumers != 0 {
		t.Errorf("%d consumers left, %v", info.Consumers, err)
	}
}

// nextOf calls Next in a separate goroutine and returns a channel for its error.
func nextOf(ctx context.Context, following *Following) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := following.Next(ctx)
		ended <- err
	}()
	return ended
}

func TestFollowingCloseEndsANextThatWaits(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	following := followed(t, ctx, b, calm())
	ended := nextOf(ctx, following)
	must.OK(t, following.Close())
	if err := <-ended; !errors.Is(err, ErrDisconnected) {
		t.Errorf("got %v, want ErrDisconnected", err)
	}
}

// Closing the Broker ends a Next that waits.
func TestFollowingEndsWithTheBroker(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		ended := nextOf(ctx, followed(t, ctx, b, calm()))
		until(t, ctx, "it waits", func() bool {
			i, err := b.StreamInfo(ctx, deltas().Name)
			return err == nil && i.Consumers == 1
		})
		must.OK(t, b.Close())
		if err := <-ended; !errors.Is(err, ErrDisconnected) {
			t.Errorf("got %v, want ErrDisconnected", err)
		}
	})
}
