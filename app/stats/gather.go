package stats

import (
	"cmp"
	"runtime/metrics"
	"slices"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/matcher/session"
	"posttrade/matcher/session/wire"
	"posttrade/ring/timing"
)

// answerStage is the name of the edge's answers among the latencies of httpapi.Metrics.
//
// The other stages of those latencies have blocks of their own.
const answerStage = "http"

// SessionReader reads the sessions. It uses the same memory every time.
//
// One goroutine uses it.
type SessionReader struct {
	Server *session.Server
	open   []session.SessionInfo
}

// Look reads the counters and then the open sessions, which may have changed in between.
func (r *SessionReader) Look(to *Sessions) {
	to.lookSessions(r.Server.Metrics())
	r.open = r.Server.Sessions(r.open[:0])
	to.rankSessions(r.open)
}

// lookSessions copies the server's counters.
func (s *Sessions) lookSessions(m session.Metrics) {
	*s = Sessions{
		Present: 1, Orders: uint64(m.Orders), Feeds: uint64(m.Feeds), Commands: m.Commands,
		Accepted: m.Accepted, Duplicate: m.Duplicates, Records: m.Copies + m.Trades + m.Tops,
		Missed: m.Missed, Times: m.Times,
	}
	for _, n := range m.Rejections {
		s.Refused += n
	}
	for code, n := range m.Answers {
		if c := wire.Code(code); c != wire.Decided && c != wire.Refused {
			s.NotTaken += n
		}
	}
	for status, n := range m.Refused {
		if wire.Status(status) != wire.OK {
			s.TurnedAway += n
		}
	}
}

// rankSessions keeps the sessions that have had the most answers; of two equals the older comes
// first. It sorts the slice of sessions in place.
//
// Sessions of feeds answer no commands and are left out.
func (s *Sessions) rankSessions(open []session.SessionInfo) {
	open = slices.DeleteFunc(open,
		func(one session.SessionInfo) bool { return one.Role != wire.Orders })
	slices.SortStableFunc(open,
		func(a, b session.SessionInfo) int { return cmp.Compare(b.Times.Count(), a.Times.Count()) })
	for i, one := range open[:min(len(open), len(s.Busiest))] {
		s.Busiest[i] = Session{ID: one.ID, Peer: uint64(max(one.Peer, 0)), Times: one.Times}
	}
}

// Sources are where the figures come from: counters that their owners keep anyway, and that any
// goroutine may read.
//
// They are called at every look, ten times a second, and must not block. A nil one leaves its
// block all zero, except Path and Commits, which are required.
type Sources struct {
	Path    func(*Path)
	Commits func() journal.Metrics
	Answers httpapi.Metrics // Orders and Latencies are read; nil ones are skipped
	Feeds   func(*Feeds)
	Lags    func(*Lags)
	Cluster func(*Cluster) // nil: a single node

	Sessions func(*Sessions) // nil: there is no socket
}

// LookStage notes the sequence of a stage and that of the stage before it.
//
// A stage that seems ahead of the one before it, because it was read later, counts as not behind.
func (s *Stage) LookStage(sequence, before uint64) {
	s.Sequence, s.Behind = sequence, before-min(sequence, before)
	s.BehindSum += s.Behind
}

// LookRing notes a ring's depth and adds it to the sum.
func (r *Ring) LookRing(depth uint64, slots int) {
	r.Depth, r.Slots = depth, uint64(slots)
	r.DepthSum += depth
}

// Word is a bool as a word of the file.
func Word(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// lookCommits copies the journal's counters.
//
// The journal has its times in seconds and the file in nanoseconds.
func (c *Commits) lookCommits(m journal.Metrics) {
	*c = Commits{
		Commits: m.Commits, Commands: m.Durable, Bytes: m.CommitBytes,
		Nanos: uint64(m.CommitSeconds * 1e9), MaxNanos: uint64(m.MaxCommit),
		InFlight:    uint64(max(m.InFlight, 0)),
		StorageFull: Word(m.StorageFull), Poisoned: Word(m.Poisoned), Buckets: m.CommitCounts,
	}
	for i, seconds := range journal.CommitBuckets {
		c.Bounds[i] = uint64(seconds*1e9 + 0.5)
	}
}

// lookAnswers copies the order-matcher's counters.
//
// A decision with another name is not counted: the file has no word for it.
func (a *Answers) lookAnswers(m httpapi.Metrics) {
	*a = Answers{}
	if m.Orders != nil {
		m.Orders(func(decision string, n uint64) {
			switch decision {
			case "accepted":
				a.Accepted = n
			case "rejected":
				a.Rejected = n
			case "duplicate":
				a.Duplicate = n
			}
		})
	}
	if m.Latencies != nil {
		m.Latencies(func(stage string, d timing.Distribution) {
			if stage != answerStage {
				return // the others have blocks of their own
			}
			a.SumNanos += uint64(d.Sum * 1e9)
			a.Latency.Take(d)
		})
	}
}

// runtimeReader reads the figures of the Go runtime. It uses the same memory every time.
//
// One goroutine uses it. The names are those of package runtime/metrics.
type runtimeReader struct {
	samples []metrics.Sample
	buckets []int // the bucket of a Distribution for each bucket of the pauses' histogram
}

// newRuntimeReader requests the figures in the order in which look assigns them.
//
// A name that this Go version does not have gives no value, and its word stays 0.
func newRuntimeReader() *runtimeReader {
	r := &runtimeReader{}
	for _, name := range []string{
		"/memory/classes/heap/objects:bytes", "/gc/heap/goal:bytes", "/memory/classes/total:bytes",
		"/gc/heap/allocs:bytes", "/sched/goroutines:goroutines", "/gc/cycles/total:gc-cycles",
		"/sched/pauses/total/gc:seconds",
	} {
		r.samples = append(r.samples, metrics.Sample{Name: name})
	}
	return r
}

// look assigns the figures by their place in samples; the last one is the histogram.
func (r *runtimeReader) look(to *Runtime) {
	metrics.Read(r.samples)
	for i, field := range []*uint64{&to.Heap, &to.HeapGoal, &to.Mapped, &to.Allocated, &to.Goroutines,
		&to.GCCycles} {
		if v := r.samples[i].Value; v.Kind() == metrics.KindUint64 {
			*field = v.Uint64()
		}
	}
	to.Pauses = Distribution{}
	if v := r.samples[len(r.samples)-1].Value; v.Kind() == metrics.KindFloat64Histogram {
		r.pauses(v.Float64Histogram(), &to.Pauses)
	}
}

// pauses folds the runtime's finer buckets into the distribution, each by its upper bound.
func (r *runtimeReader) pauses(h *metrics.Float64Histogram, to *Distribution) {
	if r.buckets == nil {
		r.buckets = make([]int, len(h.Counts))
		for i := range r.buckets {
			r.buckets[i] = Bucket(h.Buckets[i+1])
		}
	}
	for i, n := range h.Counts {
		to[r.buckets[i]] += n
	}
}
