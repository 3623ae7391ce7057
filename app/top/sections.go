package top

import (
	"fmt"
	"math"
	"strings"
	"time"

	"posttrade/app/stats"
)

// The width of a bar, and the values from which a figure is marked.
const (
	// The bounds of a bar, in columns.
	minBar    = 10
	maxBar    = 60
	besideBar = 52 // columns of a ring's line that are not its bar
	// Two seconds: twenty looks that the writer has missed.
	staleAfter = 20 * stats.Every
	// Shares of a ring's slots.
	ringWarning = 0.5
	ringBad     = 0.9
)

// compose shows the figures of after, with rates since before, in width columns.
//
// before is nil for the first reading; rates are those since the start then. It draws nothing.
func compose(before, after *statsReading, width int) frame {
	s := spanBetween(before, after)
	f := frame{titleLine(after, &s)}
	for _, section := range []func(*span, int) []frameLine{
		ringLines, stageLines, commitLines, answerLines, sessionLines, runtimeLines, feedLines, lagLines,
		clusterLines,
	} {
		f = append(f, frameLine{})
		f = append(f, section(&s, width)...)
	}
	return f
}

// titleLine says first what an operator must not miss: not ready, kill switch, old figures.
//
// The time that the rates are of comes last.
func titleLine(l *statsReading, s *span) frameLine {
	line := frameLine{
		{"posttrade", toneTitle}, say("  pid %d  up %s  ", l.image.Header.PID,
			uptime(l.image.Clock.UptimeNanos)),
		{"ready", toneGood},
	}
	if l.image.Path.Ready == 0 {
		line[2] = piece{"NOT READY", toneBad}
	}
	if l.image.Path.Killed != 0 {
		line = append(line, piece{"  KILL SWITCH ON", toneBad})
	}
	if age := l.age(); age > staleAfter {
		line = append(line, piece{"  figures are " + age.Round(stats.Every).String() + " old", toneBad})
	}
	over := "  since the start"
	if !s.sinceStart() {
		over = "  over " + time.Duration(s.nanos).Round(time.Millisecond).String()
	}
	return append(line, piece{over, toneFaint})
}

// ringLines shows how full the rings are: a full one stops the stage before it.
//
// The bars take what the line leaves, from minBar to maxBar columns.
func ringLines(s *span, width int) []frameLine {
	p := &s.to.Path
	line := func(name string, r *stats.Ring, sum func(*stats.Image) uint64) frameLine {
		full := ratio(r.Depth, r.Slots)
		return frameLine{
			label(name), {"[", toneFaint}, {bar(full, min(max(width-besideBar, minBar), maxBar)),
				ringTone(full)}, {"] ", toneFaint},
			say("%9s of %-9s mean %s", thousands(r.Depth), thousands(r.Slots), decimal(s.mean(sum))),
		}
	}
	lines := []frameLine{
		heading("RINGS", fmt.Sprintf("stalls of the matcher %s",
			thousands(s.of(func(i *stats.Image) uint64 { return i.Path.Stalls })))),
	}
	if p.Proposals.Slots > 0 {
		lines = append(lines, line("proposals", &p.Proposals,
			func(i *stats.Image) uint64 { return i.Path.Proposals.DepthSum }))
	}
	return append(lines,
		line("input", &p.Input, func(i *stats.Image) uint64 { return i.Path.Input.DepthSum }),
		line("output", &p.Output, func(i *stats.Image) uint64 { return i.Path.Output.DepthSum }))
}

// ringTone marks how full a ring is: from ringBad on, the stage before it is about to wait.
func ringTone(full float64) tone {
	switch {
	case full >= ringBad:
		return toneBad
	case full >= ringWarning:
		return toneWarning
	}
	return toneGood
}

// bar fills a share of width; a share over zero shows at least one mark.
//
// The marks are rounded up.
func bar(share float64, width int) string {
	marks := int(math.Ceil(min(share, 1) * float64(width)))
	if share <= 0 || math.IsNaN(share) {
		marks = 0
	}
	return strings.Repeat("|", marks) + strings.Repeat(" ", width-marks)
}

