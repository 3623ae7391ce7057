package broker

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
)

// heard collects what a subscription gets.
type heard struct {
	mu    sync.Mutex
	lines []string
}

func (h *heard) add(subject string, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, subject+" "+string(data))
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.lines)
}

func TestSubscribeGetsWhatIsNotified(t *testing.T) {
	both(t, func(t *testing.T, b *Broker) {
		ctx := patience(t)
		var prices, other heard
		stop := must.Get(b.Subscribe("pricing.*", prices.add))(t)
		stopOther := must.Get(b.Subscribe("other", other.add))(t)
		defer stopOther()
		until(t, ctx, "subscribed", func() bool { return subscribed(b) == 2 })
		must.OK(t, b.flush(ctx))
		want := []string{"pricing.AAPL 1", "pricing.MSFT 2", "pricing.AAPL 3"}
		for _, m := range [][2]string{
			{"pricing.AAPL", "1"}, {"pricing.MSFT", "2"}, {"pricing", "x"},
			{"pricing.a.b", "x"}, {"pricing.AAPL", "3"},
		} {
			must.OK(t, b.Notify(m[0], []byte(m[1])))
		}
		until(t, ctx, "all heard", func() bool { return len(prices.all()) >= 3 })
		stop()
		stop() // a second call does no harm
		must.OK(t, errors.Join(b.Notify("pricing.AAPL", []byte("4")),
			b.Notify("other", nil), b.flush(ctx)))
		until(t, ctx, "the other still hears", func() bool { return len(other.all()) == 1 })
		if got := prices.all(); !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
	})
}

// subscribed counts the connection's subscriptions.
func subscribed(b *Broker) int {
	b.mu.Lock()
	conn := b.conn
	b.mu.Unlock()
	if conn == nil {
		return 0
	}
	return conn.NumSubscriptions()
}

func TestSubscribeBeforeTheServerIsThereAndAfterItWasAway(t *testing.T) {
	srv := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
	b := open(t, Options{URL: srv.URL()})
	ctx := patience(t)
	var prices heard
	stop, err := b.Subscribe("pricing.*", prices.add)
	must.OK(t, err)
	defer stop()
	forgotten, err := b.Subscribe("pricing.*", func(string, []byte) { t.Error("called after stop") })
	must.OK(t, err)
	forgotten()
	for round := range 3 {
		srv.Restart()
		until(t, ctx, "heard", func() bool {
			// Messages sent before the subscription is renewed are lost, as core NATS allows.
			return b.Notify("pricing.AAPL", []byte{byte('0' + round)}) == nil && b.flush(ctx) == nil &&
				slices.Contains(prices.all(), "pricing.AAPL "+string(rune('0'+round)))
		})
		srv.Stop()
		until(t, ctx, "gone", func() bool {
			return errors.Is(b.Notify("pricing.AAPL", nil), ErrUnavailable)
		})
	}
}

// A link that is dead without being closed takes what is written to it. Notify succeeds only when
// the server has answered.
func TestNotifyOverADeadLinkFails(t *testing.T) {
	b, srv := external(t)
	ctx := patience(t)
	must.OK(t, b.Notify("x", nil))
	sent := func() uint64 { return b.conn.Stats().OutMsgs }
	before := sent()
	srv.Hang()
	defer srv.Resume()
	notified := make(chan error, 1)
	go func() { notified <- b.Notify("x", nil) }()
	until(t, ctx, "it is written", func() bool { return sent() > before })
	srv.Cut()
	if err := <-notified; !errors.Is(err, ErrUnavailable) {
		t.Errorf("a message that did not arrive gives %v, want ErrUnavailable", err)
	}
}

func TestSubscribeRefusesBadSubjects(t *testing.T) {
	b := open(t, Options{URL: "nats://127.0.0.1:1"})
	for _, subject := range []string{"", "a..b", ".a", "a.", "a b", "a.>.b", "a\r\nPUB x"} {
		if _, err := b.Subscribe(subject, func(string, []byte) {}); !errors.Is(err, nats.ErrBadSubject) {
			t.Errorf("%q gives %v", subject, err)
		}
	}
}

// fn is never called again once stop has returned, not even for a message that had arrived before.
func TestSubscribeStopWaitsForTheCallback(t *testing.T) {
	b := open(t, Options{Dir: t.TempDir()})
	ctx := patience(t)
	for range 20 {
		var mu sync.Mutex
		stopped, calls := false, 0
		stop := must.Get(b.Subscribe("x", func(string, []byte) {
			mu.Lock()
			defer mu.Unlock()
			calls++
			if stopped {
				t.Error("called after stop")
			}
		}))(t)
		must.OK(t, b.flush(ctx))
		for range 200 {
			must.OK(t, b.Notify("x", nil))
		}
		until(t, ctx, "a call", func() bool { mu.Lock(); defer mu.Unlock(); return calls > 0 })
		stop()
		mu.Lock()
		stopped = true
		mu.Unlock()
	}
}

// flush waits until the server has received everything sent before.
func (b *Broker) flush(ctx context.Context) error {
	s, err := b.session(ctx)
	if err != nil {
		return err
	}
	return s.conn.FlushWithContext(ctx)
}
