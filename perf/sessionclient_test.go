package perf

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/app/engine"
	"posttrade/app/installation"
	"posttrade/matcher/session/client"
	"posttrade/perf/load"
	"posttrade/ring/must"
)

// sessionSocket is a short path: the path of a socket may have 107 bytes.
func sessionSocket(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "pt"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// hostSessions opens an installation that takes sessions at the socket.
func hostSessions(t *testing.T, socket string, nameValue ...string) (core *engine.Engine,
	stop func()) {
	t.Helper()
	data := t.TempDir()
	args := []string{"data.dir", data, "sidecars.enabled", "false", "session.socket", socket}
	for _, service := range []string{"order-matcher", "trade-processor", "account-service",
		"reference-data", "admin"} {
		args = append(args, service+".listen", "127.0.0.1:0")
	}
	c := apptest.Settled(t, append(args, nameValue...)...)
	in := must.Get(installation.Open(t.Context(), c, installation.EngineOptions(c),
		slog.New(slog.NewTextHandler(t.Output(), nil))))(t)
	stop = sync.OnceFunc(func() {
		if err := in.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(stop)
	return in.Core, stop
}

func dialledForPerf(t *testing.T, socket, idle string, clock load.Clock) *sessionClient {
	t.Helper()
	s := must.Get(dialSession(socket, idle, clock))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

// Every order of a row is answered: one by one, in a window wider than the ring, and as an open
// loop. The next run continues where the last one has ended.
func TestSessionForPerf(t *testing.T) {
	socket := sessionSocket(t)
	core, _ := hostSessions(t, socket, "journal.durability", "os",
		"risk.max-position-quantity", "2000000000", "risk.credit-limit", "4000000000000",
		"risk.max-concentration-notional", "4000000000000")
	before := core.Watermark.Durable()
	clock := load.NewClock()
	s := dialledForPerf(t, socket, "adaptive", clock)
	took, err := s.roundTrips(100)
	if err != nil || took.Count() != 100 || took.At(50) <= 0 {
		t.Fatalf("%v, %v", took, err)
	}
	if rate, err := s.window(5_000, 1<<20); err != nil || rate <= 0 {
		t.Fatalf("%v, %v", rate, err)
	}
	for range 2 {
		arrivals, err := load.Constant(20_000)
		must.OK(t, err)
		r, err := load.Run(s, load.Options{Arrivals: arrivals, For: 50 * time.Millisecond, Clock: clock})
		if err != nil || r.Requests != 1000 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := s.roundTrips(1); err != nil {
		t.Error(err)
	}
	const orders = 100 + 5_000 + 2*1000 + 1
	if taken := core.Watermark.Durable() - before; taken != orders || s.sent != orders {
		t.Errorf("%d orders sent, %d taken", s.sent, taken)
	}
}

// A refused order is an error of the run, not a fast answer.
func TestSessionForPerfSaysWhatIsWrong(t *testing.T) {
	socket := sessionSocket(t)
	clock := load.NewClock()
	if _, err := dialSession(socket, "adaptive", clock); err == nil {
		t.Error("a session with nobody")
	}
	if _, err := dialSession(socket, "quickly", clock); err == nil {
		t.Error("an unknown strategy")
	}
	_, stop := hostSessions(t, socket, "risk.max-order-quantity", "5")
	for name, run := range map[string]func(s *sessionClient) error{
		"round trips": func(s *sessionClient) error { _, err := s.roundTrips(2); return err },
		"window":      func(s *sessionClient) error { _, err := s.window(2, 2); return err },
		"load": func(s *sessionClient) error {
			_, err := load.Saturate(s, 2, time.Second, clock)
			return err
		},
	} {
		s := dialledForPerf(t, socket, "adaptive", clock)
		if err := run(s); !errors.Is(err, errPerfAnswer) || !strings.Contains(err.Error(), "ORDER_SIZE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := dialledForPerf(t, socket, "adaptive", clock)
	stop()
	if err := s.client.Err(); err == nil {
		_, err = s.client.Next()
		if !errors.Is(err, client.ErrEnded) {
			t.Errorf("the server has stopped: %v", err)
		}
	}
	if err := s.Poll(func(int, time.Duration) {}); !errors.Is(err, client.ErrEnded) {
		t.Errorf("poll after the end: %v", err)
	}
	if _, err := s.roundTrips(1); !errors.Is(err, client.ErrEnded) {
		t.Errorf("a round trip after the end: %v", err)
	}
}
