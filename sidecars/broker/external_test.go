package broker

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
)

func TestOpenRefusesWhatIsNoURLAndShowsNoPassword(t *testing.T) {
	for _, url := range []string{
		"nats://u:s3cret@host:port", "nats://u:s3cret@[::1", "http://u:s3cret@host:4222", "u:s3cret@host",
		"nats://u:s3cret@", "nats://host,amqp://u:s3cret@host", "nats://u:s3cret@host/path",
		"nats://u:s3cret@host?x=1", "nats://h, ,nats://u:s3cret@h", "nats://u:s3c%zzret@host",
	} {
		b, err := Open(Options{URL: url})
		if err == nil {
			b.Close()
			t.Errorf("%s is accepted", url)
		} else if strings.Contains(err.Error(), "s3c") {
			t.Errorf("the password is in %v", err)
		}
	}
	if _, err := Open(Options{}); err == nil {
		t.Error("neither URL nor Dir is accepted")
	}
	for _, url := range []string{"nats://host", "tls://u:p@host:4443",
		"nats://a:1, nats://b:2,tls://[::1]:3"} {
		b, err := Open(Options{URL: url})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		b.Close()
	}
}

// The Broker does not connect before the first use.
func TestExternalConnectsOnFirstUse(t *testing.T) {
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	first := make(chan struct{})
	wg.Go(func() {
		conn, err := listener.Accept()
		if err == nil {
			conn.Close()
			listener.Close()
		}
		close(first)
	})
	b := open(t, Options{URL: "nats://" + listener.Addr().String()})
	if ready, detail := b.State(); ready || !strings.Contains(detail, "no connection made yet") {
		t.Errorf("State is %v %q", ready, detail)
	}
	b.mu.Lock()
	if b.dialed != nil {
		t.Error("Open has begun to connect")
	}
	b.mu.Unlock()
	if _, err := b.StreamInfo(patience(t), "X"); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	<-first
	if ready, detail := b.State(); ready ||
		!strings.Contains(detail, "not connected to "+listener.Addr().String()) {
		t.Errorf("State is %v %q", ready, detail)
	}
}

func TestExternalComesLateGoesAndComesBack(t *testing.T) {
	srv := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
	var log record
	b := open(t, Options{URL: srv.URL(), Logger: log.logger()})
	ctx := patience(t)
	for range 3 {
		if err := b.EnsureStream(ctx, deltas()); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
	}
	srv.Restart()
	until(t, ctx, "connected", func() bool { return b.EnsureStream(ctx, deltas()) == nil })
	put(t, ctx, b, 1)
	for n := 2; n <= 4; n++ {
		srv.Stop()
		until(t, ctx, "not ready", func() bool { ready, _ := b.State(); return !ready })
		if _, err := b.Publish(ctx, deltaSubject, payload(n),
			PublishOptions{MsgID: id(n)}); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
		srv.Restart()
		until(t, ctx, "ready", func() bool { ready, _ := b.State(); return ready })
		until(t, ctx, "published", func() bool {
			_, err := b.Publish(ctx, deltaSubject, payload(n), PublishOptions{MsgID: id(n)})
			return err == nil
		})
	}
	holds(t, ctx, b, 4)
	if n := strings.Count(log.String(), "broker ready"); n != 4 {
		t.Errorf("%d connections are logged, want 4:\n%s", n, log.String())
	}
}

func TestExternalCredentialsAreUsedAndNeverShown(t *testing.T) {
	srv := brokertest.ExternalWith(t, brokertest.Config{User: "desk", Password: "s3cret"})
	ctx := patience(t)
	var log record
	b := open(t, Options{URL: srv.URL(), Logger: log.logger()})
	ensure(t, ctx, b, deltas())
	put(t, ctx, b, 1)

	wrong := strings.Replace(srv.URL(), "s3cret", "s3cretly", 1)
	refused := open(t, Options{URL: wrong, Logger: log.logger()})
	err := refused.EnsureStream(ctx, deltas())
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("the wrong password gives %v, want ErrUnavailable", err)
	}
	until(t, ctx, "the refusal shows", func() bool {
		_, detail := refused.State()
		return strings.Contains(strings.ToLower(detail), "authorization")
	})
	_, detail := refused.State()
	_, good := b.State()
	for _, text := range []string{log.String(), err.Error(), detail, good} {
		if strings.Contains(text, "s3cret") || strings.Contains(text, "desk") {
			t.Errorf("credentials in %q", text)
		}
	}
}

