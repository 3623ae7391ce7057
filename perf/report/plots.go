package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/latency"
)

// plot is a picture with its caption. Title and Note are plain text; the page escapes them.
type plot struct {
	Title string
	Note  string
	// SVG is made by this package, from numbers and escaped text only: the page takes it as it is.
	SVG template.HTML
}

// drawn adds the plot of a picture, if there is one. All plots come through here.
func drawn(plots []plot, title, note, svg string) []plot {
	if svg == "" {
		return plots
	}
	return append(plots, plot{title, note, template.HTML(svg)})
}

// rateUnits are the units that count as a rate, the most informative first: a row with several is
// drawn by the first of them.
var rateUnits = []string{"M/s", "orders/s", "commands/s", "rows/s", "records/s", "fills/s",
	"deltas/s"}

// rates are bars of every rate of a run, one plot for each unit.
func rates(run *Run) (plots []plot) {
	type kind struct{ group, unit string }
	var order []kind
	bars := map[kind][]bar{}
	for i := range run.Rows {
		row := &run.Rows[i]
		if slices.Contains(offered, row.group()) {
			continue
		}
		for _, unit := range rateUnits {
			value, found := row.get(unit)
			if !found {
				continue
			}
			k := kind{row.group(), unit}
			if bars[k] == nil {
				order = append(order, k)
			}
			name := strings.TrimPrefix(row.Name, row.group()+"/")
			bars[k] = append(bars[k], bar{name, value, short(value) + " " + unit})
			break
		}
	}
	for _, k := range order {
		common := distinct(bars[k])
		plots = drawn(plots, k.group, common, barPlot(bars[k]))
	}
	return plots
}

// offered are the groups with a rate that the row sets: it is no result.
var offered = []string{"Everything"}

// ranks and hues are the styles of series with an order, and of series without one.
var (
	ranks = []string{"r0", "r1", "r2", "r3"}
	hues  = []string{"c0", "c1", "c2"}
)

// quantiles are the lines of a latency curve.
var quantiles = []struct{ unit, name string }{{"p50-us", "p50"}, {"p90-us", "p90"},
	{"p99-us", "p99"}, {"p99.9-us", "p99.9"}}

// curves are latency against rate, one plot for each target and kind of arrivals, with a line for
// each percentile. The x axis is the rate that was asked for; a target that could not follow shows
// it by its times.
func curves(run *Run) (plots []plot) {
	var order []string
	points := map[string]*[4][]point{}
	for i := range run.Rows {
		row := &run.Rows[i]
		asked, found := row.get("asked/s")
		if row.group() != "Curve" || !found {
			continue
		}
		title := curveTitle(row)
		if points[title] == nil {
			order = append(order, title)
			points[title] = &[4][]point{}
		}
		for q := range quantiles {
			us, _ := row.get(quantiles[q].unit)
			note := fmt.Sprintf("%s of %s/s (%s %% of saturation): %s", quantiles[q].name, short(asked),
				row.key("load"), micros(us))
			points[title][q] = append(points[title][q], point{asked, us, note})
		}
	}
	for _, title := range order {
		var all []series
		for q := range quantiles {
			all = append(all, series{quantiles[q].name, ranks[q], points[title][q]})
		}
		plots = drawn(plots, title, "", linePlot(
			axis{label: "requests a second asked for", text: short},
			axis{label: "time to the answer", log: true, text: microsTick}, all))
	}
	return plots
}

// curveTitle names a curve by its target, mode and arrivals. The loads of one curve share it.
func curveTitle(row *Row) string {
	title := row.key("op") + ", " + row.key("durability")
	if arrivals := row.key("arrivals"); arrivals != "" {
		title += ", " + arrivals + " arrivals"
	}
	return title
}

// shownLoads are the points of a curve for which the whole distribution is drawn.
var shownLoads = []int{10, 50, 90, 95}

