package report

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestPageDrawsWhatMadePausesAndWhatRanBeside draws the rows with causes as bars.
func TestPageDrawsWhatMadePausesAndWhatRanBeside(t *testing.T) {
	const rows = `BenchmarkPause/op=orders 1 457 p50-us 127340 max-us
BenchmarkPause/op=bare-thread 1 10 gaps>1ms/s 18481 max-us
BenchmarkPause/op=matcher 1 23 gaps>1ms/s 20073 max-us
BenchmarkPause/op=matcher/cause=preempted 1 1717.1 gaps/s 15007 max-us 21.6 lost-%
BenchmarkBeside/op=orders/work=cut/beside=nothing/round=0 1 3000 p99-us
BenchmarkBeside/op=orders/work=cut/beside=cut/round=0 1 4500 p99-us
BenchmarkEverything/op=command/beside=sql-held/round=2 1 50000 commands/s 70 p50-us 250 p99-us
BenchmarkBeside/op=allocated/stage=desk 1 0 allocs/command 0 allocs/commit
BenchmarkHeap/op=allocated/at=somewhere 1 9 allocs/command
BenchmarkHeap/op=allocated/stage=commit 1 0.012 allocs/command 4.5 allocs/commit
BenchmarkHeap/op=allocated/stage=commit 1 0.014 allocs/command 4.5 allocs/commit
BenchmarkHeap/op=allocated/stage=commit 1 0.001 allocs/command 4.5 allocs/commit
BenchmarkHeap/op=allocated/stage=desk 1 0 allocs/command 0 allocs/commit
BenchmarkJournal/op=minute/batch=8192 1 8 M/s 12.5 max-ms 900 commits<=1ms 3 commits<=20ms
`
	page := written(t, parsed(t, "abc.txt", rows))
	for _, want := range []string{
		"<h3>Pauses of the matcher&#39;s thread</h3>", "bare-thread: 18.5ms",
		"preempted: 15.0ms, 1.72k/s",
		"<figcaption>Orders beside: cut", "nothing, round 0: 3.00ms", "cut, round 0: 4.50ms",
		"<figcaption>Orders beside: everything", "sql-held, round 2: 250us",
		"<figcaption>Allocations a command: Heap", "commit: 0.014",
		"the most in any round; nothing: desk",
		"<figcaption>Commits by how long they took<span class=\"note\">Journal/op=minute/batch=8192",
		"up to 1ms: 900", "up to 20ms: 3",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"orders: 127ms", "somewhere: 9", "Allocations a command: Beside",
		": 50k commands/s"} {
		if strings.Contains(page, not) {
			t.Errorf("%q is drawn", not)
		}
	}
}

