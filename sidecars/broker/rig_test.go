package broker

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"posttrade/ring/must"
	"posttrade/ring/waittest"
	"posttrade/sidecars/broker/brokertest"
)

// TestMain fails the run when a Broker, a server or a proxy leaves a goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deltas returns a stream like those of the control feeds.
func deltas() Stream {
	return Stream{Name: "SVC_CONTROL_ACCOUNT", Subjects: []string{deltaSubject},
		Duplicates: 2 * time.Minute}
}

const deltaSubject = "svc.control.account.deltas"

// patience returns a context that fails the test instead of letting it hang.
func patience(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// until polls a condition that no channel announces.
func until(t testing.TB, ctx context.Context, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !reached() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// open makes a Broker that is closed before the server and the folder are removed. It waits for the
// embedded server; Open itself waits two seconds only.
func open(t testing.TB, o Options) *Broker {
	t.Helper()
	b := opened(t, o)
	until(t, patience(t), "the embedded server runs", func() bool {
		ready, _ := b.State()
		return ready || o.URL != ""
	})
	return b
}

// opened returns a Broker as Open leaves it.
func opened(t testing.TB, o Options) *Broker {
	t.Helper()
	b := must.Get(Open(o))(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// size returns how many repetitions a test does: fewer with -short.
func size(full, short int) int {
	if testing.Short() {
		return short
	}
	return full
}

// external returns a Broker connected to a server of its own.
func external(t testing.TB) (*Broker, *brokertest.Server) {
	t.Helper()
	srv := brokertest.External(t)
	return open(t, Options{URL: srv.URL()}), srv
}

// both runs a test on the embedded server and on an external one.
func both(t *testing.T, test func(t *testing.T, b *Broker)) {
	t.Run("embedded", func(t *testing.T) { test(t, open(t, Options{Dir: t.TempDir()})) })
	t.Run("external", func(t *testing.T) {
		b, _ := external(t)
		test(t, b)
	})
}

func ensure(t testing.TB, ctx context.Context, b *Broker, s Stream) {
	t.Helper()
	must.OK(t, b.EnsureStream(ctx, s))
}

// put publishes version n of the feed, without conditions, until it is acknowledged.
func put(t testing.TB, ctx context.Context, b *Broker, n int) Ack {
	t.Helper()
	return must.Get(b.Publish(ctx, deltaSubject, payload(n), PublishOptions{MsgID: id(n)}))(t)
}

func id(n int) string      { return fmt.Sprintf("account:%d", n) }
func payload(n int) []byte { return fmt.Appendf(nil, `{"version":%d}`, n) }

// chained returns the versions from..to, each of which expects its predecessor. The first version
// of all expects nothing, so that it can be repeated.
func chained(from, to int) []Outgoing {
	var out []Outgoing
	for n := from; n <= to; n++ {
		o := Outgoing{Subject: deltaSubject, Data: payload(n),
			PublishOptions: PublishOptions{MsgID: id(n)}}
		if n > 1 {
			o.ExpectLastMsgID = id(n - 1)
		}
		out = append(out, o)
	}
	return out
}

// holds compares a whole stream, message by message, with versions 1..last.
func holds(t testing.TB, ctx context.Context, b *Broker, last int) {
	t.Helper()
	info := must.Get(b.StreamInfo(ctx, deltas().Name))(t)
	if info.FirstSeq != 1 || info.LastSeq != uint64(last) || info.Messages != uint64(last) {
		t.Fatalf("stream has %d messages, %d to %d, want %d from 1", info.Messages,
			info.FirstSeq, info.LastSeq, last)
	}
	step := max(1, last/500) // every message of a short stream, a sample of a long one
	for n := 1; n <= last; n += step {
		m := must.Get(b.Message(ctx, deltas().Name, uint64(n)))(t)
		if m.Sequence != uint64(n) || m.MsgID != id(n) || !bytes.Equal(m.Data, payload(n)) ||
			m.Subject != deltaSubject {
			t.Fatalf("sequence %d holds %s %s %s", m.Sequence, m.MsgID, m.Subject, m.Data)
		}
	}
}

// record is a slog sink that tests can read.
type record struct{ waittest.Log }

func (r *record) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
