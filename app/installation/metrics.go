package installation

import (
	"fmt"
	"strings"

	"posttrade/app/engine"
	"posttrade/httpapi"
	"posttrade/ring/metric"
	"posttrade/ring/timing"
	"posttrade/sidecars/control"
	"posttrade/sidecars/projection"
)

// coreMetrics adds the stages' counters to those of the edge.
//
// It only wires functions. They run when a client reads /metrics, on that client's goroutine, and
// read what the parts count anyway.
func coreMetrics(k *engine.Engine, edge *httpapi.OrderMatcher) httpapi.Metrics {
	m := edge.Metrics()
	m.Rings = func(emit func(string, int, int)) {
		emit("input", k.In.Depth(), k.In.Cap())
		emit("output", k.Out.Depth(), k.Out.Cap())
	}
	m.Stages = stagesOf(k)
	m.JournalCommits = k.Journal.CommitTimes
	m.JournalBytes = func() uint64 { return k.Journal.Metrics().CommitBytes }
	m.More = func(emit metric.Emit) {
		numberMetrics(k, emit)
		k.Gate.Collect(emit)
	}
	m.Latencies = andStage(m.Latencies, "journal", k.Journal.CommitTimes)
	if k.Session != nil {
		m.More = together(m.More, k.Session.Collect)
		m.Latencies = andStage(m.Latencies, "session", func() timing.Distribution {
			return distributionOf(k.Session.Metrics().Times)
		})
	}
	return m
}

// stagesOf emits how far each stage behind the input ring has come.
//
// The numbers are input sequences, so the distance of two stages is the number of commands between
// them.
func stagesOf(k *engine.Engine) func(emit func(string, uint64)) {
	return func(emit func(string, uint64)) {
		emit("matcher", k.Stage.Applied())
		emit("recorder", k.Journal.Applied())
		emit("views", k.Views.Applied())
		emit("durable", k.Journal.Durable())
	}
}

// andStage adds the times of one more stage.
//
// A stage is a value of the label stage of svc_stage_latency_seconds.
func andStage(others latencies, stage string, times func() timing.Distribution) latencies {
	return func(emit func(string, timing.Distribution)) {
		if others != nil {
			others(emit)
		}
		emit(stage, times())
	}
}

// latencies emits the times of stages; see httpapi.Metrics.Latencies.
type latencies = func(emit func(stage string, d timing.Distribution))

// together emits the metrics of several parts; it skips nil ones.
//
// The parts must not state the same metric, except with other labels.
func together(parts ...func(metric.Emit)) func(metric.Emit) {
	return func(emit metric.Emit) {
		for _, part := range parts {
			if part != nil {
				part(emit)
			}
		}
	}
}

// memberMetrics adds what a member knows of its cluster, and the metrics of the leader's parts.
//
// Services is replaced: on a member the relays count the requests, whatever service stands behind
// them.
func (in *Installation) memberMetrics(orders *httpapi.OrderMatcher) httpapi.Metrics {
	m := coreMetrics(in.Core, orders)
	rings := m.Rings
	m.Rings = func(emit func(string, int, int)) {
		rings(emit)
		emit("proposals", in.Core.Proposals.Depth(), in.Core.Proposals.Cap())
	}
	m.Services = nil
	for _, relay := range in.Member.relays {
		m.Services = append(m.Services, relay.Counted)
	}
	m.ClusterCommits = in.Member.Node.Commits
	m.Latencies = andStage(m.Latencies, "agreement", in.Member.Node.Commits)
	m.More = together(m.More, in.processMetrics, in.scrubbing.metrics, in.past.Collect,
		in.feed.Collect, in.backups.Metrics, in.healing.metrics,
		in.clusterMetrics)
	return m
}

// clusterMetrics are the member's role, its relays and the leader's parts.
//
// The leader's parts appear and go with the leadership.
func (in *Installation) clusterMetrics(emit metric.Emit) {
	leads := in.Member.Node.Leads()
	emitRole(emit, "leader", leads)
	emitRole(emit, "follower", !leads)
	for _, relay := range in.Member.relays {
		relay.Metrics(emit)
	}
	if d := in.Beside.Load(); d != nil {
		d.metrics(emit)
	}
}

