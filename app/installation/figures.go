package installation

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"posttrade/app/engine"
	"posttrade/app/stats"
	"posttrade/httpapi"
	"posttrade/sidecars/bootstrap"
	"posttrade/sidecars/control"
)

// statsSourcesOf returns the sources of an installation's figures. edge are the metrics of its
// order-matcher. The sources may be read until the engine is stopped.
//
// The functions run on the goroutines of the stats file and of the flight recorder. They read
// atomics and copies, and hold up no stage. Feeds and lags are of the leader; a follower shows
// that they are elsewhere, and a process without sidecars leaves both out.
func statsSourcesOf(in *Installation, edge httpapi.Metrics) stats.Sources {
	s := stats.Sources{Path: func(p *stats.Path) { pathFigures(in.Core, p) },
		Commits: in.Core.Journal.Metrics, Answers: edge}
	if in.Member != nil {
		s.Cluster = in.Member.figures
	}
	if server := in.Core.Session; server != nil {
		s.Sessions = (&stats.SessionReader{Server: server}).Look
	}
	if !in.listeners.c.Bool("sidecars.enabled") {
		return s
	}
	s.Feeds = func(f *stats.Feeds) {
		if d := in.Beside.Load(); d != nil {
			d.feedFigures(f)
		} else {
			*f = stats.Feeds{Present: stats.Elsewhere}
		}
	}
	s.Lags = func(l *stats.Lags) {
		if d := in.Beside.Load(); d != nil {
			d.lagFigures(l)
		} else {
			*l = stats.Lags{Present: stats.Elsewhere}
		}
	}
	return s
}

// pathFigures reads rings and stages, the last stage first: a command that counts as behind was
// still behind when its stage was read.
//
// Reading in the other order could show a stage ahead of the one before it. The depth sums rise
// with each look, so that a reader of two looks gets a mean over the time between them.
func pathFigures(k *engine.Engine, p *stats.Path) {
	durable, views, recorder := k.Journal.Durable(), k.Views.Applied(), k.Journal.Applied()
	matcher := k.Stage.Applied()
	input, output := uint64(k.In.Depth()), uint64(k.Out.Depth())
	p.Stages[stats.StageMatcher].LookStage(matcher, matcher+input)
	p.Stages[stats.StageRecorder].LookStage(recorder, matcher)
	p.Stages[stats.StageViews].LookStage(views, matcher)
	p.Stages[stats.StageDurable].LookStage(durable, recorder)
	p.Input.LookRing(input, k.In.Cap())
	p.Output.LookRing(output, k.Out.Cap())
	if k.Proposals != nil {
		p.Proposals.LookRing(uint64(k.Proposals.Depth()), k.Proposals.Cap())
	}
	p.Events, p.Stalls = uint64(k.Recorder.Events()), k.Stage.Stalls()
	p.Ready, p.Killed = stats.Word(k.Gate.Ready()), stats.Word(k.Gate.Killed())
	p.Looks++
}

// feedFigures reads the control sources.
//
// The place in to.Sources is that of the source in control.Sources.
func (d *downstream) feedFigures(to *stats.Feeds) {
	to.Present = stats.Here
	for i, name := range control.Sources() {
		f := d.sources.feeds[name]
		s := stats.Feed{
			Unpublished:     uint64(max(f.Outbox.Unpublished(), 0)),
			PublishLagNanos: uint64(f.Outbox.LagSeconds() * float64(time.Second)),
		}
		if b := f.Bootstrap.Load(); b != nil {
			status := b.Status()
			s.State, s.Watermark, s.HighWatermark = feedState(status.State), status.Watermark,
				status.HighWatermark
		}
		to.Sources[i] = s
	}
}

// feedState is the place of a replica's state in stats.FeedStates.
//
// A state without a name there counts as the first one, seeds only.
func feedState(s bootstrap.State) uint64 {
	for i, name := range stats.FeedStates {
		if name == s.String() {
			return uint64(i)
		}
	}
	return 0
}

// lagFigures reads how far the followers of the journal are behind.
//
// The lags are records that are durable in the journal and not yet taken in.
func (d *downstream) lagFigures(to *stats.Lags) {
	database, _ := d.Db.State()
	link, _ := d.broker.State()
	r := d.recon.Metrics()
	*to = stats.Lags{
		Present: stats.Here, Projection: d.projection.Lag(), Recon: r.Lag, TCA: d.tca.Lag(),
		OpenBreaks: r.OpenBreaks,
		Database:   stats.Word(database), Broker: stats.Word(link),
	}
	for _, name := range d.loops.names() {
		to.Failed += stats.Word(d.loops.err(name) != nil)
	}
}

// figures reads the state of the cluster as this member knows it.
//
// It reads memory only, and asks no other member.
func (m *member) figures(to *stats.Cluster) {
	p := m.Node.Progress()
	leader, _ := m.Node.Leader("order-matcher")
	to.Members, to.Member, to.Leader = uint64(m.count), numberOf(p.Member), numberOf(leader)
	to.Role, to.Term, to.Index, to.Applied = roleFigure(p.Role), p.Term, p.Last, p.Applied
	to.Commit = stats.Distribution{}
	to.Commit.Take(m.Node.Commits())
}

// numberOf is a member's number, 0 for none.
func numberOf(member string) uint64 {
	n, _ := strconv.ParseUint(member, 10, 8)
	return n
}

// roleFigure is the place of a role in stats.Roles.
func roleFigure(role string) uint64 {
	i := slices.Index(stats.Roles[:], strings.ToLower(role))
	return uint64(max(i, 0))
}
