package perf

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/matcher/flow"
	"posttrade/ring/must"
)

func TestResultsFileIsInBenchmarkFormat(t *testing.T) {
	var shown bytes.Buffer
	r := &Run{o: Options{Stdout: &shown, Out: filepath.Join(t.TempDir(), "deep", "results.txt")},
		env: Environment{OS: "linux", Arch: "amd64", CPU: "Some CPU", Commit: "abc", Cores: 2}}
	r.bench("Ring/op=spsc/batch=1", 1000, time.Millisecond, metric{2.5, "M/s"})
	r.figures("Memory/op=idle", metric{27.5, "MiB-resident"})
	r.judge(atMost("P0", 2, "a figure that is met"), 1)
	r.judge(atLeast("P0", 2, "a figure that is missed"), 1)
	must.OK(t, r.write())
	text := must.Get(os.ReadFile(r.o.Out))(t)
	for _, want := range []string{
		"\ncpu: Some CPU\n", "\ncommit: abc\n",
		"\nBenchmarkRing/op=spsc/batch=1 1000 1000 ns/op 2.5 M/s\n",
		"\nBenchmarkMemory/op=idle 1 27.5 MiB-resident\n",
		"| P0 | a figure that is met | 1 | <= 2 | met |",
		"| P0 | a figure that is missed | 1 | >= 2 | missed |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("results lack %q:\n%s", want, text)
		}
	}
	line := regexp.MustCompile(`^Benchmark\S+ \d+( \S+ \S+)+$`)
	for _, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, "Benchmark") && !line.MatchString(l) {
			t.Errorf("not a benchmark line: %q", l)
		}
	}
}

func TestResultsFileThatCannotBeWrittenIsAnError(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(blocked, nil, 0o600))
	r := &Run{o: Options{Stdout: io.Discard, Out: filepath.Join(blocked, "results.txt")}}
	if err := r.write(); err == nil {
		t.Error("no error")
	}
}

func TestFileNameNamesCommitAndProcessor(t *testing.T) {
	e := Environment{Commit: "v1-3-gabc", CPU: "AMD EPYC (tm) 9000"}
	if got, want := e.fileName(), "v1-3-gabc.amd-epyc-tm-9000.txt"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPercentilesAndMedian(t *testing.T) {
	var ns []int64
	for i := range 1000 {
		ns = append(ns, int64((i*7)%1000))
	}
	for _, tt := range []struct {
		p    float64
		want int64
	}{{0, 0}, {50, 500}, {99, 990}, {99.9, 999}, {100, 999}} {
		if got := percentile(ns, tt.p); got != tt.want {
			t.Errorf("p%v is %d, want %d", tt.p, got, tt.want)
		}
	}
	if percentile(nil, 50) != 0 || median([]float64{3, 1, 2}) != 2 {
		t.Error("empty percentile or median is wrong")
	}
}

// TestLoadSendsWellFormedOrders lets Go's own HTTP server read the requests of the load generator.
func TestLoadSendsWellFormedOrders(t *testing.T) {
	var served atomic.Int64
	seen := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength || r.Method != "POST" {
			t.Errorf("request %s, %d bytes announced, %d read, %v", r.Method, r.ContentLength, len(body),
				err)
		}
		select {
		case seen <- string(body):
		default:
		}
		served.Add(1)
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"ok":true}`)
	}))
	defer server.Close()
	l := httpLoad{addr: strings.TrimPrefix(server.URL, "http://"), connections: 4,
		request: batchRequest, status: 201}
	result := must.Get(l.run(20 * time.Millisecond))(t)
	if int64(result.requests) != served.Load() || result.requests == 0 ||
		len(result.ns) != result.requests {
		t.Errorf("%d requests counted, %d timed, %d served", result.requests, len(result.ns),
			served.Load())
	}
	if body := <-seen; strings.Count(body, `"clientOrderId"`) != 100 {
		t.Errorf("batch: %s", body)
	}
	l.status = http.StatusOK
	if _, err := l.run(time.Minute); err == nil {
		t.Error("an answer of another status is no error")
	}
}

func TestReadAnswerRefusesWhatItCannotFrame(t *testing.T) {
	for _, text := range []string{"", "HTTP/1.1\n", "HTTP/1.1 abc\r\n", "HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"} {
		if _, err := readAnswer(bufio.NewReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// TestEngineRowCountsItsTrades runs the row's own check on a small flow, and checks that it fails
// with one command too many.
func TestEngineRowCountsItsTrades(t *testing.T) {
	f := flow.Generate(flow.Options{Seed: 1, Symbols: 4, Prefill: 400, N: 2000})
	commands := flowCommands(f)
	var took pieces
	if allocs, err := runEngine(f, commands, took.time); err != nil || allocs != 0 {
		t.Errorf("allocs %v, %v", allocs, err)
	}
	if took.perStep(len(f.Timed())) <= 0 {
		t.Error("the steps took no time")
	}
	f.Result.Trades++
	if _, err := runEngine(f, commands, took.time); err == nil {
		t.Error("a wrong number of trades is no error")
	}
}

// TestBookRowComparesItsTrades runs the row's own check on a small flow twice, so that the book has
// to be cleared in between, and checks that it fails with a wrong sum.
func TestBookRowComparesItsTrades(t *testing.T) {
	f := flow.Generate(flow.Options{Seed: 1, Symbols: 4, Prefill: 400, N: 2000})
	books := must.Get(newFlowBooks(f))(t)
	defer books.memory.Close()
	ns := make([]int64, len(f.Timed()))
	for range 2 {
		if err := books.run(func(_ int, step func(lo, hi int)) { each(ns, step) }); err != nil {
			t.Error(err)
		}
	}
	f.Result.Trades++
	if err := books.run(new(pieces).time); err == nil {
		t.Error("a wrong trade sum is no error")
	}
}

// TestFlowLadderStartsEveryRunEmpty compares the trades of the bare ladder in each run.
func TestFlowLadderStartsEveryRunEmpty(t *testing.T) {
	f := flow.Generate(flow.Options{Seed: 1, Symbols: 4, Prefill: 400, N: 2000})
	l := newFlowLadder(f)
	for range 2 {
		l.ladder.Result = flow.NewResult()
		if l.run(new(pieces).time); l.ladder.Result != f.Result {
			t.Errorf("ladder traded %+v, want %+v", l.ladder.Result, f.Result)
		}
	}
}

func TestMeasureNamesTheRowThatFails(t *testing.T) {
	err := Measure(Options{Smoke: true, Only: "lobster", Dir: t.TempDir(), Stdout: io.Discard,
		Out: filepath.Join(t.TempDir(), "r.txt"), Lobster: filepath.Join(t.TempDir(), "absent")})
	if err == nil || !strings.HasPrefix(err.Error(), "perf: row lobster: orderflow: 0 files match") {
		t.Errorf("got %v", err)
	}
	if err := Measure(Options{Dir: filepath.Join(t.TempDir(), "absent"),
		Stdout: io.Discard}); err == nil {
		t.Error("an absent work folder is no error")
	}
}