// stageLines shows how far each stage is behind the one before it, and how long a command waits
// there.
func stageLines(s *span, _ int) []frameLine {
	const columns = "%15s %12s %9s %10s"
	lines := []frameLine{heading("STAGES", fmt.Sprintf(columns, "sequence", "a second", "behind",
		"mean wait"))}
	for i, name := range stats.Stages {
		at, rate := &s.to.Path.Stages[i], "-"
		if !s.sinceStart() { // otherwise the rate would be that of the recovery
			rate = s.rateText(func(image *stats.Image) uint64 { return image.Path.Stages[i].Sequence })
		}
		lines = append(lines, frameLine{label(name), say(columns, thousands(at.Sequence), rate,
			thousands(at.Behind), short(s.wait(i)))})
	}
	return lines
}

// commitLines shows the commits since the last frame; full storage is said beside them.
//
// The sizes are means of the commits in the span; in flight is the number of now.
func commitLines(s *span, _ int) []frameLine {
	c := &s.to.Commits
	commits := s.of(func(i *stats.Image) uint64 { return i.Commits.Commits })
	bytes := ratio(s.of(func(i *stats.Image) uint64 { return i.Commits.Bytes }), commits)
	commands := math.NaN()
	if !s.sinceStart() {
		commands = ratio(s.of(func(i *stats.Image) uint64 { return i.Commits.Commands }), commits)
	}
	first := headed("COMMITS", say("%s a second, %s commands and %s each, %d in flight",
		s.rateText(func(i *stats.Image) uint64 { return i.Commits.Commits }), decimal(commands),
		bytesText(bytes), c.InFlight))
	if c.StorageFull != 0 {
		first = append(first, piece{"  STORAGE FULL", toneBad})
	}
	if c.Poisoned != 0 {
		first = append(first, piece{"  FAILED", toneBad})
	}
	return []frameLine{first, {label("time"), say("p50 %s  p99 %s  longest since the start %s",
		short(s.commitQuantile(0.5)), short(s.commitQuantile(0.99)), short(time.Duration(c.MaxNanos)))}}
}

// answerLines shows the order-matcher's answers over HTTP: by decision, and the time to an answer.
func answerLines(s *span, _ int) []frameLine {
	return []frameLine{
		headed("ANSWERS", say("accepted %s  rejected %s  duplicate %s  a second",
			s.rateText(func(i *stats.Image) uint64 { return i.Answers.Accepted }),
			s.rateText(func(i *stats.Image) uint64 { return i.Answers.Rejected }),
			s.rateText(func(i *stats.Image) uint64 { return i.Answers.Duplicate }))),
		{label("time"), say("%s",
			s.percentiles(func(i *stats.Image) *stats.Distribution { return &i.Answers.Latency }))},
	}
}

// runtimeLines shows the heap of the Go runtime and its collections. The slabs of the engine are
// in mapped memory, which is not part of the heap.
func runtimeLines(s *span, _ int) []frameLine {
	r := &s.to.Runtime
	allocated := s.rate(func(i *stats.Image) uint64 { return i.Runtime.Allocated })
	cycles := s.of(func(i *stats.Image) uint64 { return i.Runtime.GCCycles })
	return []frameLine{
		headed("RUNTIME", say("heap %s of %s; mapped %s; %s/s allocated",
			bytesText(float64(r.Heap)), bytesText(float64(r.HeapGoal)), bytesText(float64(r.Mapped)),
			bytesText(allocated))),
		{label("collector"), say("%s cycles, %s now; pauses %s; %s goroutines", thousands(r.GCCycles),
			thousands(cycles),
			s.percentiles(func(i *stats.Image) *stats.Distribution { return &i.Runtime.Pauses }),
			thousands(r.Goroutines))},
	}
}
