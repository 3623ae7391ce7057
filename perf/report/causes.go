package report

import (
	"fmt"
	"slices"
	"strings"
)

// rowsOf are the rows of a group that have a figure of this unit, in the order of the file.
func rowsOf(run *Run, group, unit string) (rows []*Row) {
	for i := range run.Rows {
		row := &run.Rows[i]
		if _, found := row.get(unit); found && row.group() == group {
			rows = append(rows, row)
		}
	}
	return rows
}

// pauses are the longest pauses of the matcher's thread by cause, in microseconds, with how often a
// second each cause was met. The bare thread's bar is beside them.
func pauses(run *Run) []plot {
	var bars []bar
	for _, row := range rowsOf(run, "Pause", "max-us") {
		name := row.key("cause")
		if name == "" {
			name = row.key("op")
		}
		if name == "orders" {
			continue // a latency, not a pause
		}
		longest, _ := row.get("max-us")
		text := micros(longest)
		if perSecond, found := row.get("gaps/s"); found {
			text = fmt.Sprintf("%s, %s/s", text, short(perSecond))
		}
		bars = append(bars, bar{name, longest, text})
	}
	return drawn(nil, "Longest pause", "", barPlot(bars))
}

// besides are the orders' p99 alone and beside other work, one plot for each kind of work, a bar
// for each phase in the order in which they ran. Lines of the group Everything have no key "work";
// their group names it.
func besides(run *Run) (plots []plot) {
	var works []string
	bars := map[string][]bar{}
	for _, row := range append(rowsOf(run, "Beside", "p99-us"),
		rowsOf(run, "Everything", "p99-us")...) {
		work := row.key("work")
		if work == "" {
			work = strings.ToLower(row.group())
		}
		if bars[work] == nil {
			works = append(works, work)
		}
		p99, _ := row.get("p99-us")
		bars[work] = append(bars[work], bar{row.key("beside") + ", round " + row.key("round"), p99,
			micros(p99)})
	}
	for _, work := range works {
		plots = drawn(plots, "Orders beside: "+work, "", barPlot(bars[work]))
	}
	return plots
}

// timed are the groups with times shown as bars; the other groups have plots of their own.
var timed = []string{"EndToEnd", "Session", "Cluster", "HTTP", "Feeds", "Disk", "TCA"}

// quickest are the names that a row may use for its median and its p99. Milliseconds become
// microseconds.
var quickest = [][2]string{{"p50-us", "p99-us"}, {"p50-us-at-10%", "p99-us-at-10%"},
	{"p50-ms", "p99-ms"}}

// times are medians and p99s, one plot for each group.
//
// A row without a p99 has a bar without one in its text.
func times(run *Run) (plots []plot) {
	for _, group := range timed {
		var bars []bar
		var p99s []float64
		for _, names := range quickest {
			for _, row := range rowsOf(run, group, names[0]) {
				p50, _ := row.get(names[0])
				p99, _ := row.get(names[1])
				if strings.Contains(names[0], "-ms") {
					p50, p99 = 1000*p50, 1000*p99
				}
				name := strings.TrimPrefix(row.Name, group+"/")
				if _, at10, found := strings.Cut(names[0], "-at-"); found {
					name += "/at " + strings.TrimSuffix(at10, "%") + " % of saturation"
				}
				bars, p99s = append(bars, bar{name: name, value: p50, text: micros(p50)}), append(p99s, p99)
			}
		}
		for i := range bars {
			if p99s[i] > 0 {
				bars[i].text += ", p99 " + micros(p99s[i])
			}
		}
		common := distinct(bars)
		plots = drawn(plots, group, common, barPlot(bars))
	}
	return plots
}

// allocations are the allocations of each stage per command, one plot for each kind of run: the
// most in any round. Stages without allocations are named and have no bar.
//
// Rounds are not told apart by a key, so a stage that comes again is another round.
func allocations(run *Run) (plots []plot) {
	var groups []string
	stages, rounds := map[string][]bar{}, map[string]int{}
	for i := range run.Rows {
		row := &run.Rows[i]
		per, found := row.get("allocs/command")
		stage := row.key("stage")
		if !found || stage == "" || row.key("op") != "allocated" {
			continue
		}
		group := row.group()
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		at := slices.IndexFunc(stages[group], func(b bar) bool { return b.name == stage })
		if at < 0 {
			stages[group] = append(stages[group], bar{name: stage, value: per})
			continue
		}
		stages[group][at].value = max(stages[group][at].value, per)
		rounds[group]++
	}
	for _, group := range groups {
		var bars []bar
		var none []string
		for _, b := range stages[group] {
			if b.value == 0 {
				none = append(none, b.name)
				continue
			}
			b.text = short(b.value)
			bars = append(bars, b)
		}
		var notes []string
		if rounds[group] > 0 {
			notes = append(notes, "the most in any round")
		}
		if len(none) > 0 {
			notes = append(notes, "nothing: "+strings.Join(none, ", "))
		}
		plots = drawn(plots, "Allocations a command: "+group, strings.Join(notes, "; "), barPlot(bars))
	}
	return plots
}

// commitTimes are the times of the commits of a minute: a bar for each bucket that has commits, as
// the units "commits<=<bound>" name them.
func commitTimes(run *Run) (plots []plot) {
	const upTo = "commits<="
	for i := range run.Rows {
		row := &run.Rows[i]
		var bars []bar
		for _, m := range row.Metrics {
			if bound, found := strings.CutPrefix(m.Unit, upTo); found {
				bars = append(bars, bar{"up to " + bound, m.Value, short(m.Value)})
			}
		}
		plots = drawn(plots, "Commits by how long they took", row.Name, barPlot(bars))
	}
	return plots
}
