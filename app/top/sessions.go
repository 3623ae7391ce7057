package top

import (
	"math"
	"strconv"
	"time"

	"posttrade/app/stats"
	"posttrade/matcher/session"
)

// sessionLines show the shared-memory sessions: all together, then the busiest one by one.
//
// Counts that should be 0 are shown only when they are not.
func sessionLines(s *span, _ int) []frameLine {
	now := &s.to.Sessions
	if now.Present == 0 {
		return []frameLine{heading("SESSIONS", "none: there is no socket")}
	}
	rate := func(counter func(*stats.Sessions) uint64) string {
		return s.rateText(func(i *stats.Image) uint64 { return counter(&i.Sessions) })
	}
	lines := []frameLine{
		headed("SESSIONS", say("%s of orders, %s of feeds; %s commands a second", thousands(now.Orders),
			thousands(now.Feeds),
			rate(func(n *stats.Sessions) uint64 { return n.Commands }))),
		{label("answers"), say("accepted %s  refused %s  duplicate %s  not taken %s  a second",
			rate(func(n *stats.Sessions) uint64 { return n.Accepted }),
			rate(func(n *stats.Sessions) uint64 { return n.Refused }),
			rate(func(n *stats.Sessions) uint64 { return n.Duplicate }),
			rate(func(n *stats.Sessions) uint64 { return n.NotTaken }))},
		{label("time"), say("%s", sessionTimes(&s.from.Sessions.Times, &now.Times))},
		{label("feeds"),
			say("%s records a second", rate(func(n *stats.Sessions) uint64 { return n.Records }))},
	}
	last := &lines[len(lines)-1]
	for _, count := range []struct {
		text string
		n    uint64
	}{{"missed by slow readers", now.Missed}, {"clients turned away", now.TurnedAway}} {
		if count.n > 0 {
			*last = append(*last, piece{"  " + thousands(count.n) + " " + count.text, toneWarning})
		}
	}
	for i := range now.Busiest {
		if now.Busiest[i].ID != 0 {
			lines = append(lines, sessionLine(s, &now.Busiest[i]))
		}
	}
	return lines
}

// sessionLine is one session. Rates do not include what it did before it was first shown.
//
// A session that was not among the busiest at the earlier reading has no rate, and percentiles
// since it was opened.
func sessionLine(s *span, now *stats.Session) frameLine {
	from, rate := session.Times{}, math.NaN()
	for i := range s.from.Sessions.Busiest {
		if before := &s.from.Sessions.Busiest[i]; before.ID == now.ID {
			from = before.Times
			rate = float64(now.Times.Count()-from.Count()) / s.nanos * 1e9
		}
	}
	return frameLine{label("no. " + strconv.FormatUint(now.ID, 10)),
		say(" pid %-8d %10s a second  %s", now.Peer, decimal(rate), sessionTimes(&from, &now.Times))}
}

// sessionTimes are the mean and percentiles of what Times have gained.
//
// Each percentile is the upper bound of an octave, so it can be twice too long.
func sessionTimes(from, to *session.Times) string {
	at := func(q float64) string { return short(quantile(q, from[:], to[:], stats.SessionBound)) }
	return "mean " + short(meanOf(from, to)) + "  p50 " + at(0.5) + "  p99 " + at(0.99)
}

// meanOf is the mean of what Times have gained, with the middle of the bucket for each.
func meanOf(from, to *session.Times) time.Duration {
	var sum, n float64
	for b := range to {
		gained := float64(to[b] - min(from[b], to[b]))
		sum, n = sum+gained*float64(stats.SessionMiddle(b)), n+gained
	}
	if n == 0 {
		return stats.None
	}
	return time.Duration(sum / n)
}
