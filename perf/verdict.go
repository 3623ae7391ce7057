package perf

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
)

// goal is what the performance table asks of one figure. The row that measures it declares it, so
// that the table and the measurement cannot differ: there is no second list.
//
// Goals are compared with == (see missing), so that each field must be comparable, and a function
// that makes a goal must return equal values for equal arguments.
type goal struct {
	// row is the name of the table's row: P1 to P17, or "pause". text is the figure's text, with a
	// verb of fmt for each number that only a run knows.
	row, text string
	// limit is in the unit of the figure: a ratio, a rate, or the unit that the text ends with.
	limit float64
	// atMost says that the figure may not be above the limit; otherwise it may not be below.
	atMost bool
	// figure is the text with the numbers that the table asks for, for a line without a verdict; ""
	// when text has no verbs.
	figure string
	// why says for which reason the figure may be missing, apart from its row not being run.
	why string
}

// atMost is a figure that may not be above a limit.
func atMost(row string, limit float64, text string) goal {
	return goal{row: row, text: text, limit: limit, atMost: true}
}

// atLeast is a figure that may not be below a limit.
func atLeast(row string, limit float64, text string) goal {
	return goal{row: row, text: text, limit: limit}
}

// as sets the figure's text when nothing was measured.
func (g goal) as(figure string) goal { g.figure = figure; return g }

// unless sets why the figure may be missing.
func (g goal) unless(why string) goal { g.why = why; return g }

// of is the goal's text with the numbers of a run.
func (g goal) of(args ...any) string { return fmt.Sprintf(g.text, args...) }

// states reports that a line of some run is about this goal.
//
// A verb of the text matches any text in the figure. It is for results of other runs, in which the
// numbers may be others; a run of this process compares goals themselves.
func (g *goal) states(row, figure string) bool {
	text := regexp.QuoteMeta(g.text)
	for _, verb := range []string{"%d", "%v", "%s"} {
		text = strings.ReplaceAll(text, verb, ".+")
	}
	return g.row == row && regexp.MustCompile("^(?:"+strings.ReplaceAll(text, "%%", "%")+
		")$").MatchString(figure)
}

// target is a figure and the goal that it must reach: one line of the table of a run.
type target struct {
	goal
	// text is the goal's text with the numbers of this run.
	text string
	// got is the figure in the unit of the goal's limit. 0 when unknown.
	got float64
	// floor says what stands beside the figure: the comparator of this run, or the reason why there is
	// no verdict. It is for readers; the verdict does not depend on it.
	floor string
	// unknown says that nothing was measured, so that there is no verdict.
	unknown bool
}

// met compares with the limit itself: a figure at the limit has met it. A figure that is not a
// number never has.
func (t *target) met() bool {
	if t.atMost {
		return t.got <= t.limit
	}
	return t.got >= t.limit
}

// beside sets the text of the comparator beside the figure.
func (t *target) beside(format string, args ...any) { t.floor = fmt.Sprintf(format, args...) }

// judge compares a figure with its goal; args are the numbers in the goal's text. The target that
// it returns may be used until the next call.
//
// It never fails the run. A row calls it at most once for each goal. A row that is too short in a
// smoke run to mean anything leaves the call out, and the goal's why says so.
func (r *Run) judge(g goal, got float64, args ...any) *target {
	r.targets = append(r.targets, target{goal: g, text: g.of(args...), got: got})
	return &r.targets[len(r.targets)-1]
}

// summary prints the targets as a table in Markdown: row, figure, measured, target, verdict, and
// what stands beside the figure.
func (r *Run) summary(w io.Writer) {
	fmt.Fprintf(w, "\n| row | figure | measured | target | | beside |\n|---|---|---:|---:|---|---|\n")
	for _, t := range r.targets {
		fmt.Fprintln(w, t)
	}
}

// String is one row of the table. report.Parse reads the same line back from a results file; "-" as
// the figure stands for no verdict.
func (t target) String() string {
	sign, verdict, got := ">=", "met", fmt.Sprintf("%.4g", t.got)
	if t.atMost {
		sign = "<="
	}
	switch {
	case t.unknown:
		verdict, got = "no verdict", "-"
	case !t.met():
		verdict = "missed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s %.4g | %s | %s |", t.row, t.text, got, sign, t.limit,
		verdict, t.floor)
}

// goals are everything that the performance table asks for, in its order.
//
// Goals of one row of the table keep the order in which the rows run, also when several rows of a
// run (http, curve) measure them.
func goals() (all []goal) {
	for _, row := range rows() {
		all = append(all, row.goals...)
	}
	slices.SortStableFunc(all, func(a, b goal) int { return tableOrder(a.row) - tableOrder(b.row) })
	return all
}

// unjudged adds a line without a verdict for every figure of the table that the run has not judged.
//
// So a full run cannot hide a figure by not measuring it. A run of chosen rows does not call it.
func (r *Run) unjudged() {
	for _, g := range r.missing() {
		t := target{goal: g, text: cmp.Or(g.figure, g.of()), unknown: true}
		t.beside("%s", "not measured")
		if g.why != "" {
			t.beside("not measured: %s", g.why)
		}
		r.targets = append(r.targets, t)
	}
	slices.SortStableFunc(r.targets,
		func(a, b target) int { return tableOrder(a.row) - tableOrder(b.row) })
}

// missing are the goals for which this run has no target.
func (r *Run) missing() (list []goal) {
	for _, g := range goals() {
		if !slices.ContainsFunc(r.targets, func(t target) bool { return t.goal == g }) {
			list = append(list, g)
		}
	}
	return list
}

// tableOrder is the position of a row in the table; rows that are not in it come last.
// P2 comes before P10: the order is that of the numbers.
func tableOrder(row string) (n int) {
	if _, err := fmt.Sscanf(row, "P%d", &n); err != nil {
		return math.MaxInt
	}
	return n
}
