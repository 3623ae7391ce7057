package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

// section is one run on the page.
type section struct {
	Run     *Run
	Open    bool
	When    string
	Targets []targetLine
	Met     int
	Unknown int // targets without a verdict
	Groups  []group
}

// group is a set of plots about one subject.
type group struct {
	Title string
	Note  string
	Plots []plot
}

type targetLine struct {
	Target
	Sign    string
	Verdict string
	Look    string // of the verdict
	Bar     template.HTML
}

func lineOf(t Target) targetLine {
	l := targetLine{Target: t, Sign: "≥", Verdict: "missed", Look: "missed",
		Bar: template.HTML(targetBar(t))}
	if t.AtMost {
		l.Sign = "≤"
	}
	switch {
	case t.Open:
		l.Verdict, l.Look, l.Bar = "no verdict", "open", ""
	case t.Met:
		l.Verdict, l.Look = "met", "met"
	}
	return l
}

// Write writes the page of some runs, the newest first.
func Write(w io.Writer, runs []*Run) error {
	if len(runs) == 0 {
		return fmt.Errorf("report: write: %w", ErrNoResults)
	}
	data := struct {
		History  []plot
		Sections []section
		Style    template.CSS
	}{History: history(runs), Style: style}
	for _, run := range slices.Backward(runs) {
		data.Sections = append(data.Sections, sectionOf(run, len(data.Sections) == 0))
	}
	if err := page.Execute(w, data); err != nil {
		return fmt.Errorf("report: write: %w", err)
	}
	return nil
}

func sectionOf(run *Run, open bool) section {
	s := section{Run: run, Open: open, When: "no date"}
	if !run.When.IsZero() {
		s.When = run.When.UTC().Format(time.DateTime)
	}
	for _, t := range run.Targets {
		switch {
		case t.Open:
			s.Unknown++
		case t.Met:
			s.Met++
		}
		s.Targets = append(s.Targets, lineOf(t))
	}
	for _, g := range []group{
		{"Latency against rate",
			"Open loop: a request's time runs from when it was due, whether or not it could be sent then.",
			curves(run)},
		{"Percentiles", "The same runs, every percentile.", percentiles(run)},
		{"Rates", "", rates(run)},
		{"Commits", "", append(commits(run), commitTimes(run)...)},
		{"Pauses of the matcher's thread",
			"The longest of each cause, beside a thread of the same process that only reads the clock. Rest the pointer on a bar for how often.", pauses(run)},
		{"Orders beside other work",
			"p99 of single orders at a tenth of the saturation, alone and beside the work, in turns.",
			besides(run)},
		{"Times", "Medians of what was asked one by one, or in a window, and their p99.", times(run)},
		{"What stages ask of the heap", "", allocations(run)},
		{"The machine's own gaps",
			"What a thread sees that does nothing but read the clock. It is in every latency above.",
			gaps(run)},
	} {
		if len(g.Plots) > 0 {
			s.Groups = append(s.Groups, g)
		}
	}
	return s
}