func TestNamesOfBarsLoseWhatAllHave(t *testing.T) {
	tests := []struct{ names, want, common string }{
		{"op=spsc/batch=1|op=spsc/batch=16", "batch=1|batch=16", "op=spsc"},
		{"durability=os/op=window|durability=fsync/op=window", "durability=os|durability=fsync",
			"op=window"},
		{"op=hello|op=orders/durability=os", "op=hello|op=orders/durability=os", ""},
		{"op=a/x=1", "op=a/x=1", ""},
		{"op=a|op=a", "op=a|op=a", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		var bars []bar
		for name := range strings.SplitSeq(tt.names, "|") {
			bars = append(bars, bar{name: name})
		}
		common := distinct(bars)
		var names []string
		for _, b := range bars {
			names = append(names, b.name)
		}
		if got := strings.Join(names, "|"); got != tt.want || common != tt.common {
			t.Errorf("%s: %q and %q, want %q and %q", tt.names, got, common, tt.want, tt.common)
		}
	}
	if distinct(nil) != "" {
		t.Error("nothing has something in common")
	}
}

// TestBarsAndTheirTextsStayInThePicture uses the greatest widths of the page's font.
func TestBarsAndTheirTextsStayInThePicture(t *testing.T) {
	const charWidth = 7.0
	texts := regexp.MustCompile(
		`<text class="\w+" x="([\d.]+)" y="[\d.]+"( text-anchor="end")?>([^<]*)</text>`)
	for _, name := range []string{"op=a", strings.Repeat("x", barNameRoom),
		strings.Repeat("x", barNameRoom+1), strings.Repeat("x", 80)} {
		svg := barPlot([]bar{{"short", 1, "1 commands/s"}, {name, 100, "1.11M commands/s"}})
		found := texts.FindAllStringSubmatch(svg, -1)
		if len(found) != 4 {
			t.Fatalf("%d texts in %s", len(found), svg)
		}
		for _, m := range found {
			at := must.Get(strconv.ParseFloat(m[1], 64))(t)
			width := charWidth * float64(len(m[3]))
			if m[2] != "" {
				at -= width
			}
			if at < 0 || at+width > plotWidth {
				t.Errorf("%q goes from %g to %g", m[3], at, at+width)
			}
		}
	}
}

// TestCommitsAreALineForEachTarget: neither in-process and HTTP figures nor different durabilities
// share a line.
func TestCommitsAreALineForEachTarget(t *testing.T) {
	run := parsed(t, "f", `
BenchmarkCurve/op=in-process/durability=fsync/arrivals=poisson/load=10 1 5 commands/commit
BenchmarkCurve/op=in-process/durability=fsync/arrivals=poisson/load=90 1 500 commands/commit
BenchmarkCurve/op=in-process/durability=fsync/arrivals=constant/load=90 1 7 commands/commit
BenchmarkCurve/op=http/durability=fsync/arrivals=poisson/load=10 1 2 commands/commit
BenchmarkCurve/op=session/durability=fsync/arrivals=poisson/load=10 1 3 commands/commit
BenchmarkCurve/op=http/durability=os/arrivals=poisson/load=10 1 9 commands/commit
`)
	plots := commits(run)
	if len(plots) != 2 || plots[0].Title != "Commands in a commit, fsync" ||
		plots[1].Title != "Commands in a commit, os" {
		t.Fatalf("%+v", plots)
	}
	svg := string(plots[0].SVG)
	for look, dots := range map[string]int{"c0": 2, "c1": 1, "c2": 1} {
		if got := strings.Count(svg, `<circle class="dot `+look); got != dots ||
			strings.Count(svg, `<polyline class="line `+look) != 1 {
			t.Errorf("%d dots of %s, want %d, in one line", got, look, dots)
		}
	}
	if !strings.Contains(svg, ">commands</text>") ||
		!strings.Contains(svg, ">% of saturation</text>") {
		t.Error("an axis without a name")
	}
}

// TestTimesAreMediansWithTheirP99 uses microseconds and milliseconds, and names the load.
func TestTimesAreMediansWithTheirP99(t *testing.T) {
	plots := times(parsed(t, "f", `
BenchmarkSession/durability=os/idle=adaptive/op=round-trip 1 20 p50-us 80 p99-us
BenchmarkSession/durability=os/idle=spin/op=round-trip 1 5 p50-us
BenchmarkEndToEnd/op=command/durability=fsync 1 7e+05 commands/s 469.5 p50-us-at-10% 4091 `+
		`p99-us-at-10%
BenchmarkFeeds/op=commit-to-gate 1 1.5 p50-ms 3 p99-ms
BenchmarkCurve/op=http/load=10 1 20 p50-us 80 p99-us
`))
	want := map[string][]string{
		"EndToEnd": {"op=command/durability=fsync/at 10 % of saturation: 470us, p99 4.09ms"},
		"Session":  {"idle=adaptive: 20.0us, p99 80.0us", "idle=spin: 5.00us<"},
		"Feeds":    {"op=commit-to-gate: 1.50ms, p99 3.00ms"},
	}
	if len(plots) != len(want) {
		t.Errorf("%d plots, want %d", len(plots), len(want))
	}
	for _, p := range plots {
		for _, text := range want[p.Title] {
			if !strings.Contains(string(p.SVG), text) {
				t.Errorf("%s lacks %q: %s", p.Title, text, p.SVG)
			}
		}
	}
}
