package broker

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
)

func TestPublishIsAcknowledgedByTheStream(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		for n := 1; n <= 3; n++ {
			want := Ack{Stream: deltas().Name, Sequence: uint64(n)}
			if got := put(t, ctx, b, n); got != want {
				t.Errorf("ack %+v, want %+v", got, want)
			}
		}
		holds(t, ctx, b, 3)
	})
}

func TestPublishTwiceInsideTheWindowIsADuplicate(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		put(t, ctx, b, 1)
		put(t, ctx, b, 2)
		want := Ack{Stream: deltas().Name, Sequence: 1, Duplicate: true}
		if got := put(t, ctx, b, 1); got != want {
			t.Errorf("ack %+v, want %+v", got, want)
		}
		holds(t, ctx, b, 2)
	})
}

func TestPublishConditionsAreTheStreams(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	seq := func(n uint64) *uint64 { return &n }
	put(t, ctx, b, 1)
	tests := []struct {
		name string
		o    PublishOptions
		want error
	}{
		{"not the first", PublishOptions{MsgID: "x", ExpectLastSeq: seq(0)}, ErrSequence},
		{"another last sequence", PublishOptions{MsgID: "x", ExpectLastSeq: seq(7)}, ErrSequence},
		{"another last id", PublishOptions{MsgID: "x", ExpectLastMsgID: id(7)}, ErrSequence},
		{"the last id", PublishOptions{MsgID: id(2), ExpectLastMsgID: id(1)}, nil},
		{"the last sequence", PublishOptions{MsgID: id(3), ExpectLastSeq: seq(2)}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := b.Publish(ctx, deltaSubject, payload(1), tt.o)
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := b.Publish(ctx, deltaSubject, nil, PublishOptions{ExpectStream: "OTHER"}); err == nil {
		t.Error("another stream than the expected one answered, and there was no error")
	}
	if info, err := b.StreamInfo(ctx, deltas().Name); err != nil || info.LastSeq != 3 {
		t.Errorf("stream ends at %d, %v; want 3", info.LastSeq, err)
	}
}

// The expected last id is compared with the stream's last message, so it also holds after the
// window has dropped all ids, and after a restart.
func TestPublishExpectedIDHoldsBeyondTheWindowAndARestart(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	s := deltas()
	s.Duplicates = 100 * time.Millisecond
	ensure(t, ctx, b, s)
	put(t, ctx, b, 1)
	until(t, ctx, "the window forgets account:1", func() bool {
		return !put(t, ctx, b, 1).Duplicate
	})
	srv.Restart()
	until(t, ctx, "reconnected", func() bool { return b.EnsureStream(ctx, s) == nil })
	_, err := b.Publish(ctx, deltaSubject, nil, PublishOptions{MsgID: id(3), ExpectLastMsgID: id(2)})
	if !errors.Is(err, ErrSequence) {
		t.Errorf("a gap is answered with %v, want ErrSequence", err)
	}
	if _, err := b.Publish(ctx, deltaSubject, nil,
		PublishOptions{MsgID: id(2), ExpectLastMsgID: id(1)}); err != nil {
		t.Error(err)
	}
}

// A publisher repeats a message after an unknown outcome. The condition it gave decides whether it
// learns of the duplicate.
func TestPublishDuplicatesComeBeforeTheLastIDAndAfterTheLastSequence(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	if _, _, err := b.PublishBatch(ctx, chained(1, 5)); err != nil {
		t.Fatal(err)
	}
	ack, err := b.Publish(ctx, deltaSubject, payload(3),
		PublishOptions{MsgID: id(3), ExpectLastMsgID: id(2)})
	if want := (Ack{Stream: deltas().Name, Sequence: 3, Duplicate: true}); err != nil || ack != want {
		t.Errorf("by id: got %+v, %v; want %+v", ack, err, want)
	}
	two := uint64(2)
	_, err = b.Publish(ctx, deltaSubject, payload(3),
		PublishOptions{MsgID: id(3), ExpectLastSeq: &two})
	if !errors.Is(err, ErrSequence) {
		t.Errorf("by sequence: got %v, want ErrSequence", err)
	}
}

func TestPublishWithoutAStreamIsUnavailable(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		if _, err := b.Publish(patience(t), "without.listener", nil,
			PublishOptions{}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("got %v, want ErrUnavailable", err)
		}
	})
}

