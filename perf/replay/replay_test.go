package replay

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"posttrade/app/settings"
	"posttrade/perf/orderflow"
	"posttrade/ring/must"
)

// replay runs the command and returns its exit code and output.
func replay(args ...string) (code int, stdout, stderr string) {
	var out, errs strings.Builder
	code = Command{}.called(args, &out, &errs)
	return code, out.String(), errs.String()
}

// called is the command line as far as it is this package's: flags and the flow's file in any
// order.
func (r Command) called(args []string, stdout, stderr io.Writer) int {
	var (
		o    Flow
		rest []string
	)
	f := flag.NewFlagSet("", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.Declare(f)
	for len(args) > 0 {
		if err := f.Parse(args); err != nil {
			return settings.Exit(stderr, settings.Usagef("%v", err))
		}
		if args = f.Args(); len(args) > 0 {
			rest, args = append(rest, args[0]), args[1:]
		}
	}
	return settings.Exit(stderr, r.Run(nil, &o, rest, stdout, stderr))
}

func wantReplay(t *testing.T, code int, wants []string, args ...string) {
	t.Helper()
	got, stdout, stderr := replay(args...)
	if got != code {
		t.Errorf("exit %d, want %d\n%s%s", got, code, stdout, stderr)
	}
	for _, want := range wants {
		if !strings.Contains(stdout+stderr, want) {
			t.Errorf("no %q in\n%s%s", want, stdout, stderr)
		}
	}
	if code != 0 && strings.Count(stderr, "\n") != 1 {
		t.Errorf("stderr is not one line: %q", stderr)
	}
}

const fixtureDir = "../orderflow/testdata/lobster"

func TestReplayChecksALobsterBook(t *testing.T) {
	f := &fakeMatcher{lag: 3}
	url := startFake(t, f)
	wantReplay(t, 0, []string{"399 of 399 transitions match\n",
		"taken from the book file: 10 levels of the first row",
		"latency", "p99.9"}, "--lobster", fixtureDir, "--check", "--url", url, "--token", "a.b.c")
	if f.tokens["Bearer a.b.c"] == 0 || len(f.tokens) != 1 {
		t.Errorf("tokens sent: %v", f.tokens)
	}
	wantReplay(t, 1, []string{"--check needs an empty book"}, "--lobster", fixtureDir, "--check",
		"--url", url)
}

func TestReplayFindsADifferentBook(t *testing.T) {
	url := startFake(t, &fakeMatcher{hideBest: true})
	wantReplay(t, 3, []string{"0 of 399 transitions match\n",
		"mismatch: 399 of 399 transitions differ, first event 2: bids"},
		"--lobster", fixtureDir, "--check", "--url", url)
}

func TestReplayCheckStopsAtARefusal(t *testing.T) {
	url := startFake(t, &fakeMatcher{refuse: map[int]string{1: "CREDIT_LIMIT"}})
	wantReplay(t, 1, []string{"event 1: a step was not accepted: refused 10 map[CREDIT_LIMIT:10]"},
		"--lobster", fixtureDir, "--check", "--url", url)
}

func TestReplayWithoutCheckSendsTheSame(t *testing.T) {
	f := &fakeMatcher{}
	url := startFake(t, f)
	wantReplay(t, 0, []string{"refused 0, gone 0, not sent 0, retried 0"}, "--lobster", fixtureDir,
		"--url", url)
	if len(f.orders) == 0 {
		t.Error("nothing rests at the end")
	}
}

const flowHeader = "action,clientOrderId,accountId,security,side,type,timeInForce,quantity," +
	"limitPrice,ref\n"

func writeFlowFile(t *testing.T, rows string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flow.csv")
	must.OK(t, os.WriteFile(path, []byte(flowHeader+rows), 0o600))
	return path
}

func TestReplayCountsEveryKindOfAnswer(t *testing.T) {
	f := &fakeMatcher{refuse: map[int]string{9: "ACCOUNT_DISABLED"}, busy: 2, unready: 1}
	url := startFake(t, f)
	flow := writeFlowFile(t, "price,,,AAPL,,,,,187.2,\n"+
		"new,a,1,AAPL,Buy,,,10,187.25,\n"+
		"replace,r,,,,,,5,187.25,a\n"+
		"cancel,,,,,,,,,a\n"+
		"cancel,,,,,,,,,a\n"+
		"new,b,9,AAPL,Buy,,IOC,10,187.25,\n"+
		"cancel,,,,,,,,,b\n"+
		"new,c,1,AAPL,Sell,MARKET,,10,,\n"+
		"trade,t,1,AAPL,Buy,,,3,,\n"+
		"new,d,1,AAPL,Buy,,POST_ONLY,1,1,\n"+
		"cancel,,,,,,,,,d\n")
	hgrm := filepath.Join(t.TempDir(), "x.hgrm")
	wantReplay(t, 0, []string{"11 steps in", "accepted 7, refused 1, gone 1, not sent 2, retried 3",
		"refusals: ACCOUNT_DISABLED 1", "new", "cancel", "replace", "trade", "price", "all"},
		flow, "--url", url, "--hgrm", hgrm, "--progress")
	for path, want := range map[string]int{"/orders": 4, "/orders/ord-1/cancel": 1,
		"/orders/ord-1/replace": 1, "/trades": 1} {
		if f.paths[path] != want {
			t.Errorf("%s was called %d times, want %d: %v", path, f.paths[path], want, f.paths)
		}
	}
	text, err := os.ReadFile(hgrm)
	if err != nil || !strings.Contains(string(text), "#[Max") {
		t.Errorf("hgrm %q, %v", text, err)
	}
}

func TestReplayKeepsAnOrdersStepsInOrderOverManyConnections(t *testing.T) {
	for _, batch := range []string{"1", "64"} {
		f := &fakeMatcher{}
		url := startFake(t, f)
		// Nothing crosses: every cancel must find its order, on whatever connection.
		var rows strings.Builder
		for n := range 600 {
			fmt.Fprintf(&rows, "new,o%d,1,AAPL,Buy,,,10,%d,\n", n, 1+n%7)
			if n%2 == 0 {
				fmt.Fprintf(&rows, "cancel,,,,,,,,,o%d\n", n)
			}
		}
		wantReplay(t, 0, []string{"900 steps in", "accepted 900, refused 0, gone 0, not sent 0"},
			writeFlowFile(t, rows.String()), "--url", url, "--connections", "8", "--batch", batch)
		if len(f.orders) != 300 {
			t.Errorf("%d orders rest, want 300", len(f.orders))
		}
		if batch != "1" && f.paths["/orders/batch"] == 0 {
			t.Error("no batch was sent")
		}
	}
}

func TestReplayBatchesShowRefusals(t *testing.T) {
	url := startFake(t, &fakeMatcher{refuse: map[int]string{2: "KILL_SWITCH"}})
	var rows strings.Builder
	for n := range 100 {
		fmt.Fprintf(&rows, "new,o%d,%d,AAPL,Buy,,,10,1,\n", n, 1+n%2)
	}
	wantReplay(t, 0, []string{"accepted 50, refused 50", "refusals: KILL_SWITCH 50"},
		writeFlowFile(t, rows.String()), "--url", url, "--batch", "1024")
}

func TestReplaySynthetic(t *testing.T) {
	url := startFake(t, &fakeMatcher{})
	wantReplay(t, 0, []string{"synthetic seed=7: 2000 steps in", "open loop at 100000/s",
		"not sent 0"},
		"--synthetic", "2000", "--seed=7", "--url", url, "--connections=4", "--rate=100000", "--progress")
}

func TestConnectionsSuitTheFlow(t *testing.T) {
	tests := []struct {
		options Flow
		want    int
	}{
		{Flow{}, 1},
		{Flow{lobster: "x", url: "x"}, 1},
		{Flow{synthetic: 5, url: "x"}, 64},
		{Flow{synthetic: 5}, 256},
		{Flow{synthetic: 5, connections: 3}, 3},
	}
	for _, tt := range tests {
		tt.options.chooseConnections()
		if tt.options.connections != tt.want {
			t.Errorf("%+v: want %d", tt.options, tt.want)
		}
	}
}

func TestOpenLoopChargesTheWait(t *testing.T) {
	// The venue answers nothing before the last step is due. Then step k, although it is sent and
	// answered at once, is late by the rest of the schedule.
	const steps, rate = 20, 1000.0
	release := make(chan struct{})
	v := &gatedVenue{release: release}
	d := must.Get(newDriver(func() (venue, error) { return v, nil }, 1, 1, rate))(t)
	flow := &countedFlow{steps: steps, atEnd: func() { close(release) }}
	must.OK(t, d.run(flow))
	_, rows := d.latencies()
	for percent, late := range map[float64]float64{100: steps - 1, 50: steps/2 - 1} {
		if got, want := rows[len(rows)-1].At(percent).Seconds(), late/rate; got < want {
			t.Errorf("p%v is %v s, want at least %v s", percent, got, want)
		}
	}
	if n := d.done.Load(); n != steps {
		t.Errorf("%d steps done, want %d", n, steps)
	}
}

// gatedVenue answers orders once it is released.
type gatedVenue struct {
	venue
	release chan struct{}
}

func (v *gatedVenue) create(steps []orderflow.Step, results []outcomeOf) error {
	<-v.release
	return nil
}

// countedFlow yields that many orders and reports when the last has been taken.
type countedFlow struct {
	steps, next int
	atEnd       func()
}

func (f *countedFlow) Next(s *orderflow.Step) error {
	if f.next == f.steps {
		f.atEnd()
		return io.EOF
	}
	f.next++
	*s = orderflow.Step{Action: orderflow.New, ClientOrderID: strconv.Itoa(f.next)}
	return nil
}

func TestReplayWritesAFlow(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "flow.csv")
	wantReplay(t, 0, []string{"500 steps written to"}, "--synthetic=500", "--write", path,
		"--prefix=x-")
	wantReplay(t, 0, []string{"500 steps in"}, path, "--url", startFake(t, &fakeMatcher{}))
	wantReplay(t, 1, []string{"file exists"}, "--synthetic=500", "--write", path)
	wantReplay(t, 0, []string{"steps written to"}, "--lobster", fixtureDir, "--write",
		filepath.Join(dir, "lobster.csv"))
}

