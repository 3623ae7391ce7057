package perf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"posttrade/perf/report"
	"posttrade/ring/must"
)

// TestReportReadsWhatARunWrites makes a page from the results file of a run.
func TestReportReadsWhatARunWrites(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	r := &Run{o: Options{Stdout: &said, Smoke: true, Out: filepath.Join(dir, "run.txt")},
		env: readEnvironment("abc", dir)}
	r.bench("Ring/op=spsc/batch=1", 1000, time.Millisecond, metric{2.5, "M/s"})
	r.judge(atMost("P0", 2, "a figure"), 1)
	clock := &stepped{}
	must.OK(t, r.curve(curve{name: "made-up/durability=os", target: &instant{clock: clock},
		clock: clock, window: 8}))
	must.OK(t, r.write())
	for results, page := range map[string]string{r.o.Out: filepath.Join(dir, "run.html"),
		dir + "/": dir + ".html"} {
		must.OK(t, WriteReport(results, "", &said))
		text := must.Get(os.ReadFile(page))(t)
		for _, want := range []string{"<dd>abc</dd>", "made-up, os, constant arrivals",
			"1 of 1 targets met", "<h3>Percentiles</h3>"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %q", page, want)
			}
		}
	}
	blocked := filepath.Join(r.o.Out, "page.html") // below a file
	for _, tt := range [][2]string{{filepath.Join(dir, "absent"), ""}, {r.o.Out, blocked},
		{r.o.Out, dir}} {
		if err := WriteReport(tt[0], tt[1], &said); err == nil {
			t.Errorf("%v is no error", tt)
		}
	}
}

// A run of old is judged by the limit of today's table; the run itself has another one.
func TestVerdictsAreByTheLimitsOfToday(t *testing.T) {
	dir := t.TempDir()
	const run = "cpu: A\ncores: 2\nwork: full\n\nBenchmarkX 1 2 ns/op\n\n" +
		"# | P8 | orders/s in batches of 100, mode fsync | 4e+05 | >= 3e+05 | met |  |\n"
	must.OK(t, os.WriteFile(filepath.Join(dir, "old.txt"), []byte(run), 0o600))
	var said bytes.Buffer
	must.OK(t, WriteVerdicts(dir, "A", LastRuns, &said))
	const want = "| P8 | orders/s in batches of 100, mode fsync | >= 5e+05 | 0 of 1 | " +
		"4e+05 to 4e+05 |\n"
	if !strings.HasSuffix(said.String(), want) {
		t.Errorf("%q, want the row %q", said.String(), want)
	}
	err := WriteVerdicts(dir, "B", LastRuns, &said)
	if want := "perf: verdicts folder=" + dir + " machine=B: "; !errors.Is(err,
		report.ErrNoResults) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q and ErrNoResults", err, want)
	}
}