func TestPublishEndsWithItsContextWhileTheServerHangs(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	srv.Hang()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := b.Publish(short, deltaSubject, payload(1), PublishOptions{MsgID: id(1)})
	if !errors.Is(err, ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable, with the deadline in words only", err)
	}
	srv.Resume()
	put(t, ctx, b, 1) // whether or not the first attempt was stored in the end
	holds(t, ctx, b, 1)
}

// The server stores the message, and the connection breaks before the acknowledgement arrives. The
// publisher does not know the outcome and publishes again, and the stream has the message once.
func TestPublishKilledBeforeTheAckIsStoredOnce(t *testing.T) {
	b, srv := external(t)
	witness := open(t, Options{URL: srv.URL()})
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	rounds := size(20, 8)
	for n := 1; n <= rounds; n++ {
		until(t, ctx, "connected", func() bool {
			_, err := b.StreamInfo(ctx, deltas().Name)
			_, err2 := witness.StreamInfo(ctx, deltas().Name)
			return err == nil && err2 == nil
		})
		srv.Mute()
		failed := make(chan error, 1)
		go func() {
			_, err := b.Publish(ctx, deltaSubject, payload(n), PublishOptions{MsgID: id(n)})
			failed <- err
		}()
		srv.AwaitLastSequence(ctx, deltas().Name, uint64(n))
		srv.Cut()
		srv.Resume()
		if err := <-failed; !errors.Is(err, ErrUnavailable) {
			t.Fatalf("round %d: publish without an answer gives %v, want ErrUnavailable", n, err)
		}
		until(t, ctx, "published again", func() bool {
			ack, err := b.Publish(ctx, deltaSubject, payload(n), PublishOptions{MsgID: id(n)})
			if err == nil && (!ack.Duplicate || ack.Sequence != uint64(n)) {
				t.Fatalf("round %d: ack %+v, want the duplicate of sequence %d", n, ack, n)
			}
			return err == nil
		})
	}
	holds(t, ctx, b, rounds)
}

func TestPublishToAFullServerIsErrFullAndLosesNothing(t *testing.T) {
	const limit = 256 << 10
	t.Run("embedded", func(t *testing.T) {
		fill(t, open(t, Options{Dir: t.TempDir(), StoreLimitBytes: limit}), deltas())
	})
	t.Run("external", func(t *testing.T) {
		srv := brokertest.ExternalWith(t, brokertest.Config{StoreLimitBytes: limit})
		fill(t, open(t, Options{URL: srv.URL()}), deltas())
	})
	t.Run("stream at its own limit", func(t *testing.T) {
		b, _ := external(t)
		s := deltas()
		s.MaxBytes, s.RefuseWhenFull = limit, true
		fill(t, b, s)
	})
}

// fill publishes until there is no space. It checks that all acknowledged messages are stored and
// that further refusals do no harm.
func fill(t *testing.T, b *Broker, s Stream) {
	ctx := patience(t)
	ensure(t, ctx, b, s)
	big := make([]byte, 16<<10)
	var acked uint64
	for n := 1; ; n++ {
		ack, err := b.Publish(ctx, deltaSubject, big, PublishOptions{MsgID: id(n)})
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || ack.Sequence != uint64(n) || n > 100 {
			t.Fatalf("message %d: %+v, %v", n, ack, err)
		}
		acked = ack.Sequence
	}
	if _, err := b.Publish(ctx, deltaSubject, big,
		PublishOptions{MsgID: "again"}); !errors.Is(err, ErrFull) {
		t.Errorf("the second refusal is %v, want ErrFull", err)
	}
	info, err := b.StreamInfo(ctx, s.Name)
	if err != nil || info.FirstSeq != 1 || info.LastSeq != acked || acked < 10 {
		t.Errorf("stream holds %d to %d, %v; acknowledged were %d",
			info.FirstSeq, info.LastSeq, err, acked)
	}
}