func TestReplayUsage(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"nothing", nil, "replay needs one of"},
		{"two flows", []string{"a.csv", "--synthetic=1"}, "replay needs one of"},
		{"two files", []string{"a.csv", "b.csv"}, "replay needs one of"},
		{"negative", []string{"--synthetic=-1"}, "--synthetic"},
		{"no number", []string{"--synthetic=x"}, "synthetic"},
		{"connections", []string{"--synthetic=1", "--connections=-1"}, "--connections"},
		{"too many connections", []string{"--synthetic=1", "--connections=4097"}, "--connections"},
		{"no price", []string{"--synthetic=1", "--mid=x"}, "--mid"},
		{"price too low", []string{"--synthetic=1", "--mid=9.99"}, "--mid"},
		{"price off tick", []string{"--synthetic=1", "--mid=100.001"}, "--mid"},
		{"batch", []string{"--synthetic=1", "--batch=1025"}, "--batch"},
		{"rate", []string{"--synthetic=1", "--rate=-1"}, "--rate"},
		{"rate NaN", []string{"--synthetic=1", "--rate=NaN"}, "--rate"},
		{"check without LOBSTER", []string{"--synthetic=1", "--check"}, "--check goes with --lobster"},
		{"check over two", []string{"--lobster=x", "--check", "--connections=2"}, "--check needs"},
		{"prefix", []string{"--synthetic=1", "--prefix=" + strings.Repeat("x", 33)}, "--prefix"},
		{"one account", []string{"--synthetic=1", "--accounts=1"}, "--accounts"},
		{"bad account", []string{"--synthetic=1", "--accounts=x,y"}, "--accounts"},
		{"no securities", []string{"--synthetic=1", "--securities="}, "--securities"},
		{"bad url", []string{"--synthetic=1", "--url=localhost:1"}, "--url"},
		{"ftp", []string{"--synthetic=1", "--url=ftp://h"}, "--url"},
		{"nowhere to send to", []string{"--synthetic=1"}, "replay needs --url"},
	}
	for _, tt := range tests {
		t.Run(tt.name,
			func(t *testing.T) { wantReplay(t, settings.ExitUsage, []string{tt.want}, tt.args...) })
	}
}

