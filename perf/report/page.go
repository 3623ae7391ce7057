package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"
)

// section is one run on the page.
type section struct {
	Run *Run
	// Open says that the section is unfolded: the newest run's.
	Open    bool
	When    string
	Targets []targetLine
	// Met is the number of targets met.
	Met int
	// Unknown is the number of targets without a verdict.
	Unknown int
	Groups  []group
}

// group is a set of plots about one subject.
type group struct {
	Title string
	Note  string
	Plots []plot
}

// targetLine is a target as a line of the page.
type targetLine struct {
	Target
	Sign    string
	Verdict string
	// Look is the verdict's class in the style sheet.
	Look string
	Bar  template.HTML
}

// lineOf is a target with the words and the bar of its verdict. An open target has no bar, because
// its figure is not a number.
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

// Write writes the page of some runs, which come oldest first, as Load returns them; the newest is
// at the top. Without a run it is ErrNoResults. The page has no script and loads nothing; it may be
// kept as one file. After an error of w a part of it has been written.
func Write(w io.Writer, runs []*Run) error {
	if len(runs) == 0 {
		return fmt.Errorf("report: write: %w", ErrNoResults)
	}
	data := struct {
		History  []plot
		Sections []section
		Style    template.CSS
	}{History: history(runs), Style: template.CSS(style)}
	for _, run := range slices.Backward(runs) {
		data.Sections = append(data.Sections, sectionOf(run, len(data.Sections) == 0))
	}
	if err := page.Execute(w, data); err != nil {
		return fmt.Errorf("report: write: %w", err)
	}
	return nil
}

// sectionOf collects a run's targets and plots. A group without a plot is left out, so older files
// with fewer rows have shorter sections.
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
			"The longest of each cause, beside a thread of the same process that only reads the clock. " +
				"Rest the pointer on a bar for how often.", pauses(run)},
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

//go:embed page.html
var pageText string

// page is parsed once, at start: an error in it is a bug of this file.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure": short,
}).Parse(pageText))

// style colours the lines of an order in shades of one hue, so that p99.9 differs clearly from p50
// on either background. The two verdicts have hues that every reader can tell apart, also with a
// colour vision deficiency.
//
//go:embed page.css
var style string
