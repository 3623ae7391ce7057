package report

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// The drawing area of a plot, in its own units: the page scales it. The labels of the series are to
// the right of rightEdge, labelGap apart at least.
const (
	plotWidth, plotHeight = 640.0, 320.0
	leftEdge, rightEdge   = 80.0, 540.0 // the labels of the series are to the right
	topEdge, bottomEdge   = 12.0, 278.0
	labelGap              = 14.0
)

// point is a value with the text that is shown under the pointer. A point without a text was not
// measured itself, and has no dot.
type point struct {
	x, y float64
	note string
}

// series is one line of a plot. look is its colour: r0 to r3 are shades of one hue for series with
// an order (p50 before p99), c0 to c2 are different hues for series without one.
type series struct {
	name   string
	look   string
	points []point
}

// axis is one direction of a plot. fit must be called before at.
type axis struct {
	label string
	// log says that equal distances are equal factors; values of 0 or less cannot be drawn then.
	log bool
	// low is where a linear axis starts unless a value is below it; a log one starts at its smallest
	// value.
	low float64
	// text writes a tick.
	text func(float64) string
	// ticks are the marks; nil: chosen by fit.
	ticks []float64
	// min and max are set by fit.
	min, max float64
}

// fit sets the ends of an axis around all values, and its ticks: powers of ten on a log axis, about
// five round steps on a linear one. There must be a value.
func (a *axis) fit(values []float64) {
	a.min, a.max = slices.Min(values), slices.Max(values)
	switch {
	case a.ticks != nil:
		a.min, a.max = min(a.min, a.ticks[0]), max(a.max, a.ticks[len(a.ticks)-1])
	case a.log:
		a.min = math.Pow(10, math.Floor(math.Log10(a.min)))
		a.max = math.Pow(10, math.Ceil(math.Log10(a.max)))
		if a.max <= a.min {
			a.max = 10 * a.min
		}
		for t := a.min; t <= a.max*1.0001; t *= 10 {
			a.ticks = append(a.ticks, t)
		}
	default:
		a.min = min(a.min, a.low)
		step := niceStep((a.max - a.min) / 5)
		a.max = max(math.Ceil(a.max/step), a.min/step+1) * step
		for t := a.min; t <= a.max*1.0001; t += step {
			a.ticks = append(a.ticks, t)
		}
	}
}

// niceStep is the smallest of 1, 2, 5 times a power of ten that is not below a distance.
func niceStep(d float64) float64 {
	if d <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(d)))
	for _, f := range []float64{1, 2, 5} {
		if d <= f*power*1.0001 {
			return f * power
		}
	}
	return 10 * power
}

// at is the position of a value between two edges: from for min, to for max. from may be above to,
// as on the y axis of SVG, which points down.
func (a *axis) at(v, from, to float64) float64 {
	share := (v - a.min) / (a.max - a.min)
	if a.log {
		share = math.Log(v/a.min) / math.Log(a.max/a.min)
	}
	return from + share*(to-from)
}

// drawn reports whether a value can be shown on the axis.
func (a *axis) drawn(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (!a.log || v > 0)
}

