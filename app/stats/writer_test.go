package stats

import (
	"path/filepath"
	"runtime/metrics"
	"slices"
	"testing"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/matcher/session"
	"posttrade/matcher/session/wire"
	"posttrade/ring/must"
	"posttrade/ring/timing"
)

// TestSessionsAreCountedByWhatBecameOfTheirCommands copies a server's counters.
func TestSessionsAreCountedByWhatBecameOfTheirCommands(t *testing.T) {
	m := session.Metrics{Orders: 2, Feeds: 3, Commands: 100, Accepted: 60, Duplicates: 4, Copies: 5,
		Trades: 6, Tops: 7, Missed: 8}
	m.Answers[wire.Decided], m.Answers[wire.Refused], m.Answers[wire.Busy],
		m.Answers[wire.Malformed] = 80, 9, 10, 1
	m.Rejections[matcher.CreditLimit], m.Rejections[matcher.KillSwitch] = 20, 5
	m.Refused[wire.OK], m.Refused[wire.BadToken], m.Refused[wire.TooMany] = 99, 1, 2
	m.Times[7] = 11
	want := Sessions{
		Present: 1, Orders: 2, Feeds: 3, Commands: 100, Accepted: 60, Duplicate: 4, Refused: 25,
		NotTaken:   11,
		TurnedAway: 3, Records: 18, Missed: 8, Times: m.Times,
	}
	// the previous content is replaced
	got := Sessions{Commands: 7, Busiest: [sessionRows]Session{{ID: 9}}}
	if got.lookSessions(m); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestBusiestSessionsAreShown: the sessions of orders, by their answers; as many as there are rows.
func TestBusiestSessionsAreShown(t *testing.T) {
	answered := func(id uint64, role wire.Role, n uint64) session.SessionInfo {
		one := session.SessionInfo{ID: id, Role: role, Peer: int32(1000 + id)}
		one.Times[5] = n
		return one
	}
	open := []session.SessionInfo{answered(1, wire.Orders, 5), answered(2, wire.DropCopy, 900),
		answered(3, wire.Orders, 7), answered(4, wire.Orders, 5)}
	ids := func(open ...session.SessionInfo) (list []uint64) {
		var s Sessions
		s.rankSessions(open)
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

// edgeFigures is an order-matcher that has given answers.
var edgeFigures = httpapi.Metrics{
	Orders: func(emit func(string, uint64)) {
		emit("accepted", 5)
		emit("rejected", 3)
		emit("duplicate", 2)
		emit("some later decision", 9)
	},
	Latencies: func(emit func(string, timing.Distribution)) {
		emit("http", timing.Distribution{Count: 10, Sum: 0.25,
			Native: map[int]int64{0: 4, -40: 6, -500: 1, 500: 1}})
		// these are not answers of the edge
		emit("session", timing.Distribution{Count: 1, Sum: 1, Native: map[int]int64{0: 1}})
	},
}

// TestStagesAreCountedBehindTheirFeeder checks the sums of the path's looks.
func TestStagesAreCountedBehindTheirFeeder(t *testing.T) {
	var s Stage
	s.LookStage(10, 25)
	s.LookStage(30, 25) // read later than the stage before it: nothing is behind
	s.LookStage(31, 36)
	if want := (Stage{Sequence: 31, Behind: 5, BehindSum: 20}); s != want {
		t.Errorf("stage %+v, want %+v", s, want)
	}
	var r Ring
	r.LookRing(7, 64)
	r.LookRing(9, 64)
	if want := (Ring{Depth: 9, Slots: 64, DepthSum: 16}); r != want {
		t.Errorf("ring %+v, want %+v", r, want)
	}
}

func TestAnswersAreCountedByDecisionAndTime(t *testing.T) {
	want := Answers{Accepted: 5, Rejected: 3, Duplicate: 2, SumNanos: 250_000_000}
	want.Latency[Offset], want.Latency[Offset-40] = 4, 6
	want.Latency[0], want.Latency[buckets-1] = 1, 1 // beyond the last bucket
	got := Answers{Accepted: 99}
	for range 2 { // the second look does not add to the first
		if got.lookAnswers(edgeFigures); got != want {
			t.Errorf("answers %+v, want %+v", got, want)
		}
	}
	if got.lookAnswers(httpapi.Metrics{}); got != (Answers{}) {
		t.Errorf("without an order-matcher: %+v", got)
	}
}

// TestPausesAreFoldedByTheirUpperBound reads a histogram finer than the file's.
func TestPausesAreFoldedByTheirUpperBound(t *testing.T) {
	h := metrics.Float64Histogram{Counts: []uint64{1, 2, 3, 4},
		Buckets: []float64{0, 0.9, 0.95, 1, 1e300}}
	var got, want Distribution
	(&runtimeReader{}).pauses(&h, &got)
	want[Offset], want[buckets-1] = 6, 4
	if got != want {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

// TestWriterLooksAtEveryTick counts the looks by the ticks, and reads the final figures.
func TestWriterLooksAtEveryTick(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stats")
	w := must.Get(NewStatsWriter(path, still(), time.Now))(t)
	tick, stop, ended := make(chan time.Time), make(chan struct{}), make(chan error)
	go func() { ended <- w.Run(tick, stop) }()
	tick <- time.Time{}
	tick <- time.Time{} // received when the first look is over
	if image, alive := loaded(t, path); !alive || image.Clock.Tick < 2 || image.Clock.Stopped != 0 {
		t.Errorf("alive %t, clock %+v", alive, image.Clock)
	}
	close(stop)
	must.OK(t, <-ended)
	if image, alive := loaded(t, path); alive || image.Clock.Tick != 4 || image.Clock.Stopped != 1 {
		t.Errorf("after the end: alive %t, clock %+v", alive, image.Clock)
	}
}

// still are the sources of a process in which nothing happens.
func still() Sources {
	return Sources{Path: func(*Path) {}, Commits: func() journal.Metrics { return journal.Metrics{} }}
}
