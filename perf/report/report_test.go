package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// results is a results file with something for every plot.
const results = `goos: linux
cpu: Some CPU <3 GHz>
commit: abc
date: 2026-01-02T03:04:05Z
load: 0.1 0.2 0.3

BenchmarkRing/op=spsc/batch=16 1000 5.5 ns/op 180.5 M/s
BenchmarkRing/op=channel/batch=1 1000 40 ns/op 25 M/s
BenchmarkHTTP/op=orders 1000 10 ns/op 56935 orders/s 21.5 server-us/order
BenchmarkJitter/op=spin/cpu=1 1 355 gaps>1us/s 30 gaps>10us/s 0 gaps>1ms/s 812 max-us 0.31 lost-%
BenchmarkCurve/op=http/durability=os/load=saturated 1 50000 requests/s
BenchmarkCurve/op=http/durability=os/arrivals=poisson/load=10 1 5000 asked/s 5001 requests/s ` +
	`100 p50-us 150 p90-us 200 p99-us 900 p99.9-us 1000 max-us 4 commands/commit
BenchmarkCurve/op=http/durability=os/arrivals=poisson/load=50 1 25000 asked/s 25001 requests/s ` +
	`120 p50-us 250 p90-us 500 p99-us 1900 p99.9-us 2000 max-us 40 commands/commit

# | P1 | ring single, M messages/s | 180.5 | >= 140 | met |
# | P6 | p50 at 10 % of saturation, us | 100 | <= 5 | missed |
# a remark
`

const hgrm = `       Value     Percentile TotalCount 1/(1-Percentile)

      90.000 0.000000000000          1           1.00
     100.000 0.500000000000        500           2.00
     200.000 0.990000000000        990         100.00
    1000.000 1.000000000000       1000            inf
#[Mean    =      101.000, StdDeviation   =       10.000]
`

func parsed(t *testing.T, name, text string) *Run {
	t.Helper()
	return must.Get(Parse(name, strings.NewReader(text)))(t)
}

func written(t *testing.T, runs ...*Run) string {
	t.Helper()
	var out bytes.Buffer
	must.OK(t, Write(&out, runs))
	return out.String()
}

func TestParseReadsEverything(t *testing.T) {
	run := parsed(t, "abc.txt", results)
	if len(run.Rows) != 7 || len(run.Targets) != 2 || run.field("commit") != "abc" ||
		run.When != time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) {
		t.Errorf("%d rows, %d targets, commit %q, %v", len(run.Rows), len(run.Targets),
			run.field("commit"), run.When)
	}
	want := Target{Row: "P6", Figure: "p50 at 10 % of saturation, us", Measured: 100, AtMost: true,
		Limit: 5}
	if run.Targets[1] != want || !run.Targets[0].Met || run.Targets[0].AtMost {
		t.Errorf("targets %+v", run.Targets)
	}
	row := run.Rows[0]
	if v, found := row.get("M/s"); !found || v != 180.5 || row.N != 1000 || row.group() != "Ring" ||
		row.key("batch") != "16" || row.key("none") != "" {
		t.Errorf("row %+v", row)
	}
	if _, found := row.get("none"); found || run.field("none") != "" {
		t.Error("something that is not there is found")
	}
}

func TestParseNamesTheLineThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "no results",
		"goos: linux\n":                     "no results",
		"BenchmarkX 1 2\n":                  "line=1: not a benchmark line",
		"BenchmarkX 1\n":                    "not a benchmark line",
		"BenchmarkX one 2 ns/op\n":          "line=1: not a benchmark line",
		"BenchmarkX 1 2 a b c\n":            "line=1: figure",
		"a: b\nBenchmarkX 1 x ns/op":        "line=2: figure",
		"# | P1 | x |\n":                    "not a target",
		"# | P1 | x | y | >= 1 | met |\n":   "measured",
		"# | P1 | x | 1 | >= one | met |\n": "target",
		strings.Repeat("x", 1<<17):          "too long",
	} {
		if _, err := Parse("f", strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// TestParseReadsNamesOfSeveralWords: older files have such names, with numbers among the words.
func TestParseReadsNamesOfSeveralWords(t *testing.T) {
	run := parsed(t, "f",
		"BenchmarkSession/op=window of 1024 1 1.028e+06 commands/s\nBenchmarkCluster/one at a time 7 "+
			"410.37 p50-us 758 p99-us\nBenchmarkX/2 3 4 5\n")
	for i, want := range []Row{
		{"Session/op=window-of-1024", 1, []Metric{{1.028e6, "commands/s"}}},
		{"Cluster/one-at-a-time", 7, []Metric{{410.37, "p50-us"}, {758, "p99-us"}}},
		{"X/2", 3, []Metric{{4, "5"}}},
	} {
		if got := run.Rows[i]; got.Name != want.Name || got.N != want.N ||
			!slices.Equal(got.Metrics, want.Metrics) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// TestTargetsWithoutAVerdict: they are shown with the reason, and are neither met nor missed nor
// points of a history.
func TestTargetsWithoutAVerdict(t *testing.T) {
	const line = "# | P12 | failover, median, ms | - | <= 300 | no verdict | not measured: why |\n# " +
		"| P1 | ring, M/s | 20 | >= 6 | met | channel 8 M/s |\n"
	run := parsed(t, "f", results+line)
	if got := run.Targets[2]; !got.Open || got.Met || !math.IsNaN(got.Measured) || got.Limit != 300 ||
		got.Beside != "not measured: why" {
		t.Errorf("%+v", got)
	}
	if got := run.Targets[3]; got.Open || !got.Met || got.Beside != "channel 8 M/s" {
		t.Errorf("%+v", got)
	}
	page := written(t, run)
	for _, want := range []string{"2 of 4 targets met, 1 without a verdict",
		`<td class="open">no verdict</td>`, "not measured: why", "channel 8 M/s"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "NaN") {
		t.Error("something that was not measured is drawn")
	}
	if plots := history([]*Run{run, run}); len(plots) != 3 {
		t.Errorf("%d histories, want 3", len(plots))
	}
}

func TestLoadReadsAFolderOldestFirstWithItsDistributions(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("a-new.txt", results)
	write("b-old.txt", strings.Replace(results, "2026-01-02", "2025-01-02", 1))
	write("a-new/Curve.op-http.durability-os.arrivals-poisson.load-10.hgrm", hgrm)
	runs, err := Load(dir)
	if err != nil || len(runs) != 2 || runs[0].Name != "b-old.txt" || len(runs[1].Percentiles) != 1 {
		t.Fatalf("%v, %v", runs, err)
	}
	if points := runs[1].Percentiles["Curve.op-http.durability-os.arrivals-poisson.load-10"]; len(
		points) != 4 || points[2] != (Percentile{0.99, 200}) {
		t.Errorf("points %v", points)
	}
	write("c-undated.txt", "BenchmarkX 1 2 ns/op\n")
	if all, err := Load(dir); err != nil || len(all) != 3 || all[0].Name != "c-undated.txt" ||
		all[0].day() != "no date" {
		t.Errorf("a file without a date does not come first: %+v, %v", all, err)
	} else if page := written(t, all...); !strings.Contains(page,
		`<h2>c-undated.txt</h2> <span class="note">no date</span>`) {
		t.Error("the page has a date for a file without one")
	}
	write("a-new/bad.hgrm", "x y z\n")
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "bad.hgrm") {
		t.Errorf("got %v", err)
	}
	write("a-new/bad.hgrm", "\n")
	if _, err := Load(dir); !errors.Is(err, ErrNoResults) {
		t.Errorf("got %v", err)
	}
	write("z-bad.txt", "BenchmarkX\n")
	for _, path := range []string{dir, t.TempDir(), filepath.Join(dir, "absent")} {
		if _, err := Load(path); err == nil {
			t.Errorf("%s is loaded", path)
		}
	}
}

func TestPageShowsEverythingAndNeedsNothing(t *testing.T) {
	run := parsed(t, "abc.txt", results)
	run.Percentiles["Curve.op-http.durability-os.arrivals-poisson.load-10"] = []Percentile{{0, 90},
		{0.5, 100}, {0.99, 200}, {1, 1000}}
	// not one of the loads that are shown
	run.Percentiles["Curve.op-http.durability-os.arrivals-poisson.load-20"] = []Percentile{{0, 90}}
	page := written(t, run)
	for _, want := range []string{
		"<h3>Targets</h3>", "<h3>Latency against rate</h3>", "<h3>Percentiles</h3>", "<h3>Rates</h3>",
		"<h3>Commits</h3>", "machine&#39;s own gaps</h3>",
		"Some CPU &lt;3 GHz&gt;", "1 of 2 targets met", "op=spsc/batch=16: 180 M/s",
		"p99.9 of 25k/s (50 % of saturation): 1.90ms",
		"Gaps of a spinning thread, core 1", "longest 812us, 0.31 % of the time lost", "10 % load",
		"99 %", "40 commands in a commit",
		"prefers-color-scheme: dark", "0.05 times as good as the target",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, no := range []string{"<script", "http://", "https://", "src=", "@import", "url(",
		"From run to run", "NaN", "Inf", "20 % load"} {
		if strings.Contains(page, no) {
			t.Errorf("%q on the page", no)
		}
	}
	if again := written(t, run); again != page {
		t.Error("the same run gave another page")
	}
}

// TestPicturesAreWellFormed reads every picture of a page as XML.
func TestPicturesAreWellFormed(t *testing.T) {
	page := written(t, parsed(t, "a", results), parsed(t, "b", results))
	n := 0
	for {
		_, rest, found := strings.Cut(page, "<svg")
		if !found {
			break
		}
		picture, after, _ := strings.Cut(rest, "</svg>")
		page = after
		n++
		decoder := xml.NewDecoder(strings.NewReader("<svg" + picture + "</svg>"))
		for {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("picture %d: %v in %s", n, err, picture)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d pictures", n)
	}
}

func TestTextOfAResultsFileIsNeverMarkup(t *testing.T) {
	const evil = `<b>"'&`
	page := written(t, parsed(t, evil+".txt", strings.NewReplacer("op=spsc", "op="+evil, "op=http",
		"op="+evil, "ring single", evil, "Some CPU", evil).Replace(results)))
	if strings.Contains(page, "<b>") {
		t.Error("a results file's text is markup on the page")
	}
}

func TestHistoryIsOfFullRunsAndOnePointEach(t *testing.T) {
	twice := results + "# | P1 | ring single, M messages/s | 99 | >= 140 | missed |\n"
	first, second := parsed(t, "a", twice),
		parsed(t, "b", strings.Replace(results, "commit: abc", "commit: def", 1))
	smoke := parsed(t, "c", "work: smoke\n"+results)
	plots := history([]*Run{first, second, smoke})
	if len(plots) != 2 ||
		!strings.Contains(plots[0].Note, "2 runs, abc to def; first 180, now 180, target at least 140") {
		t.Errorf("%+v", plots)
	}
	if page := written(t, first, second); !strings.Contains(page, "From run to run") ||
		strings.Index(page, "<h2>b</h2>") > strings.Index(page, "<h2>a</h2>") {
		t.Error("no history, or the older run comes first")
	}
	if got := history([]*Run{first, smoke}); got != nil {
		t.Errorf("one full run has a history: %v", got)
	}
}

func TestWriteFailsWithoutRunsOrRoom(t *testing.T) {
	if err := Write(io.Discard, nil); !errors.Is(err, ErrNoResults) {
		t.Errorf("got %v", err)
	}
	if err := Write(full{}, []*Run{parsed(t, "a", results)}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}

type full struct{}

var errFull = errors.New("disk is full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestPlotsLeaveOutWhatCannotBeDrawn(t *testing.T) {
	log := axis{log: true, text: short}
	nothing := []series{{name: "a", points: []point{{x: 1, y: 0}, {x: math.NaN(), y: 1},
		{x: 1, y: math.Inf(1)}}}}
	if got := linePlot(axis{text: short}, log, nothing); got != "" {
		t.Errorf("drawn: %s", got)
	}
	if got := barPlot([]bar{{"a", 0, "0"}}); got != "" {
		t.Errorf("drawn: %s", got)
	}
	one := linePlot(axis{text: short}, log,
		[]series{{name: "a", look: "r0", points: []point{{x: 5, y: 10}}}})
	if one == "" || strings.Contains(one, "NaN") || strings.Contains(one, "Inf") {
		t.Errorf("one point: %s", one)
	}
	for _, tt := range []Target{{Measured: 0, Limit: 0, AtMost: true, Met: true},
		{Measured: 1, Limit: 0, AtMost: true}, {Measured: 0, Limit: 1, AtMost: true, Met: true},
		{Measured: -1, Limit: 1}} {
		if got := targetBar(tt); strings.Contains(got, "NaN") || strings.Contains(got, `width="-`) {
			t.Errorf("%+v: %s", tt, got)
		}
	}
	if got := spark([]point{{y: 0}, {y: 0}}, 0); strings.Contains(got, "NaN") {
		t.Errorf("a history of zeros: %s", got)
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 5: "5", 12.34: "12.3", 999: "999",
		1580000: "1.58M", 300000: "300k", 0.31: "0.31", 2.5e9: "2.5G", 1e-7: "0.0000001",
		0.000044389: "0.0000444"} {
		if got := short(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	for v, want := range map[float64]string{1: "0 %", 2: "50 %", 10: "90 %", 100: "99 %",
		1000: "99.9 %", 10000: "99.99 %"} {
		if got := nines(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
	for us, want := range map[float64]string{1: "1us", 10: "10us", 100: "100us", 1000: "1ms",
		10000: "10ms", 1e6: "1s"} {
		if got := microsTick(us); got != want {
			t.Errorf("%v us is %q, want %q", us, got, want)
		}
	}
	for d, want := range map[float64]float64{0: 1, 0.7: 1, 1: 1, 1.1: 2, 3: 5, 7: 10, 4200: 5000} {
		if got := niceStep(d); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v is stepped by %v, want %v", d, got, want)
		}
	}
}
