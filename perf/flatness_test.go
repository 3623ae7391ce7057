package perf

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posttrade/app/latency"
	"posttrade/perf/load"
	"posttrade/ring/must"
)

// periodOf is a measurement in which every request took that long, and every commit was in one
// bucket.
func periodOf(latencies time.Duration, bucket int) period {
	p := period{result: &load.Result{Requests: 1000, Took: time.Second}}
	recorder := latency.NewRecorder()
	for range 1000 {
		recorder.Record(latencies)
	}
	p.result.Latency = latency.Merge(recorder)
	p.result.Intervals = []latency.Interval{{Length: time.Second, Recorder: recorder}}
	p.commits.commits, p.commits.buckets[bucket] = 1000, 1000
	return p
}

func TestFlatnessLooksAtItsPartOfTheCurve(t *testing.T) {
	at := func(percent int, periods ...period) *curvePoint {
		return &curvePoint{percent: percent, periods: periods}
	}
	const us = time.Microsecond
	points := []*curvePoint{
		at(10, periodOf(50*time.Millisecond, 9), periodOf(300*us, 3),
			periodOf(310*us, 3)), // a stall in one period
		at(20, periodOf(200*us, 3), periodOf(220*us, 5)),
		at(30), // without a request
		at(70, periodOf(510*us, 7), periodOf(500*us, 7)),
		at(90, periodOf(time.Second, 9)),
	}
	r := &Run{o: Options{Stdout: io.Discard}}
	r.flatness(curve{row: "P6", name: "x"}, "constant", points)
	const want = "BenchmarkCurve/op=x/arrivals=constant/flat=10-70 1 2.5003 p99.9-highest/lowest 20 " +
		"%-of-the-lowest 70 %-of-the-highest " +
		"5 commit-p99.9-highest/lowest 227.26 p99.9-of-all-periods-highest/lowest"
	if len(r.lines) != 1 || r.lines[0] != want {
		t.Errorf("got  %q\nwant %q", r.lines, want)
	}
	if len(r.targets) != 1 || r.targets[0].met() || r.targets[0].row != "P6" ||
		!strings.Contains(r.targets[0].floor, "the lowest of 3 periods at each load; of all periods 22") {
		t.Errorf("targets %v", r.targets)
	}
	r.flatness(curve{row: "P6", name: "x"}, "poisson", points)
	r.flatness(curve{name: "x"}, "constant", points)
	if len(r.targets) != 1 {
		t.Errorf("a curve without a verdict has one: %v", r.targets)
	}
	r.flatness(curve{row: "P6"}, "constant", points[:1])
	if len(r.lines) != 3 || len(r.targets) != 1 {
		t.Errorf("one point has a flatness: %q", r.lines)
	}
}

// TestPeriodsTogether: a point of a curve has every request of all its periods.
func TestPeriodsTogether(t *testing.T) {
	p := curvePoint{periods: []period{periodOf(time.Millisecond, 3), periodOf(3*time.Millisecond, 4)}}
	p.periods[1].result.Behind = time.Minute
	all, commits := p.together()
	if all.Requests != 2000 || all.Took != 2*time.Second || all.Behind != time.Minute ||
		all.Latency.Count() != 2000 || all.PerSecond() != 1000 {
		t.Errorf("%+v", all)
	}
	if len(all.Intervals) != 2 || all.Intervals[1].From != time.Second {
		t.Errorf("intervals %+v", all.Intervals)
	}
	if commits.commits != 2000 || commits.buckets[3] != 1000 || commits.buckets[4] != 1000 {
		t.Errorf("commits %+v", commits)
	}
	if low := p.lowest(); low.commits.buckets[3] != 1000 {
		t.Error("the higher period is the lowest")
	}
}