// emitRole is one role of this member, 1 when it has it.
func emitRole(emit metric.Emit, role string, has bool) {
	emit.Flag("svc_cluster_role", "1 for the role that this member has.", has, "role", role)
}

// singleMetrics adds to coreMetrics the cluster metrics of a node without a cluster: its role, and
// zero for everything that members agree on. So a monitoring system finds every metric on every
// installation.
func singleMetrics(k *engine.Engine, edge *httpapi.OrderMatcher) httpapi.Metrics {
	m := coreMetrics(k, edge)
	m.ClusterCommits = func() (none timing.Distribution) { return none }
	m.More = together(m.More, func(emit metric.Emit) { emitRole(emit, "single", true) })
	return m
}

// metrics states the counters of the sidecars.
//
// Their names and help texts are in their packages.
func (d *downstream) metrics(emit metric.Emit) {
	d.recon.Collect(emit)
	d.settlement.Collect(emit)
	d.projection.Collect(emit)
	d.tca.Collect(emit)
	d.prices.Collect(emit)
	for _, source := range control.Sources() {
		d.sources.feeds[source].Collect(emit)
	}
}

// projected is the input sequence up to which every fill is in SQL.
//
// The services show it in /health.
func (d *downstream) projected() uint64 {
	_, inputSeq := d.projection.Projected()
	return inputSeq
}

// projectedTrades is the last trade that is in SQL.
func (d *downstream) projectedTrades() uint64 {
	tradeSeq, _ := d.projection.Projected()
	return tradeSeq
}

// state is /health of the trade-processor.
//
// It is degraded without a database, whatever the loops say; otherwise failed when a loop has
// ended with an error, and ok when none has.
func (d *downstream) state() string {
	if ready, _ := d.Db.State(); !ready {
		return "degraded"
	}
	for _, name := range d.loops.names() {
		if d.loops.err(name) != nil {
			return "failed"
		}
	}
	return "ok"
}

// parts are the sidecars on /readyz. Orders are admitted without them.
//
// Only the loops that have ended with an error are named. A nil downstream has no parts: sidecars
// are off, or they run on the leader.
func (d *downstream) parts() []httpapi.Part {
	if d == nil {
		return nil
	}
	part := func(name string, ready bool, detail string) httpapi.Part {
		return httpapi.Part{Name: name, Ready: ready, Detail: detail, Beside: true}
	}
	ready, detail := d.Db.State()
	list := []httpapi.Part{part("database", ready, detail)}
	// Orders do not need a database. But an installation with another installation's database must not
	// report that it is ready.
	if d.projection.Foreign() {
		list[0] = part("database", false, projection.ErrForeign.Error())
	}
	list[0].Beside = !d.Db.Foreign() && !d.projection.Foreign()
	ready, detail = d.broker.State()
	list = append(list, part("broker", ready, detail))
	for _, name := range d.loops.names() {
		if err := d.loops.err(name); err != nil {
			list = append(list, part(name, false, err.Error()))
		}
	}
	return list
}

// vote is this member's own vote on /readyz?vote=true. Without it another member must stay.
func (m *member) vote() httpapi.Part {
	if m.Node.Votes() {
		return httpapi.Part{Name: "vote", Ready: true, Detail: "this member has one"}
	}
	return httpapi.Part{Name: "vote", Detail: "this member has none yet, or gave it back"}
}

// parts is the cluster on /readyz.
//
// It decides readiness: without a leader no request can be served anywhere. A nil member, on a
// single node, has no part. Members without a vote are named and do not decide.
func (m *member) parts() []httpapi.Part {
	if m == nil {
		return nil
	}
	leader, _ := m.Node.Leader("order-matcher")
	var detail string
	switch {
	case m.Node.Leads():
		detail = fmt.Sprintf("member %s leads", leader)
	case leader != "":
		detail = fmt.Sprintf("follows member %s", leader)
	default:
		detail = "no leader is known"
		if err := m.Node.Apart(); err != nil {
			detail = err.Error()
		}
		return []httpapi.Part{{Name: "cluster", Detail: detail}}
	}
	if out := m.Node.Voteless(); len(out) > 0 {
		detail += ", without a vote: " + strings.Join(out, ", ")
	}
	return []httpapi.Part{{Name: "cluster", Ready: true, Detail: detail}}
}