// A server that was full continues where it stopped once there is space: the publisher keeps its
// rows and repeats them.
func TestPublishGoesOnWhenTheFullServerHasSpace(t *testing.T) {
	dir := t.TempDir()
	ctx := patience(t)
	small := open(t, Options{Dir: dir, StoreLimitBytes: 64 << 10})
	ensure(t, ctx, small, deltas())
	out := chained(1, 2000)
	acked, _, err := small.PublishBatch(ctx, out)
	if !errors.Is(err, ErrFull) || acked == 0 || acked == len(out) {
		t.Fatalf("%d of %d acknowledged, %v; want ErrFull in between", acked, len(out), err)
	}
	must.OK(t, small.Close())
	large := open(t, Options{Dir: dir})
	more, acks, err := large.PublishBatch(ctx, out[acked:])
	if err != nil || acked+more != len(out) {
		t.Fatalf("%d and %d of %d acknowledged, %v", acked, more, len(out), err)
	}
	if last := acks[more-1]; last.Sequence != uint64(len(out)) || last.Duplicate {
		t.Errorf("the last ack is %+v, want sequence %d", last, len(out))
	}
	holds(t, ctx, large, len(out))
}

func TestPublishBatchStopsAtTheFirstFailure(t *testing.T) {
	b, _ := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	out := chained(1, 1500)
	out[700].ExpectLastMsgID = "another:id"
	acked, acks, err := b.PublishBatch(ctx, out)
	if acked != 700 || len(acks) != 700 || !errors.Is(err, ErrSequence) {
		t.Fatalf("%d acknowledged, %d acks, %v; want 700 and ErrSequence", acked, len(acks), err)
	}
	for i, ack := range acks {
		if want := (Ack{Stream: deltas().Name, Sequence: uint64(i + 1)}); ack != want {
			t.Fatalf("ack %d is %+v, want %+v", i, ack, want)
		}
	}
	holds(t, ctx, b, 700)
}

func TestPublishBatchOfNothingIsNothing(t *testing.T) {
	b := open(t, Options{URL: "nats://127.0.0.1:1"})
	if acked, acks, err := b.PublishBatch(patience(t), nil); acked != 0 || acks != nil || err != nil {
		t.Errorf("got %d, %v, %v", acked, acks, err)
	}
}

// Thousands of messages are published in batches while, at random, the connection is cut and the
// server is muted and restarted. The publisher continues after the acknowledged messages, and the
// stream has each message once and in order.
func TestPublishBatchKeepsOrderThroughFailures(t *testing.T) {
	total, batch := size(10_000, 2500), 700
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 3))
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	out := chained(1, total)
	failures, duplicates := 0, 0
	for done := 0; done < total; {
		until(t, ctx, "connected", func() bool { return b.EnsureStream(ctx, deltas()) == nil })
		cutting := make(chan struct{})
		what := "nothing"
		switch random.IntN(4) {
		case 0:
			what = "cut"
			at := uint64(min(done+random.IntN(batch), total))
			go func() {
				defer close(cutting)
				srv.AwaitLastSequence(ctx, deltas().Name, at)
				srv.Cut()
			}()
		case 1:
			what = "mute and cut"
			srv.Mute()
			at := uint64(done + 1)
			go func() {
				defer close(cutting)
				srv.AwaitLastSequence(ctx, deltas().Name, at)
				srv.Cut()
				srv.Resume()
			}()
		case 2:
			what = "restart"
			at := uint64(min(done+random.IntN(batch), total))
			go func() {
				defer close(cutting)
				srv.AwaitLastSequence(ctx, deltas().Name, at)
				srv.Restart()
			}()
		default:
			close(cutting)
		}
		for !idle(cutting) || what == "nothing" {
			end := min(done+batch, total)
			acked, acks, err := b.PublishBatch(ctx, out[done:end])
			for i, ack := range acks {
				if ack.Sequence != uint64(done+i+1) {
					t.Fatalf("%s: message %d has sequence %d", what, done+i+1, ack.Sequence)
				}
				if ack.Duplicate {
					duplicates++
				}
			}
			if acked != len(acks) || (err == nil) != (acked == end-done) {
				t.Fatalf("%s: %d acknowledged, %d acks, %v", what, acked, len(acks), err)
			}
			if err != nil {
				failures++
				if !errors.Is(err, ErrUnavailable) {
					t.Fatalf("%s: %v", what, err)
				}
				pause(ctx, 5*time.Millisecond, nil)
			}
			if done += acked; done == total || what == "nothing" {
				break
			}
		}
		if done == total {
			<-cutting
		}
	}
	until(t, ctx, "connected", func() bool { return b.EnsureStream(ctx, deltas()) == nil })
	holds(t, ctx, b, total)
	t.Logf("%d failed batches, %d duplicates", failures, duplicates)
}

func idle(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
