package report

import (
	"fmt"
	"slices"
	"strings"
)

// rowsOf are the rows of a group that have a figure, in the order of the file.
func rowsOf(run *Run, group, unit string) (rows []*Row) {
	for i := range run.Rows {
		row := &run.Rows[i]
		if _, found := row.get(unit); found && row.group() == group {
			rows = append(rows, row)
		}
	}
	return rows
}

// pauses are the longest pauses of the matcher's thread by what made them.
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

// besides are the orders' p99 alone and beside other work, a plot for each work.
func besides(run *Run) (plots []plot) {
	var works []string
	bars := map[string][]bar{}
	for _, row := range rowsOf(run, "Beside", "p99-us") {
		work := row.key("work")
		if bars[work] == nil {
			works = append(works, work)
		}
		p99, _ := row.get("p99-us")
		bars[work] = append(bars[work], bar{row.key("beside") + ", round " + row.key("round"), p99, micros(p99)})
	}
	for _, work := range works {
		plots = drawn(plots, "Orders beside: "+work, "", barPlot(bars[work]))
	}
	return plots
}

// allocations are what each stage asked for a command, a plot for each kind of run.
func allocations(run *Run) (plots []plot) {
	var groups []string
	bars := map[string][]bar{}
	for i := range run.Rows {
		row := &run.Rows[i]
		per, found := row.get("allocs/command")
		stage := row.key("stage")
		if !found || stage == "" || row.key("op") != "allocated" {
			continue
		}
		if !slices.Contains(groups, row.group()) {
			groups = append(groups, row.group())
		}
		bars[row.group()] = append(bars[row.group()], bar{stage, per, short(per)})
	}
	for _, group := range groups {
		plots = drawn(plots, "Allocations a command: "+group, "", barPlot(bars[group]))
	}
	return plots
}

// commitTimes is how long the commits of a minute took.
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