func TestReplayFailures(t *testing.T) {
	good := writeFlowFile(t, "new,a,1,AAPL,Buy,,,10,187.25,\n")
	tests := []struct {
		name  string
		venue *fakeMatcher
		args  []string
		want  string
	}{
		{"no file", &fakeMatcher{}, []string{"no/such.csv"}, "no/such.csv: no such file"},
		{"bad row", &fakeMatcher{}, []string{writeFlowFile(t, "new\n")},
			"line 2: wrong number of fields"},
		{"no LOBSTER files", &fakeMatcher{}, []string{"--lobster", "."}, "0 files match"},
		{"status 500", &fakeMatcher{broken: 500}, []string{good}, "order a: client: 500 BROKEN: as told"},
		{"status 503, perhaps sequenced", &fakeMatcher{broken: 503}, []string{good},
			"client: 503 BROKEN"},
		{"status 401", &fakeMatcher{broken: 401}, []string{good}, "client: 401 BROKEN"},
		{"no JSON", &fakeMatcher{garbage: "<html>"}, []string{good},
			"client: unreadable answer: POST /orders"},
		{"no book", &fakeMatcher{broken: 404}, []string{"--lobster", fixtureDir, "--check"},
			"client: 404 BROKEN"},
		{"bad book", &fakeMatcher{garbage: `{"bids":[{"price":1e99,"quantity":1}]}`},
			[]string{"--lobster", fixtureDir, "--check"}, "client: unreadable answer: GET /"},
		{"hgrm", &fakeMatcher{}, []string{good, "--hgrm", "no/such/dir/x.hgrm"},
			"--hgrm no/such/dir/x.hgrm: no such file"},
		{"write", &fakeMatcher{}, []string{good, "--write", "no/such/dir/x.csv"},
			"--write no/such/dir/x.csv: no such file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			wantReplay(t, settings.ExitFailed, []string{tt.want},
				append(tt.args, "--url", startFake(t, tt.venue))...)
		})
	}
	wantReplay(t, settings.ExitFailed, []string{"connection refused"}, good, "--url",
		"http://127.0.0.1:1")
}