// TestFlatLoadsTakeTurns: no load of the flat part has all its periods in a row.
func TestFlatLoadsTakeTurns(t *testing.T) {
	r := &Run{o: Options{Stdout: io.Discard, Smoke: true}}
	clock := &stepped{}
	for shape, want := range map[string]map[int]int{
		"constant": {10: flatPeriods, 70: flatPeriods, 95: 1}, "poisson": {10: 1, 70: 1, 95: 1},
	} {
		points, err := r.curvePoints(curve{target: &instant{clock: clock}, clock: clock}, shape, 1e5)
		must.OK(t, err)
		var last time.Time
		for n := range flatPeriods {
			for _, p := range points {
				if len(p.periods) != want[p.percent] {
					t.Errorf("%s: %d periods at %d %%", shape, len(p.periods), p.percent)
				} else if n < len(p.periods) {
					if p.periods[n].begun.Before(last) {
						t.Errorf("%s: period %d at %d %% comes before that of another load", shape, n, p.percent)
					}
					last = p.periods[n].begun
				}
			}
		}
	}
}

func TestCommitCounts(t *testing.T) {
	var before, after commitCounts
	before.commits, before.buckets[0] = 5, 5
	last := len(after.buckets) - 1
	after.commits, after.buckets[0], after.buckets[7], after.buckets[last] = 1005, 995, 9, 1
	d := after.since(before)
	for percent, want := range map[float64]time.Duration{50: 50 * time.Microsecond,
		99: 50 * time.Microsecond, 99.9: time.Millisecond, 100: 10 * time.Second} {
		if got := d.at(percent); got != want {
			t.Errorf("p%v: %v, want %v", percent, got, want)
		}
	}
	if (commitCounts{}).at(50) != 0 {
		t.Error("no commits took something")
	}
	h := d.histogram()
	if len(h) != 3 || h[0] != (metric{990, "commits<=50µs"}) || h[2].unit != "commits<=10s" {
		t.Errorf("%v", h)
	}
}

// TestChildReadsTheServersCommits reads a histogram as the admin listener writes it.
func TestChildReadsTheServersCommits(t *testing.T) {
	var text strings.Builder
	text.WriteString("# HELP svc_journal_commit_seconds x\n")
	for _, bucket := range []string{"2e-05\"} 3", "5e-05\"} 4", "0.0001\"} 9", "10\"} 9",
		"+Inf\"} 9.0"} {
		text.WriteString(`svc_journal_commit_seconds_bucket{le="` + bucket + "\n")
	}
	text.WriteString("svc_journal_commit_seconds_sum 0.5\nsvc_journal_commit_seconds_count 9\n" +
		`svc_other{source="account"} 3.5` + "\n")
	answer := text.String()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, answer)
	}))
	defer server.Close()
	c := &child{ports: map[string]string{"admin": strings.TrimPrefix(server.URL, "http://")}}
	n, err := c.commits()
	if err != nil || n.commits != 9 || n.buckets[0] != 4 || n.buckets[1] != 5 || n.buckets[2] != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if v, err := c.metric("svc_other", `source="account"`); err != nil || v != 3.5 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := c.metric("svc_other", `source="security"`); err == nil {
		t.Error("a metric that is not shown is no error")
	}
	for _, answer = range []string{"", "svc_journal_commit_seconds_count x\n",
		"svc_journal_commit_seconds_count 3\n"} {
		if _, err := c.commits(); err == nil {
			t.Errorf("%q is no error", answer)
		}
	}
	server.Close()
	if _, err := c.commits(); err == nil {
		t.Error("no server is no error")
	}
}

func TestStallIsTimeWithoutProgress(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	var s stalls
	for _, c := range []struct{ begun, durable int }{{0, 3}, {1, 5}, {2, 9}, {100, 102}, {100, 103}} {
		s.durable(at(c.begun), at(c.durable))
	}
	// from 5 to 9: the block that began at 2 waited longer, but for others
	if s.longest != 4*time.Millisecond {
		t.Errorf("%v", s.longest)
	}
}
