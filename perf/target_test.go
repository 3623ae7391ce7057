package perf

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/perf/load"
	"posttrade/ring/must"
)

// orderServer answers orders; it notes every client order id.
func orderServer(t *testing.T, status func(n int) int) (addr string, seen func() map[string]int) {
	t.Helper()
	ids := make(chan string, 1<<16)
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, rest, _ := strings.Cut(string(body), `"clientOrderId":"`)
		id, _, _ := strings.Cut(rest, `"`)
		ids <- id
		n++
		w.WriteHeader(status(n))
		io.WriteString(w, "{}")
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() map[string]int {
		out := map[string]int{}
		for len(ids) > 0 {
			out[<-ids]++
		}
		return out
	}
}

func TestHTTPTargetSendsEveryRequestOnce(t *testing.T) {
	addr, seen := orderServer(t, func(int) int { return http.StatusCreated })
	clock := load.NewClock()
	target := must.Get(newHTTPTarget(httpLoad{addr: addr, connections: 1, status: 201,
		request: orderRequest}, clock))(t)
	runs := &renumbered{target: target}
	total := 0
	for range 3 { // three runs of one target: numbers start again, ids must not
		arrivals := must.Get(load.Constant(20_000))(t)
		result := must.Get(load.Run(runs, load.Options{Arrivals: arrivals, For: 10 * time.Millisecond,
			Clock: clock}))(t)
		if result.Requests != 200 || result.Latency.Count() != 200 {
			t.Errorf("%d requests, %d timed, want 200", result.Requests, result.Latency.Count())
		}
		total += result.Requests
	}
	ids := seen()
	if len(ids) != total {
		t.Errorf("%d different orders for %d requests", len(ids), total)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
}

func TestHTTPTargetReportsRefusalsAndClosedPorts(t *testing.T) {
	addr, _ := orderServer(t, func(n int) int {
		if n > 3 {
			return http.StatusTooManyRequests
		}
		return http.StatusCreated
	})
	clock := load.NewClock()
	target := must.Get(newHTTPTarget(httpLoad{addr: addr, connections: 1, status: 201,
		request: orderRequest}, clock))(t)
	if _, err := load.Saturate(target, 1, time.Minute, clock); err == nil ||
		!strings.Contains(err.Error(), "answer 429") {
		t.Errorf("got %v", err)
	}
	if err := target.Close(); err != nil {
		t.Error(err)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	gone := strings.TrimPrefix(closed.URL, "http://")
	closed.Close()
	if _, err := newHTTPTarget(httpLoad{addr: gone, connections: 2}, clock); err == nil {
		t.Error("a closed port is no error")
	}
}

// instant answers each request at the next poll, without a wait for the clock.
type instant struct {
	clock load.Clock
	open  []int
	err   error
}

func (i *instant) Send(n int) (bool, error) { i.open = append(i.open, n); return true, i.err }
func (i *instant) Poll(answered func(int, time.Duration)) error {
	for _, n := range i.open {
		answered(n, i.clock.Now())
	}
	i.open = i.open[:0]
	return nil
}

// stepped is a clock that moves only in naps and looks.
type stepped struct{ now time.Duration }

func (s *stepped) Now() time.Duration { s.now += 100 * time.Nanosecond; return s.now }
func (s *stepped) Nap()               { s.now += 10 * time.Microsecond }

func TestCurveWritesEveryPointInThreeForms(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run.txt")
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true, Out: out}}
	clock := &stepped{}
	commits := uint64(0)
	c := curve{name: "made-up", target: &instant{clock: clock}, clock: clock, window: 8,
		commits: func() (commitCounts, error) {
			commits += 10
			n := commitCounts{commits: commits}
			n.buckets[3] = commits
			return n, nil
		}}
	must.OK(t, r.curve(c))
	// each shape has its points and one line for its flatness
	if want := 1 + 2*(len(r.curveLoads("constant"))+1); len(r.lines) != want {
		t.Errorf("%d lines, want %d", len(r.lines), want)
	}
	text := strings.Join(r.lines, "\n")
	for _, want := range []string{"Curve/op=made-up/load=saturated 1 ",
		"Curve/op=made-up/arrivals=poisson/load=95 1 ", " asked/s ", " p99.9-us ", " commands/commit ",
		" 200 commit-p99.9<=us"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, ending := range []string{".hgrm", ".hlog"} {
		name := filepath.Join(strings.TrimSuffix(out, ".txt"),
			"Curve.op-made-up.arrivals-constant.load-10"+ending)
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", ending, err)
		}
	}
}

func TestCurveReportsWhatGoesWrong(t *testing.T) {
	cause := errors.New("planted")
	clock := &stepped{}
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true, Out: filepath.Join(t.TempDir(), "run.txt")}}
	if err := r.curve(curve{name: "bad", target: &instant{clock: clock, err: cause}, clock: clock,
		window: 8}); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	r.o.Out = filepath.Join(file, "run.txt") // no folder can be made there
	if err := r.curve(curve{name: "good", target: &instant{clock: clock}, clock: clock,
		window: 8}); err == nil {
		t.Error("histograms that cannot be written are no error")
	}
	r.o.Dir, r.o.Config, r.o.Stderr = file, apptest.Settled(t), io.Discard
	if err := r.curveInProcess("os"); err == nil {
		t.Error("an engine that has no folder is no error")
	}
	r.o.Binary = filepath.Join(t.TempDir(), "absent")
	if err := r.curveHTTP("os"); err == nil {
		t.Error("a server that does not start is no error")
	}
}