func mustVenues(t *testing.T, url string) venues {
	t.Helper()
	return must.Get(httpVenues(url, ""))(t)
}

func TestBatchAnswersMustBeWhole(t *testing.T) {
	steps := []orderflow.Step{{ClientOrderID: "a", Quantity: 1, LimitPx: 1},
		{ClientOrderID: "b", Quantity: 1, LimitPx: 1}}
	for want, f := range map[string]*fakeMatcher{
		"1 answers to a batch of 2 orders":    {shortBy: 1},
		"the whole batch was refused: BROKEN": {broken: 409},
		"client: 500 BROKEN: as told":         {broken: 500},
	} {
		v := must.Get(mustVenues(t, startFake(t, f))())(t)
		if err := v.create(steps, make([]outcomeOf, 2)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// TestReplayInProcess uses the venues of a replay without --url.
func TestReplayInProcess(t *testing.T) {
	url := startFake(t, &fakeMatcher{})
	var stopped atomic.Int32
	run := func(openErr, stopErr error) (int, string) {
		var out, errs strings.Builder
		r := Command{InProcess: func(*settings.Config) (venues, func() error, error) {
			if openErr != nil {
				return nil, nil, openErr
			}
			return mustVenues(t, url), func() error { stopped.Add(1); return stopErr }, nil
		}}
		return r.called([]string{"--synthetic=50"}, &out, &errs), out.String() + errs.String()
	}
	if code, text := run(nil, nil); code != 0 || stopped.Load() != 1 {
		t.Errorf("exit %d, stopped %d times\n%s", code, stopped.Load(), text)
	}
	if code, text := run(nil, errors.New("disk full")); code != 1 ||
		!strings.Contains(text, "posttrade: disk full") {
		t.Errorf("exit %d\n%s", code, text)
	}
	if code, text := run(errors.New("locked"), nil); code != 1 ||
		!strings.Contains(text, "posttrade: locked") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

func TestConnectionsThatCannotOpen(t *testing.T) {
	n := 0
	_, err := newDriver(func() (venue, error) {
		if n++; n == 3 {
			return nil, errors.New("no more")
		}
		return mustVenues(t, "http://127.0.0.1:1")()
	}, 3, 1, 0)
	if err == nil || err.Error() != "no more" {
		t.Errorf("got %v", err)
	}
}

func TestIDTableForgetsTheOldest(t *testing.T) {
	ids := newIDTable(2)
	ids.put("a", "1")
	ids.put("b", "2")
	ids.drop("b")
	ids.put("c", "3")
	for client, want := range map[string]string{"a": "", "b": "", "c": "3"} {
		if got, _ := ids.get(client); got != want {
			t.Errorf("%s is %q, want %q", client, got, want)
		}
	}
	ids.put("d", "4")
	ids.put("e", "5")
	if len(ids.byClient) != 2 {
		t.Errorf("%d ids are kept, want 2", len(ids.byClient))
	}
}

func TestProgressLine(t *testing.T) {
	if got, want := progressLine(50, 200, 1e9),
		"[########......................]  25 %  50 steps  50/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := progressLine(50, 0, 2e9), "50 steps  25/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoProgressIntoNowhere: a device that is no terminal shows no progress.
func TestNoProgressIntoNowhere(t *testing.T) {
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer null.Close()
	if isTerminal(null) || isTerminal(io.Discard) {
		t.Error("what goes nowhere is taken for a terminal")
	}
}