// A server that accepts connections and sends nothing does not delay Close, nor a call beyond its
// context.
func TestExternalThatHangsFromTheStart(t *testing.T) {
	srv := brokertest.External(t)
	srv.Hang()
	b := open(t, Options{URL: srv.URL()})
	ctx, cancel := context.WithTimeout(patience(t), 50*time.Millisecond)
	defer cancel()
	if err := b.EnsureStream(ctx, deltas()); !errors.Is(err, ErrUnavailable) ||
		errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable, with the deadline in words only", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// A server that stops reading in the middle of a large batch blocks writes. The writes end soon,
// and so do the call and Close.
func TestExternalThatStopsReading(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	ensure(t, ctx, b, deltas())
	srv.Hang()
	out := make([]Outgoing, 200)
	for i := range out {
		out[i] = Outgoing{Subject: deltaSubject, Data: make([]byte, 500<<10)}
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	acked, _, err := b.PublishBatch(short, out)
	if acked != 0 || !errors.Is(err, ErrUnavailable) {
		t.Errorf("%d acknowledged, %v; want ErrUnavailable", acked, err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// With tls:// a server without TLS gets no data, in particular no password.
func TestExternalWithoutTLSIsRefused(t *testing.T) {
	srv := brokertest.ExternalWith(t, brokertest.Config{User: "desk", Password: "s3cret"})
	b := open(t, Options{URL: strings.Replace(srv.URL(), "nats://", "tls://", 1)})
	ctx := patience(t)
	if err := b.EnsureStream(ctx, deltas()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	until(t, ctx, "State names the cause", func() bool {
		ready, detail := b.State()
		return !ready && strings.Contains(detail, "secure connection not available")
	})
}

// nats.go reports a server that cannot be reached, but not one that comes back and refuses the
// client: State names that cause too.
func TestExternalThatComesBackAndRefusesIsNamed(t *testing.T) {
	srv := brokertest.ExternalWith(t,
		brokertest.Config{User: "desk", Password: "s3cret", Stopped: true})
	b := open(t, Options{URL: strings.Replace(srv.URL(), "s3cret", "another", 1)})
	ctx := patience(t)
	if err := b.EnsureStream(ctx, deltas()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	srv.Restart()
	until(t, ctx, "State names the refusal", func() bool {
		ready, detail := b.State()
		return !ready && strings.Contains(strings.ToLower(detail), "authorization")
	})
}

func TestClosedBrokerAnswersEveryCall(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		ensure(t, ctx, b, deltas())
		for range 2 {
			must.OK(t, b.Close())
		}
		if ready, detail := b.State(); ready || detail != "closed" {
			t.Errorf("State is %v %q", ready, detail)
		}
		_, published := b.Publish(ctx, deltaSubject, nil, PublishOptions{})
		_, info := b.StreamInfo(ctx, deltas().Name)
		_, read := b.Message(ctx, deltas().Name, 1)
		_, following := b.Follow(ctx, deltas().Name, "", FollowOptions{})
		_, subscribed := b.Subscribe("x", func(string, []byte) {})
		ensured, notified := b.EnsureStream(ctx, deltas()), b.Notify("x", nil)
		for i, err := range []error{published, info, read, following, subscribed, ensured, notified} {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrUnavailable) {
				t.Errorf("call %d gives %v, want ErrClosed", i, err)
			}
		}
		c := ConsumerConfig{Stream: deltas(), Durable: "d"}
		err := b.Consume(ctx, c, func(context.Context, []Message) error { return nil })
		if err != nil {
			t.Errorf("Consume gives %v, want nil as after its context's end", err)
		}
	})
}