// linePlot draws series over two axes; "" when there is nothing to draw. Points that an axis cannot
// show are left out, and so are series without points.
func linePlot(x, y axis, all []series) string {
	var xs, ys []float64
	var shown []series
	for _, s := range all {
		s.points = slices.DeleteFunc(slices.Clone(s.points), func(p point) bool {
			return !x.drawn(p.x) || !y.drawn(p.y)
		})
		for _, p := range s.points {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
		if len(s.points) > 0 {
			shown = append(shown, s)
		}
	}
	if len(shown) == 0 {
		return ""
	}
	x.fit(xs)
	y.fit(ys)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img">`, plotWidth, plotHeight)
	frame(&b, &x, &y)
	for _, s := range shown {
		drawLine(&b, &x, &y, s)
	}
	labels(&b, &y, shown)
	b.WriteString("</svg>")
	return b.String()
}

// frame draws the grid, the ticks and the names of the axes.
func frame(b *strings.Builder, x, y *axis) {
	for _, t := range y.ticks {
		at := y.at(t, bottomEdge, topEdge)
		fmt.Fprintf(b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, leftEdge, rightEdge,
			at, at)
		fmt.Fprintf(b, `<text class="tick" x="%g" y="%.1f" text-anchor="end">%s</text>`, leftEdge-6, at+4,
			html.EscapeString(y.text(t)))
	}
	for _, t := range x.ticks {
		at := x.at(t, leftEdge, rightEdge)
		fmt.Fprintf(b, `<line class="axis" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/>`, at, at, bottomEdge,
			bottomEdge+4)
		fmt.Fprintf(b, `<text class="tick" x="%.1f" y="%g" text-anchor="middle">%s</text>`, at,
			bottomEdge+18, html.EscapeString(x.text(t)))
	}
	fmt.Fprintf(b, `<line class="axis" x1="%g" x2="%g" y1="%g" y2="%g"/>`, leftEdge, rightEdge,
		bottomEdge, bottomEdge)
	fmt.Fprintf(b, `<text class="tick" x="%g" y="%g" text-anchor="middle">%s</text>`,
		(leftEdge+rightEdge)/2, plotHeight-6, html.EscapeString(x.label))
	fmt.Fprintf(b,
		`<text class="tick" transform="translate(12 %g) rotate(-90)" text-anchor="middle">%s</text>`,
		(topEdge+bottomEdge)/2, html.EscapeString(y.label))
}

// drawLine draws a series, and a dot with its text under the pointer for each point that was
// measured.
func drawLine(b *strings.Builder, x, y *axis, s series) {
	var path []string
	for _, p := range s.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p.x, leftEdge, rightEdge),
			y.at(p.y, bottomEdge, topEdge)))
	}
	fmt.Fprintf(b, `<polyline class="line %s" points="%s"/>`, s.look, strings.Join(path, " "))
	for i, p := range s.points {
		if p.note == "" {
			continue
		}
		cx, cy, _ := strings.Cut(path[i], ",")
		fmt.Fprintf(b, `<circle class="dot %s" cx="%s" cy="%s" r="4"><title>%s</title></circle>`, s.look,
			cx, cy, html.EscapeString(p.note))
	}
}

// labels puts the name of every line at its end, and moves names down that would overlap.
func labels(b *strings.Builder, y *axis, all []series) {
	order := slices.Clone(all)
	slices.SortStableFunc(order, func(a, b series) int {
		return int(math.Copysign(1, b.points[len(b.points)-1].y-a.points[len(a.points)-1].y))
	})
	last := topEdge - labelGap
	for _, s := range order {
		at := max(y.at(s.points[len(s.points)-1].y, bottomEdge, topEdge)+4, last+labelGap)
		last = at
		fmt.Fprintf(b, `<text class="name" x="%g" y="%.1f"><tspan class="key %s">●</tspan> %s</text>`,
			rightEdge+8, at, s.look, html.EscapeString(s.name))
	}
}

// reach is the factor from the target to either end of a target bar. A figure beyond it has a full
// bar.
const reach = 16.0

// targetBar draws a figure in relation to its target on a log scale: the middle is the target, the
// right side is better, the left side is worse. The factor is in the title.
func targetBar(t Target) string {
	const width, height, middle = 160.0, 16.0, 80.0
	factor := t.Measured / t.Limit
	if t.AtMost {
		factor = t.Limit / t.Measured
	}
	if t.Measured == t.Limit {
		factor = 1 // also when both are zero
	}
	share := 0.0
	if factor > 0 {
		share = math.Log(factor) / math.Log(reach)
	} else if !t.Met {
		share = -1
	}
	share = min(max(share, -1), 1)
	class, from, to := "good", middle, middle+share*middle
	if !t.Met {
		class, from, to = "bad", middle+share*middle, middle
	}
	return fmt.Sprintf(
		`<svg class="small" viewBox="0 0 %g %g" role="img"><title>%.3g times as good as the `+
			`target</title>`+
			`<rect class="%s" x="%.1f" y="3" width="%.1f" height="10" rx="2"/><line class="axis" x1="%g" `+
			`x2="%g" y1="0" y2="%g"/></svg>`,
		width, height, factor, class, min(from, to), max(math.Abs(to-from), 1), middle, middle, height)
}
