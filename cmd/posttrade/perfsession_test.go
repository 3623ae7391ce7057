package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/matcher/session/client"
	"posttrade/perf/load"
)

// sessionSocket is a short path: the path of a socket may have 107 bytes.
func sessionSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

func dialledForPerf(t *testing.T, socket, idle string, clock load.Clock) *sessionForPerf {
	t.Helper()
	s, err := dialForPerf(socket, idle, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Every order of a row is answered: one by one, in a window wider than the ring, and as an open
// loop. The next run continues where the last one has ended.
func TestSessionForPerf(t *testing.T) {
	socket := sessionSocket(t)
	in := install(t, t.TempDir(), "sidecars.enabled", "false", "session.socket", socket,
		"journal.durability", "os",
		"risk.max-position-quantity", "2000000000", "risk.credit-limit", "4000000000000",
		"risk.max-concentration-notional", "4000000000000")
	clock := load.NewClock()
	s := dialledForPerf(t, socket, "adaptive", clock)
	took, err := s.RoundTrips(100)
	if err != nil || took.Count() != 100 || took.At(50) <= 0 {
		t.Fatalf("%v, %v", took, err)
	}
	if rate, err := s.Window(5_000, 1<<20); err != nil || rate <= 0 {
		t.Fatalf("%v, %v", rate, err)
	}
	for range 2 {
		arrivals, err := load.Constant(20_000)
		if err != nil {
			t.Fatal(err)
		}
		r, err := load.Run(s, load.Options{Arrivals: arrivals, For: 50 * time.Millisecond, Clock: clock})
		if err != nil || r.Requests != 1000 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := s.RoundTrips(1); err != nil {
		t.Error(err)
	}
	const orders = 100 + 5_000 + 2*1000 + 1
	if _, body := in.get("admin", "/metrics"); !strings.Contains(string(body),
		"svc_session_commands_total 7101\n") || s.sent != orders {
		t.Errorf("%d orders sent", s.sent)
	}
}

// A refused order is an error of the run, not a fast answer.
func TestSessionForPerfSaysWhatIsWrong(t *testing.T) {
	socket := sessionSocket(t)
	clock := load.NewClock()
	if _, err := dialForPerf(socket, "adaptive", clock); err == nil {
		t.Error("a session with nobody")
	}
	if _, err := dialForPerf(socket, "quickly", clock); err == nil {
		t.Error("an unknown strategy")
	}
	in := install(t, t.TempDir(), "sidecars.enabled", "false", "session.socket", socket,
		"risk.max-order-quantity", "5")
	for name, run := range map[string]func(s *sessionForPerf) error{
		"round trips": func(s *sessionForPerf) error { _, err := s.RoundTrips(2); return err },
		"window":      func(s *sessionForPerf) error { _, err := s.Window(2, 2); return err },
		"load": func(s *sessionForPerf) error {
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
	in.stop()
	if err := s.client.Err(); err == nil {
		_, err = s.client.Next()
		if !errors.Is(err, client.ErrEnded) {
			t.Errorf("the server has stopped: %v", err)
		}
	}
	if err := s.Poll(func(int, time.Duration) {}); !errors.Is(err, client.ErrEnded) {
		t.Errorf("poll after the end: %v", err)
	}
	if _, err := s.RoundTrips(1); !errors.Is(err, client.ErrEnded) {
		t.Errorf("a round trip after the end: %v", err)
	}
}
