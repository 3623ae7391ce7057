package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"posttrade/httpapi"
	"posttrade/matcher"
	"posttrade/matcher/session"
	"posttrade/matcher/session/wire"
)

// TestSessionsShowInMetricsAndFigures hands an order in through shared memory after a
// client was turned away, and looks for both.
func TestSessionsShowInMetricsAndFigures(t *testing.T) {
	in, _, _ := orderThroughMemory(t, t.TempDir(), "seen")
	in.awaitMetrics("svc_session_commands_total 1", `svc_session_answers_total{code="decided"} 1`,
		`svc_session_answers_total{code="not_entitled"} 0`, `svc_sessions{kind="orders"} 1`,
		`svc_session_turned_away_total{status="token_refused"} 1`, `svc_session_ends_total{status="ok"} 0`,
		`svc_stage_latency_seconds_count{stage="session"} 1`)
	from := statsSourcesOf(in.installation, httpapi.Metrics{})
	until(t, "the session is shown by itself", func() (bool, any) {
		var s statsSessions
		from.sessions(&s)
		return s.Present == 1 && s.Orders == 1 && s.Commands == 1 && s.Accepted == 1 && s.TurnedAway == 1 && s.Times.Count() == 1 &&
			s.Busiest[0].Peer == uint64(os.Getpid()) && s.Busiest[0].Times.Count() == 1, s
	})
}

// TestSessionsAreCountedByWhatBecameOfTheirCommands takes a server's counters over.
func TestSessionsAreCountedByWhatBecameOfTheirCommands(t *testing.T) {
	m := session.Metrics{Orders: 2, Feeds: 3, Commands: 100, Accepted: 60, Duplicates: 4, Copies: 5, Trades: 6, Tops: 7, Missed: 8}
	m.Answers[wire.Decided], m.Answers[wire.Refused], m.Answers[wire.Busy], m.Answers[wire.Malformed] = 80, 9, 10, 1
	m.Rejections[matcher.CreditLimit], m.Rejections[matcher.KillSwitch] = 20, 5
	m.Refused[wire.OK], m.Refused[wire.BadToken], m.Refused[wire.TooMany] = 99, 1, 2
	m.Times[7] = 11
	want := statsSessions{
		Present: 1, Orders: 2, Feeds: 3, Commands: 100, Accepted: 60, Duplicate: 4, Refused: 25, NotTaken: 11,
		TurnedAway: 3, Records: 18, Missed: 8, Times: m.Times,
	}
	got := statsSessions{Commands: 7, Busiest: [statsSessionRows]statsSession{{ID: 9}}} // what was there before goes
	if got.look(m); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBusiestSessionsAreShown: those of orders, by their answers; as many as there are rows.
func TestBusiestSessionsAreShown(t *testing.T) {
	answered := func(id uint64, role wire.Role, n uint64) session.SessionInfo {
		one := session.SessionInfo{ID: id, Role: role, Peer: int32(1000 + id)}
		one.Times[5] = n
		return one
	}
	open := []session.SessionInfo{answered(1, wire.Orders, 5), answered(2, wire.DropCopy, 900), answered(3, wire.Orders, 7), answered(4, wire.Orders, 5)}
	ids := func(open ...session.SessionInfo) (list []uint64) {
		var s statsSessions
		s.rank(open)
		for _, one := range s.Busiest {
			if one.ID != 0 && (one.Peer != 1000+one.ID || one.Times.Count() == 0) {
				t.Errorf("session %+v", one)
			}
			list = append(list, one.ID)
		}
		return list
	}
	if got, want := ids(open...), []uint64{3, 1, 4, 0, 0, 0, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("sessions %v, want %v", got, want)
	}
	open = open[:0]
	for id := range uint64(20) {
		open = append(open, answered(id+1, wire.Orders, id+1))
	}
	if got, want := ids(open...), []uint64{20, 19, 18, 17, 16, 15, 14, 13}; !slices.Equal(got, want) {
		t.Errorf("sessions %v, want %v", got, want)
	}
}

// TestSessionTimesAsAHistogram: every command is in one bucket, whose bound is not below its own.
func TestSessionTimesAsAHistogram(t *testing.T) {
	var times session.Times
	for b := range times {
		times[b] = uint64(b + 1)
	}
	d := distributionOf(times)
	var n int64
	for _, count := range d.Positive {
		n += count
	}
	if d.Count != times.Count() || n != int64(d.Count) || d.Schema != 2 {
		t.Errorf("count %d, in buckets %d, want %d", d.Count, n, times.Count())
	}
	for b := range session.TimeBuckets - 1 {
		at := statsBucket(sessionBound(b).Seconds())
		if bound := statsBound(at); bound+1 < sessionBound(b) || float64(bound) > 1.2*float64(sessionBound(b))+1 {
			t.Errorf("bucket %d, up to %v, is counted up to %v", b, sessionBound(b), bound)
		}
	}
	if d := distributionOf(session.Times{}); d.Count != 0 || d.Sum != 0 || len(d.Positive) != 0 {
		t.Errorf("nothing was timed: %+v", d)
	}
}

func TestMeanOfSessionTimes(t *testing.T) {
	var from, to session.Times
	if got := meanOf(&from, &to); got != none {
		t.Errorf("of nothing: %v", got)
	}
	from[20], to[20] = 5, 5 // before
	to[11], to[12] = 3, 1   // 1536 ns three times, 3072 ns once
	if got, want := meanOf(&from, &to), 1920*time.Nanosecond; got != want {
		t.Errorf("mean %v, want %v", got, want)
	}
	if got := meanOf(&to, &from); got != none {
		t.Errorf("counters that went back: %v", got)
	}
}
