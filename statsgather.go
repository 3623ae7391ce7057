package main

import (
	"math"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/httpapi"
	"posttrade/journal"
	"posttrade/journal/quorum"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
)

// statsSources is where the figures come from: counters that their owners keep
// anyway, which can be read from any goroutine.
type statsSources struct {
	path    func(*statsPath)
	commits func() journal.Metrics
	answers httpapi.Metrics // Orders and Latencies are read; nil ones are left out
	feeds   func(*statsFeeds)
	lags    func(*statsLags)
	cluster func(*statsCluster) // nil: a single node

	sessions func(*statsSessions) // nil: there is no socket
}

// statsSourcesOf reads an installation. edge are the metrics of its order-matcher.
// What it returns may be used as long as the core is not stopped.
func statsSourcesOf(in *installation, edge httpapi.Metrics) statsSources {
	s := statsSources{path: in.core.pathFigures, commits: in.core.journal.Metrics, answers: edge}
	if in.member != nil {
		s.cluster = in.member.figures
	}
	if server := in.core.session; server != nil {
		s.sessions = (&sessionReader{server: server}).look
	}
	if !in.listeners.c.Bool("sidecars.enabled") {
		return s
	}
	s.feeds = func(f *statsFeeds) {
		if d := in.beside.Load(); d != nil {
			d.feedFigures(f)
		} else {
			*f = statsFeeds{Present: statsElsewhere}
		}
	}
	s.lags = func(l *statsLags) {
		if d := in.beside.Load(); d != nil {
			d.lagFigures(l)
		} else {
			*l = statsLags{Present: statsElsewhere}
		}
	}
	return s
}

// pathFigures reads rings and stages, the last stage first: what is counted as
// behind had not been done when it was looked at.
func (k *core) pathFigures(p *statsPath) {
	durable, views, recorder := k.journal.Durable(), k.views.Applied(), k.journal.Applied()
	matcher := k.stage.Applied()
	input, output := uint64(k.in.Depth()), uint64(k.out.Depth())
	p.Stages[stageMatcher].look(matcher, matcher+input)
	p.Stages[stageRecorder].look(recorder, matcher)
	p.Stages[stageViews].look(views, matcher)
	p.Stages[stageDurable].look(durable, recorder)
	p.Input.look(input, k.in.Cap())
	p.Output.look(output, k.out.Cap())
	if k.proposals != nil {
		p.Proposals.look(uint64(k.proposals.Depth()), k.proposals.Cap())
	}
	p.Events, p.Stalls = uint64(k.recorder.Events()), k.stage.Stalls()
	p.Ready = word(k.gate.Ready())
	p.Looks++
}

// look notes a stage's sequence and that of what feeds it.
func (s *statsStage) look(sequence, before uint64) {
	s.Sequence, s.Behind = sequence, before-min(sequence, before)
	s.BehindSum += s.Behind
}

func (r *statsRing) look(depth uint64, slots int) {
	r.Depth, r.Slots = depth, uint64(slots)
	r.DepthSum += depth
}

// word is a truth as it stands in the file.
func word(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// look takes the journal's counters over.
func (c *statsCommits) look(m journal.Metrics) {
	*c = statsCommits{
		Commits: m.Commits, Commands: m.Durable, Bytes: m.CommitBytes,
		Nanos: uint64(m.CommitSeconds * 1e9), MaxNanos: uint64(m.MaxCommit), InFlight: uint64(max(m.InFlight, 0)),
		StorageFull: word(m.StorageFull), Poisoned: word(m.Poisoned), Buckets: m.CommitCounts,
	}
	for i, seconds := range journal.CommitBuckets {
		c.Bounds[i] = uint64(seconds*1e9 + 0.5)
	}
}

// look takes the order-matcher's counters over.
func (a *statsAnswers) look(m httpapi.Metrics) {
	*a = statsAnswers{}
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
		m.Latencies(func(stage string, d httpapi.Distribution) {
			if stage == sessionStage {
				return // sessions have a block of their own
			}
			a.SumNanos += uint64(d.Sum * 1e9)
			for at, n := range d.Positive { // the same buckets, by the exponent of their bound
				a.Latency[min(max(at+statsOffset, 0), statsBuckets-1)] += uint64(n)
			}
		})
	}
}