// page is parsed once, at start: an error in it is a bug of this file.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure": short,
}).Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Performance</title>
<style>{{.Style}}</style>
</head>
<body>
<main>
<h1>Performance</h1>
{{- if .History}}
<section>
<h2>From run to run</h2>
<p class="note">The dashed line is the target. Runs on different machines stand side by side: rest the pointer on a point to see which.</p>
<div class="sparks">
{{- range .History}}
<figure class="spark"><figcaption>{{.Title}}<span class="note">{{.Note}}</span></figcaption>{{.SVG}}</figure>
{{- end}}
</div>
</section>
{{- end}}
{{- range .Sections}}
<details class="run"{{if .Open}} open{{end}}>
<summary><h2>{{.Run.Name}}</h2> <span class="note">{{.When}}{{if .Targets}}, {{.Met}} of {{len .Targets}} targets met{{if .Unknown}}, {{.Unknown}} without a verdict{{end}}{{end}}</span></summary>
<details class="machine"{{if .Open}} open{{end}}>
<summary>Machine</summary>
<dl>
{{- range .Run.Header}}
<div><dt>{{.Key}}</dt><dd>{{.Value}}</dd></div>
{{- end}}
</dl>
</details>
{{- if .Targets}}
<h3>Targets</h3>
<p class="note">A bar to the right is better than the target, to the left worse, on a logarithmic scale to sixteen times either way.</p>
<div class="wide"><table>
<thead><tr><th>Row</th><th>Figure</th><th class="n">Measured</th><th class="n">Target</th><th>Beside</th><th></th><th></th></tr></thead>
<tbody>
{{- range .Targets}}
<tr><td>{{.Row}}</td><td>{{.Figure}}</td><td class="n">{{if .Open}}-{{else}}{{figure .Measured}}{{end}}</td><td class="n">{{.Sign}} {{figure .Limit}}</td><td class="beside">{{.Beside}}</td><td>{{.Bar}}</td><td class="{{.Look}}">{{.Verdict}}</td></tr>
{{- end}}
</tbody>
</table></div>
{{- end}}
{{- range .Groups}}
<h3>{{.Title}}</h3>
{{- if .Note}}<p class="note">{{.Note}}</p>{{end}}
<div class="plots">
{{- range .Plots}}
<figure><figcaption>{{.Title}}{{if .Note}}<span class="note">{{.Note}}</span>{{end}}</figcaption>{{.SVG}}</figure>
{{- end}}
</div>
{{- end}}
<details class="rows">
<summary>All figures</summary>
<div class="wide"><table>
<tbody>
{{- range .Run.Rows}}
<tr><td>{{.Name}}</td><td class="n">{{.N}}</td><td>{{range .Metrics}}<span class="metric">{{figure .Value}} {{.Unit}}</span> {{end}}</td></tr>
{{- end}}
</tbody>
</table></div>
</details>
</details>
{{- end}}
</main>
</body>
</html>
`))

// style colours the lines of an order in shades of one hue, so that p99.9 differs clearly from p50
// on either background. The two verdicts have hues that every reader can tell apart, also with a
// colour vision deficiency.
const style template.CSS = `
:root { --page: #fcfcfb; --card: #ffffff; --ink: #1c1c1a; --soft: #5f5e58; --rule: #e4e3de; --axis: #a3a29a;
  --r0: #86b6ef; --r1: #3987e5; --r2: #1c5cab; --r3: #0d366b; --bar: #2a78d6; --c0: #2a78d6; --c1: #c4561d; --c2: #6f4bb8; --good: #1c8a5a; --bad: #c4561d; }
@media (prefers-color-scheme: dark) {
  :root { --page: #161615; --card: #1f1f1d; --ink: #efeee9; --soft: #a9a89f; --rule: #33322f; --axis: #6d6c65;
    --r0: #256abf; --r1: #3987e5; --r2: #86b6ef; --r3: #cde2fb; --bar: #3987e5; --c0: #5a9fee; --c1: #e98a52; --c2: #b79af0; --good: #3fb887; --bad: #e98a52; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 80rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 1.5rem 0 .25rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
summary { cursor: pointer; color: var(--soft); }
summary h2 { display: inline; color: var(--ink); }
.run { border-top: 1px solid var(--rule); padding: 1rem 0; }
.machine, .rows { margin: .75rem 0; }
.note { color: var(--soft); font-size: .85rem; margin: 0 0 .5rem; }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(22rem, 1fr)); gap: .1rem 2rem; margin: .5rem 0; font-size: .85rem; }
dl div { display: flex; gap: .75rem; min-width: 0; }
dt { color: var(--soft); flex: 0 0 9rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th { text-align: left; color: var(--soft); font-weight: 500; }
th, td { padding: .2rem .75rem .2rem 0; border-bottom: 1px solid var(--rule); vertical-align: middle; }
td svg { min-width: 120px; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.met { color: var(--good); } .missed { color: var(--bad); } .open, .beside { color: var(--soft); }
.met, .missed, .open { white-space: nowrap; }
.metric { white-space: nowrap; margin-right: .75rem; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(30rem, 100%), 1fr)); gap: 1rem; align-items: start; }
.sparks { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); gap: 1rem; }
figure { margin: 0; padding: .75rem 1rem; background: var(--card); border: 1px solid var(--rule); border-radius: 6px; min-width: 0; }
figcaption { font-size: .9rem; margin-bottom: .35rem; }
figcaption .note { display: block; margin: 0; }
.spark { display: flex; flex-direction: column; justify-content: space-between; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
td svg.small { width: 160px; }
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: var(--ink); }
.tick { fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--rule); } .axis { stroke: var(--axis); }
.limit { stroke: var(--soft); stroke-dasharray: 4 3; }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; }
.dot { stroke: var(--card); stroke-width: 1.5; }
.bar { fill: var(--bar); } .good { fill: var(--good); } .bad { fill: var(--bad); }
.line.r0 { stroke: var(--r0); } .line.r1 { stroke: var(--r1); } .line.r2 { stroke: var(--r2); } .line.r3 { stroke: var(--r3); }
.line.c0 { stroke: var(--c0); } .line.c1 { stroke: var(--c1); } .dot.c0, .key.c0 { fill: var(--c0); } .dot.c1, .key.c1 { fill: var(--c1); }
.line.c2 { stroke: var(--c2); } .dot.c2, .key.c2 { fill: var(--c2); }
.dot.r0, .key.r0 { fill: var(--r0); } .dot.r1, .key.r1 { fill: var(--r1); } .dot.r2, .key.r2 { fill: var(--r2); } .dot.r3, .key.r3 { fill: var(--r3); }
`
