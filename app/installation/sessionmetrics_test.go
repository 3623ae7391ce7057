package installation

import (
	"os"
	"testing"

	"posttrade/app/apptest"
	"posttrade/app/stats"
	"posttrade/httpapi"
	"posttrade/matcher/session"
)

// TestSessionsShowInMetricsAndFigures sends an order through shared memory after a client was
// turned away, and checks that both are shown.
func TestSessionsShowInMetricsAndFigures(t *testing.T) {
	in, _, _ := orderThroughMemory(t, t.TempDir(), "seen")
	in.awaitMetrics("svc_session_commands_total 1", `svc_session_answers_total{code="decided"} 1`,
		`svc_session_answers_total{code="not_entitled"} 0`, `svc_sessions{kind="orders"} 1`,
		`svc_session_turned_away_total{status="token_refused"} 1`,
		`svc_session_ends_total{status="ok"} 0`,
		`svc_stage_latency_seconds_count{stage="session"} 1`)
	from := statsSourcesOf(in.Installation, httpapi.Metrics{})
	apptest.Until(t, "the session is shown by itself", func() (bool, any) {
		var s stats.Sessions
		from.Sessions(&s)
		return s.Present == 1 && s.Orders == 1 && s.Commands == 1 && s.Accepted == 1 &&
			s.TurnedAway == 1 && s.Times.Count() == 1 &&
			s.Busiest[0].Peer == uint64(os.Getpid()) && s.Busiest[0].Times.Count() == 1, s
	})
}

// TestSessionTimesAsAHistogram: every command is in one bucket with a bound that is not below the
// command's time.
func TestSessionTimesAsAHistogram(t *testing.T) {
	var times session.Times
	for b := range times {
		times[b] = uint64(b + 1)
	}
	d := distributionOf(times)
	var n int64
	for _, count := range d.Native {
		n += count
	}
	if d.Count != times.Count() || n != int64(d.Count) {
		t.Errorf("count %d, in buckets %d, want %d", d.Count, n, times.Count())
	}
	for b := range session.TimeBuckets - 1 {
		at := stats.Bucket(stats.SessionBound(b).Seconds())
		if bound := stats.Bound(at); bound+1 < stats.SessionBound(b) ||
			float64(bound) > 1.2*float64(stats.SessionBound(b))+1 {
			t.Errorf("bucket %d, up to %v, is counted up to %v", b, stats.SessionBound(b), bound)
		}
	}
	if d := distributionOf(session.Times{}); d.Count != 0 || d.Sum != 0 || len(d.Native) != 0 {
		t.Errorf("nothing was timed: %+v", d)
	}
}