// runtimeReader reads the Go runtime's figures, into the same memory every time.
type runtimeReader struct {
	samples []metrics.Sample
	buckets []int // of the pauses' histogram: where each is counted in a statsDistribution
}

// newRuntimeReader asks for the figures in the order in which look assigns them.
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

func (r *runtimeReader) look(to *statsRuntime) {
	metrics.Read(r.samples)
	for i, field := range []*uint64{&to.Heap, &to.HeapGoal, &to.Mapped, &to.Allocated, &to.Goroutines, &to.GCCycles} {
		if v := r.samples[i].Value; v.Kind() == metrics.KindUint64 {
			*field = v.Uint64()
		}
	}
	to.Pauses = statsDistribution{}
	if v := r.samples[len(r.samples)-1].Value; v.Kind() == metrics.KindFloat64Histogram {
		r.pauses(v.Float64Histogram(), &to.Pauses)
	}
}

// pauses folds the runtime's finer buckets, each by its upper bound.
func (r *runtimeReader) pauses(h *metrics.Float64Histogram, to *statsDistribution) {
	if r.buckets == nil {
		r.buckets = make([]int, len(h.Counts))
		for i := range r.buckets {
			r.buckets[i] = statsBucket(h.Buckets[i+1])
		}
	}
	for i, n := range h.Counts {
		to[r.buckets[i]] += n
	}
}

// feedFigures reads the control sources.
func (d *downstream) feedFigures(to *statsFeeds) {
	to.Present = statsHere
	for i, name := range control.Sources() {
		f := d.sources.feeds[name]
		s := statsFeed{
			Unpublished: uint64(max(f.outbox.Unpublished(), 0)), PublishLagNanos: uint64(f.outbox.LagSeconds() * float64(time.Second)),
		}
		if b := f.bootstrap.Load(); b != nil {
			status := b.Status()
			s.State, s.Watermark, s.HighWatermark = feedState(status.State), status.Watermark, status.HighWatermark
		}
		to.Sources[i] = s
	}
}

// feedState is a replica's state as its place in statsFeedStates.
func feedState(s bootstrap.State) uint64 {
	for i, name := range statsFeedStates {
		if name == s.String() {
			return uint64(i)
		}
	}
	return 0
}

// lagFigures reads how far what follows the journal is behind.
func (d *downstream) lagFigures(to *statsLags) {
	database, _ := d.db.State()
	link, _ := d.broker.State()
	r := d.recon.Metrics()
	*to = statsLags{
		Present: statsHere, Projection: d.projection.Lag(), Recon: r.Lag, TCA: d.tca.Lag(), OpenBreaks: r.OpenBreaks,
		Database: word(database), Broker: word(link),
	}
	for _, name := range d.loops.names() {
		to.Failed += word(d.loops.err(name) != nil)
	}
}

// figures reads what a member knows of its cluster.
func (m *member) figures(to *statsCluster) {
	p := m.node.Progress()
	leader, _ := m.node.Leader("order-matcher")
	to.Members, to.Member, to.Leader = uint64(m.count), numberOf(p.Member), numberOf(leader)
	to.Role, to.Term, to.Index, to.Applied = roleFigure(p.Role), p.Term, p.Last, p.Applied
	counts, _ := m.node.Commits()
	to.Commit = statsDistribution{}
	for i, n := range counts {
		if bound := quorum.CommitBuckets[i]; !math.IsInf(bound, 1) {
			to.Commit[statsBucket(bound)] += n
		}
	}
}

// numberOf is a member's number, 0 for none.
func numberOf(member string) uint64 {
	n, _ := strconv.ParseUint(member, 10, 8)
	return n
}

// roleFigure is the place of a role in statsRoles.
func roleFigure(role string) uint64 {
	i := slices.Index(statsRoles[:], strings.ToLower(role))
	return uint64(max(i, 0))
}
