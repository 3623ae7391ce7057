package installation

import (
	"fmt"
	"strings"

	"posttrade/app/engine"
	"posttrade/app/stats"
	"posttrade/matcher"
	"posttrade/matcher/session"
	"posttrade/matcher/session/wire"
	"posttrade/ring/timing"
)

// sessionMetrics shows the counters of the shared-memory sessions.
func sessionMetrics(k *engine.Engine, emit emitMore) {
	m := k.Session.Metrics()
	open := func(kind string, n int) {
		emit("svc_sessions", "Sessions that are open, by kind.", false, float64(n), "kind", kind)
	}
	open("orders", m.Orders)
	open("feeds", m.Feeds)
	total := func(name, help, label string, each func(emit func(value string, n uint64))) {
		each(func(value string, n uint64) { emit(name, help, true, float64(n), label, value) })
	}
	emit("svc_session_commands_total", "Commands taken from sessions.", true, float64(m.Commands))
	emit("svc_session_duplicates_total",
		"Commands of sessions answered with the first decision on their client id.", true,
		float64(m.Duplicates))
	total("svc_session_answers_total", "Answers to commands of sessions, by how far they came.",
		"code", func(emit func(string, uint64)) {
			for code, n := range m.Answers {
				emit(labelOf(wire.Code(code)), n)
			}
		})
	total("svc_session_rejections_total", "Commands of sessions refused, by reason.", "reason",
		func(emit func(string, uint64)) {
			for reason, n := range m.Rejections {
				if n > 0 {
					emit(matcher.RiskReason(reason).String(), n)
				}
			}
		})
	total("svc_session_turned_away_total", "Clients that asked for a session and got none, by why.",
		"status", func(emit func(string, uint64)) {
			for status, n := range m.Refused {
				if wire.Status(status) != wire.OK {
					emit(labelOf(wire.Status(status)), n)
				}
			}
		})
	total("svc_session_ends_total", "Sessions that have ended, by why; ok: the client left.", "status",
		func(emit func(string, uint64)) {
			for status, n := range m.Ended {
				emit(labelOf(wire.Status(status)), n)
			}
		})
	total("svc_session_records_total",
		"Records given to sessions that read, and those they were too slow for.", "feed",
		func(emit func(string, uint64)) {
			emit("drop-copy", m.Copies)
			emit("trades", m.Trades)
			emit("tops", m.Tops)
			emit("missed", m.Missed)
		})
}

// labelOf is a name as the value of a label, such as too_many.
func labelOf(s fmt.Stringer) string {
	return strings.ReplaceAll(strings.ToLower(s.String()), " ", "_")
}

// distributionOf is Times as a histogram. A bucket of Times is an octave wide; its count goes into
// the bucket that holds its upper bound. The sum, and so a mean, takes each command for the middle
// of its bucket.
func distributionOf(times session.Times) (d timing.Distribution) {
	for b, n := range times {
		d.Add(n, stats.SessionBound(b))
		d.Sum += float64(n) * stats.SessionMiddle(b).Seconds()
	}
	return d
}
