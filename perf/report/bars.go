package report

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

// The positions of bars and their texts, in the units of a plot. A name without room on the left of
// its bar has a line of its own above it; barNameRoom is the number of characters for which there
// is room.
const (
	barHeight, barTop       = 14.0, 6.0
	barStep, barStepAbove   = 22.0, 38.0
	barLeft, barRight       = 290.0, 500.0
	barLeftAbove            = 8.0
	barNameRoom, aboveShift = 40, 16.0
)

// bar is one bar of a bar plot.
type bar struct {
	// name is escaped when it is drawn; so is text, which is the figure for a reader.
	name string
	// value is the length, in any unit that all bars of the plot share; it is not negative.
	value float64
	text  string
}

// barPlot draws bars from zero, one below the other; "" when no value is above 0. The longest one
// takes the whole width. If one name is too long, all names have lines of their own.
func barPlot(bars []bar) string {
	top := 0.0
	for _, r := range bars {
		top = max(top, r.value)
	}
	if top <= 0 {
		return ""
	}
	left, step, above := barLeft, barStep, 0.0
	if slices.ContainsFunc(bars,
		func(r bar) bool { return utf8.RuneCountInString(r.name) > barNameRoom }) {
		left, step, above = barLeftAbove, barStepAbove, aboveShift
	}
	height := barTop + step*float64(len(bars))
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img">`, plotWidth, height)
	fmt.Fprintf(&b, `<line class="axis" x1="%g" x2="%g" y1="0" y2="%g"/>`, left, left, height)
	for i, r := range bars {
		at := barTop + step*float64(i) + above
		width := max((barRight-left)*r.value/top, 1)
		if above > 0 {
			fmt.Fprintf(&b, `<text class="name" x="%g" y="%.1f">%s</text>`, left+6, at-4,
				html.EscapeString(r.name))
		} else {
			fmt.Fprintf(&b, `<text class="name" x="%g" y="%.1f" text-anchor="end">%s</text>`, left-8,
				at+barHeight-3, html.EscapeString(r.name))
		}
		fmt.Fprintf(&b,
			`<rect class="bar" x="%g" y="%.1f" width="%.1f" height="%g" rx="2"><title>%s: %s</title></rect>`,
			left, at, width, barHeight, html.EscapeString(r.name), html.EscapeString(r.text))
		fmt.Fprintf(&b, `<text class="tick" x="%.1f" y="%.1f">%s</text>`, left+width+6, at+barHeight-3,
			html.EscapeString(r.text))
	}
	b.WriteString("</svg>")
	return b.String()
}

// distinct removes from the bars' names the parts between '/' that all names have, and returns
// those parts for the caption. It changes nothing if a bar would lose its whole name, or if there
// is only one.
func distinct(bars []bar) (common string) {
	if len(bars) < 2 {
		return ""
	}
	var all, own []string
	for part := range strings.SplitSeq(bars[0].name, "/") {
		if slices.ContainsFunc(bars,
			func(r bar) bool { return !slices.Contains(strings.Split(r.name, "/"), part) }) {
			own = append(own, part)
		} else {
			all = append(all, part)
		}
	}
	if len(own) == 0 {
		return ""
	}
	for i := range bars {
		parts := slices.DeleteFunc(strings.Split(bars[i].name, "/"),
			func(part string) bool { return slices.Contains(all, part) })
		bars[i].name = strings.Join(parts, "/")
	}
	return strings.Join(all, "/")
}
