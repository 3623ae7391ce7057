package session

import (
	"fmt"
	"strings"

	"posttrade/matcher"
	"posttrade/matcher/session/wire"
	"posttrade/ring/metric"
)

// Collect states the counters of the sessions, under names that begin with svc_session. A reason
// without a refusal is not stated; every answer code is. Any goroutine.
func (s *Server) Collect(emit metric.Emit) {
	m := s.Metrics()
	for kind, n := range map[string]int{"orders": m.Orders, "feeds": m.Feeds} {
		emit.Gauge("svc_sessions", "Sessions that are open, by kind.", float64(n), "kind", kind)
	}
	emit.Counter("svc_session_commands_total", "Commands taken from sessions.", m.Commands)
	emit.Counter("svc_session_duplicates_total",
		"Commands of sessions answered with the first decision on their client id.", m.Duplicates)
	for code, n := range m.Answers {
		emit.Counter("svc_session_answers_total",
			"Answers to commands of sessions, by how far they came.", n, "code",
			labelOf(wire.Code(code)))
	}
	for reason, n := range m.Rejections {
		if n > 0 {
			emit.Counter("svc_session_rejections_total", "Commands of sessions refused, by reason.", n,
				"reason", matcher.RiskReason(reason).String())
		}
	}
	for status, n := range m.Refused {
		if wire.Status(status) != wire.OK {
			emit.Counter("svc_session_turned_away_total",
				"Clients that asked for a session and got none, by why.", n, "status",
				labelOf(wire.Status(status)))
		}
	}
	for status, n := range m.Ended {
		emit.Counter("svc_session_ends_total",
			"Sessions that have ended, by why; ok: the client left.", n, "status",
			labelOf(wire.Status(status)))
	}
	for feed, n := range map[string]uint64{"drop-copy": m.Copies, "trades": m.Trades,
		"tops": m.Tops, "missed": m.Missed} {
		emit.Counter("svc_session_records_total",
			"Records given to sessions that read, and those they were too slow for.", n, "feed", feed)
	}
}

// labelOf is a name as the value of a label, such as too_many: lower case, with underscores for
// spaces.
func labelOf(s fmt.Stringer) string {
	return strings.ReplaceAll(strings.ToLower(s.String()), " ", "_")
}
