package report

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"
)

// day is the date of a run in UTC, for a reader.
func (r *Run) day() string {
	if r.When.IsZero() {
		return "no date"
	}
	return r.When.UTC().Format(time.DateOnly)
}

// history shows each target that several runs have, from run to run, in the order in which targets
// first appear. Runs of all kinds of machine are in one row of points: each names its processor,
// because a step between two points may be another machine.
//
// A target whose text has other numbers is another target here.
func history(runs []*Run) (plots []plot) {
	type target struct{ row, figure string }
	type line struct {
		points []point
		last   Target
		first  string
		to     string
	}
	var order []target
	lines := map[target]*line{}
	for _, run := range runs {
		if run.field("work") == "smoke" {
			continue // a hundredth of the work shows that rows run, not how fast
		}
		seen := map[target]bool{}
		for _, t := range run.Targets {
			if t.Open || seen[target{t.Row, t.Figure}] {
				continue // one point per run, also when the run has the figure twice
			}
			seen[target{t.Row, t.Figure}] = true
			key := target{t.Row, t.Figure}
			l := lines[key]
			if l == nil {
				l = &line{first: run.field("commit")}
				lines[key] = l
				order = append(order, key)
			}
			l.last, l.to = t, run.field("commit")
			note := fmt.Sprintf("%s on %s, %s: %s", run.field("commit"), run.field("cpu"), run.day(),
				short(t.Measured))
			l.points = append(l.points, point{y: t.Measured, note: note})
		}
	}
	for _, key := range order {
		if l := lines[key]; len(l.points) > 1 {
			note := fmt.Sprintf("%d runs, %s to %s; first %s, now %s, target %s %s", len(l.points), l.first,
				l.to,
				short(l.points[0].y), short(l.last.Measured), sign(l.last), short(l.last.Limit))
			plots = drawn(plots, key.row+": "+key.figure, note, spark(l.points, l.last.Limit))
		}
	}
	return plots
}

// sign is the target's direction in words.
func sign(t Target) string {
	if t.AtMost {
		return "at most"
	}
	return "at least"
}

// spark draws a figure from run to run, with its target as a line. The scale is logarithmic when
// limit and values are above 0. The x axis is the order of the runs, not their time. Equal values
// get a range of 1, so that the scale has a height.
func spark(points []point, limit float64) string {
	const width, height, pad = 220.0, 48.0, 6.0
	y := axis{log: limit > 0}
	values := []float64{limit}
	for _, p := range points {
		values = append(values, p.y)
		y.log = y.log && p.y > 0
	}
	y.min, y.max = slices.Min(values), slices.Max(values)
	if y.max <= y.min {
		y.max = y.min + 1
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="small" viewBox="0 0 %g %g" role="img">`, width, height)
	at := y.at(limit, height-pad, pad)
	fmt.Fprintf(&b,
		`<line class="limit" x1="0" x2="%g" y1="%.1f" y2="%.1f"><title>target %.4g</title></line>`, width,
		at, at, limit)
	var path []string
	for i, p := range points {
		x := pad + (width-2*pad)*float64(i)/float64(max(len(points)-1, 1))
		path = append(path, fmt.Sprintf("%.1f,%.1f", x, y.at(p.y, height-pad, pad)))
	}
	fmt.Fprintf(&b, `<polyline class="line c0" points="%s"/>`, strings.Join(path, " "))
	for i, p := range points {
		cx, cy, _ := strings.Cut(path[i], ",")
		fmt.Fprintf(&b, `<circle class="dot c0" cx="%s" cy="%s" r="4"><title>%s</title></circle>`, cx, cy,
			html.EscapeString(p.note))
	}
	b.WriteString("</svg>")
	return b.String()
}