// percentiles are whole distributions, one plot for each curve. The axis counts nines: equal
// distances from 90 to 99 to 99.9 %. Names come from the files, so a file of another name is left
// out.
func percentiles(run *Run) (plots []plot) {
	lines := map[string][]series{}
	for name, distribution := range run.Percentiles {
		curve, text, _ := strings.Cut(name, ".load-")
		load, err := strconv.Atoi(text)
		rank := slices.Index(shownLoads, load)
		if err != nil || rank < 0 {
			continue
		}
		s := series{name: text + " % load", look: ranks[rank]}
		for _, p := range distribution {
			if p.Share < 1 {
				s.points = append(s.points, point{x: 1 / (1 - p.Share), y: p.Micros})
			}
		}
		lines[curve] = append(lines[curve], s)
	}
	var names []string
	for name, all := range lines {
		names = append(names, name)
		slices.SortFunc(all, func(a, b series) int { return cmp.Compare(a.look, b.look) })
	}
	slices.Sort(names)
	for _, name := range names {
		title := strings.NewReplacer("Curve.op-", "", ".durability-", ", ", ".arrivals-",
			", ").Replace(name) + " arrivals"
		plots = drawn(plots, title, "", linePlot(
			axis{label: "percentile", log: true, text: nines, ticks: []float64{1, 10, 100, 1000, 10_000}},
			axis{label: "time to the answer", log: true, text: microsTick}, lines[name]))
	}
	return plots
}

// nines names 1/(1-share) as a percentile: 100 is 99 %.
func nines(v float64) string {
	if v <= 1 {
		return "0 %"
	}
	return strconv.FormatFloat(100-100/v, 'f', max(int(math.Round(math.Log10(v)))-2, 0), 64) + " %"
}

// commits are how many commands share a commit at each load, one plot for each durability, with a
// line for each target. It draws Poisson arrivals only.
func commits(run *Run) (plots []plot) {
	var order []string
	lines := map[string][]series{}
	for i := range run.Rows {
		row := &run.Rows[i]
		per, found := row.get("commands/commit")
		load, err := strconv.ParseFloat(row.key("load"), 64)
		if !found || err != nil || row.key("arrivals") != "poisson" {
			continue
		}
		durability, name := row.key("durability"), row.key("op")
		all := lines[durability]
		if all == nil {
			order = append(order, durability)
		}
		at := slices.IndexFunc(all, func(s series) bool { return s.name == name })
		if at < 0 {
			at = len(all)
			all = append(all, series{name: name, look: hues[at%len(hues)]})
		}
		all[at].points = append(all[at].points,
			point{load, per, fmt.Sprintf("%s at %g %%: %s commands in a commit", name, load, short(per))})
		lines[durability] = all
	}
	for _, durability := range order {
		plots = drawn(plots, "Commands in a commit, "+durability, "Poisson arrivals", linePlot(
			axis{label: "% of saturation", text: short}, axis{label: "commands", log: true, text: short},
			lines[durability]))
	}
	return plots
}

// gaps are the interruptions of a spinning thread per second, one plot for each core.
func gaps(run *Run) (plots []plot) {
	for i := range run.Rows {
		row := &run.Rows[i]
		if row.group() != "Jitter" {
			continue
		}
		var bars []bar
		for _, m := range row.Metrics {
			if strings.HasPrefix(m.Unit, "gaps>") {
				bars = append(bars, bar{strings.TrimSuffix(strings.TrimPrefix(m.Unit, "gaps"), "/s"), m.Value,
					short(m.Value) + "/s"})
			}
		}
		longest, _ := row.get("max-us")
		lost, _ := row.get("lost-%")
		note := fmt.Sprintf("longest %s, %.2f %% of the time lost", micros(longest), lost)
		plots = drawn(plots, "Gaps of a spinning thread, core "+row.key("cpu"), note, barPlot(bars))
	}
	return plots
}

// short writes a number with three digits and a unit of thousands: 1.58M, 300k, 12.3.
func short(v float64) string {
	unit := ""
	for _, next := range []string{"k", "M", "G"} {
		if math.Abs(v) < 999.5 {
			break
		}
		v, unit = v/1000, next
	}
	text := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.Contains(text, "e") {
		rounded, _ := strconv.ParseFloat(text, 64) // the text is a number that was just formatted
		text = strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	return text + unit
}

// microsTick writes a power of ten of microseconds: 10ms.
func microsTick(us float64) string {
	return strings.NewReplacer(".00", "", "0.0", "0").Replace(micros(us))
}

// micros writes microseconds as a duration.
func micros(us float64) string { return latency.Short(time.Duration(us * 1000)) }
