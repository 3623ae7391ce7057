package perf

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posttrade/journal"
)

func TestFlatnessLooksAtItsPartOfTheCurve(t *testing.T) {
	at := func(percent int, latency time.Duration, bucket int) curvePoint {
		p := curvePoint{percent: percent, latency: latency}
		p.commits.commits, p.commits.buckets[bucket] = 1000, 1000
		return p
	}
	points := []curvePoint{at(10, 300*time.Microsecond, 3), at(20, 200*time.Microsecond, 3), at(30, 0, 3), at(70, 500*time.Microsecond, 7),
		at(90, time.Second, 9)}
	r := &Run{o: Options{Stdout: io.Discard}}
	r.flatness(curve{row: "P6", name: "x"}, "constant", points)
	if want := "BenchmarkCurve/op=x/arrivals=constant/flat=10-70 1 2.5 p99.9-highest/lowest 20 %-of-the-lowest 70 %-of-the-highest 5 commit-p99.9-highest/lowest"; len(r.lines) != 1 || r.lines[0] != want {
		t.Errorf("got  %q\nwant %q", r.lines, want)
	}
	if len(r.targets) != 1 || r.targets[0].met() || r.targets[0].row != "P6" {
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

func TestCommitCounts(t *testing.T) {
	var before, after commitCounts
	before.commits, before.buckets[0] = 5, 5
	last := len(after.buckets) - 1
	after.commits, after.buckets[0], after.buckets[7], after.buckets[last] = 1005, 995, 9, 1
	d := after.since(before)
	for percent, want := range map[float64]time.Duration{50: 50 * time.Microsecond, 99: 50 * time.Microsecond, 99.9: time.Millisecond, 100: 10 * time.Second} {
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
	for i := range len(journal.CommitBuckets) + 1 {
		text.WriteString(`svc_journal_commit_seconds_bucket{le="x"} ` + []string{"4", "9", "9.0"}[min(i, 2)] + "\n")
	}
	text.WriteString("svc_journal_commit_seconds_sum 0.5\nsvc_journal_commit_seconds_count 9\n" + `svc_other{source="account"} 3.5` + "\n")
	answer := text.String()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) }))
	defer server.Close()
	c := &child{ports: map[string]string{"admin": strings.TrimPrefix(server.URL, "http://")}}
	n, err := c.commits()
	if err != nil || n.commits != 9 || n.buckets[0] != 4 || n.buckets[1] != 5 || n.buckets[2] != 0 {
		t.Errorf("%+v, %v", n, err)
	}
	if v, err := c.metric("svc_other", "account"); err != nil || v != 3.5 {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := c.metric("svc_other", "security"); err == nil {
		t.Error("a metric that is not shown is no error")
	}
	for _, answer = range []string{"", "svc_journal_commit_seconds_count x\n", "svc_journal_commit_seconds_count 3\n"} {
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
	var s stall
	for _, c := range []struct{ begun, durable int }{{0, 3}, {1, 5}, {2, 9}, {100, 102}, {100, 103}} {
		s.durable(at(c.begun), at(c.durable))
	}
	if s.longest != 4*time.Millisecond { // from 5 to 9: what was begun at 2 waited longer, for others
		t.Errorf("%v", s.longest)
	}
}
