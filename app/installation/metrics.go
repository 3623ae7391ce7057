package installation

import (
	"posttrade/app/stats"
	"posttrade/ring/timing"

	"fmt"

	"posttrade/app/engine"
	"posttrade/httpapi"
	"posttrade/sidecars/projection"
)

// coreMetrics adds the stages' counters to those of the edge.
func coreMetrics(k *engine.Engine, edge *httpapi.OrderMatcher) httpapi.Metrics {
	m := edge.Metrics()
	m.Rings = func(emit func(string, uint64)) {
		emit("input", uint64(k.In.Depth()))
		emit("output", uint64(k.Out.Depth()))
	}
	m.Stages = func(emit func(string, uint64)) {
		emit("matcher", k.Stage.Applied())
		emit("recorder", k.Journal.Applied())
		emit("views", k.Views.Applied())
		emit("durable", k.Journal.Durable())
	}
	m.JournalCommits = k.Journal.CommitTimes
	m.JournalBytes = func() uint64 { return k.Journal.Metrics().CommitBytes }
	m.More = func(emit emitMore) {
		numberMetrics(k, emit)
		emit("svc_kill_switch", "Whether the kill switch is on and every order is refused (1) or not.",
			false, float64(stats.Word(k.Gate.Killed())))
		emit("svc_price_ticks_late_total", "Prices older than the market price, which stays.",
			true, float64(k.Gate.Late()))
	}
	m.Latencies = andStage(m.Latencies, "journal", k.Journal.CommitTimes)
	if k.Session != nil {
		m.More = together(m.More, func(emit emitMore) { sessionMetrics(k, emit) })
		m.Latencies = andStage(m.Latencies, "session", func() timing.Distribution {
			return distributionOf(k.Session.Metrics().Times)
		})
	}
	return m
}

// andStage adds the times of one more stage.
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

// emitMore is one metric of a part that httpapi does not know; see httpapi.Metrics.More.
type emitMore = func(name, help string, counter bool, value float64, labels ...string)

// together emits the metrics of several parts; it skips nil ones.
func together(parts ...func(emitMore)) func(emitMore) {
	return func(emit emitMore) {
		for _, part := range parts {
			if part != nil {
				part(emit)
			}
		}
	}
}

// memberMetrics adds what a member knows of its cluster, and the metrics of the leader's parts.
func (in *Installation) memberMetrics(orders *httpapi.OrderMatcher) httpapi.Metrics {
	m := coreMetrics(in.Core, orders)
	rings := m.Rings
	m.Rings = func(emit func(string, uint64)) {
		rings(emit)
		emit("proposals", uint64(in.Core.Proposals.Depth()))
	}
	m.Services = nil
	for _, relay := range in.Member.relays {
		m.Services = append(m.Services, relay.Counted)
	}
	m.ClusterCommits = in.Member.Node.Commits
	m.Latencies = andStage(m.Latencies, "agreement", in.Member.Node.Commits)
	m.More = together(m.More, in.processMetrics, in.scrubbing.metrics, in.past.metrics,
		in.backups.Metrics, in.healing.metrics,
		in.clusterMetrics)
	return m
}

// clusterMetrics are the member's role, its relays and the leader's parts.
func (in *Installation) clusterMetrics(emit emitMore) {
	leads := 0.0
	if in.Member.Node.Leads() {
		leads = 1
	}
	emitRole(emit, "leader", leads)
	emitRole(emit, "follower", 1-leads)
	for _, relay := range in.Member.relays {
		relay.Metrics(emit)
	}
	if d := in.Beside.Load(); d != nil {
		d.metrics(emit)
	}
}

// emitRole is one role of this member, 1 when it has it.
func emitRole(emit emitMore, role string, has float64) {
	emit("svc_cluster_role", "1 for the role that this member has.", false, has, "role", role)
}

// singleMetrics adds to coreMetrics the cluster metrics of a node without a cluster: its role, and
// zero for everything that members agree on. So a monitoring system finds every metric on every
// installation.
func singleMetrics(k *engine.Engine, edge *httpapi.OrderMatcher) httpapi.Metrics {
	m := coreMetrics(k, edge)
	m.ClusterCommits = func() (none timing.Distribution) { return none }
	m.More = together(m.More, func(emit emitMore) { emitRole(emit, "single", 1) })
	return m
}

// metrics shows the counters of the sidecars, by the contract's names.
func (d *downstream) metrics(emit func(name, help string, counter bool, value float64,
	labels ...string)) {
	counter := func(name, help string, n uint64, labels ...string) {
		emit(name, help, true, float64(n), labels...)
	}
	gauge := func(name, help string, n uint64, labels ...string) {
		emit(name, help, false, float64(n), labels...)
	}
	r, s, p := d.recon.Metrics(), d.settlement.Metrics(), d.projection.Metrics()
	counter("svc_recon_matched_total", "Blotter entries whose row agrees.", r.MatchedTotal)
	counter("svc_recon_missing_in_projection_total", "Blotter entries without a row, after the grace.",
		r.MissingInProjectionTotal)
	counter("svc_recon_field_mismatch_total", "Blotter entries whose row differs.",
		r.FieldMismatchTotal)
	counter("svc_recon_orphan_total", "Rows without a fill.", r.OrphanTotal)
	gauge("svc_recon_lag_records", "Durable fills that reconciliation has not classified.", r.Lag)
	gauge("svc_recon_open_breaks", "Breaks that are open.", r.OpenBreaks)
	counter("svc_settlement_swept_total", "Trades settled by the schedule.", s.Swept)
	counter("svc_settlement_forced_total", "Trades settled by hand.", s.Forced)
	gauge("svc_projection_lag_records", "Durable fills that are not in SQL yet.", p.LagRecords)
	booked := "Trades booked into SQL, by path and outcome."
	counter("svc_projection_trades_total", booked, p.Booked, "path", "journal", "outcome", "booked")
	counter("svc_projection_trades_total", booked, p.Duplicates, "path", "journal", "outcome",
		"duplicate")
	counter("svc_projection_trades_total", booked, p.LegacyBooked, "path", "legacy", "outcome",
		"booked")
	counter("svc_projection_trades_total", booked, p.LegacyDuplicates, "path", "legacy", "outcome",
		"duplicate")
	counter("svc_projection_trades_total", booked, p.LegacyMalformed, "path", "legacy", "outcome",
		"malformed")
	counter("svc_projection_trades_total", booked, p.LegacyForeign, "path", "legacy", "outcome",
		"FOREIGN_ID")
	gauge("svc_tca_lag_records", "Durable commands that the price history has not taken in.",
		d.tca.Lag())
	prices := "Prices from the message broker, by outcome."
	counter("svc_price_feed_total", prices, d.prices.Sequenced.Load(), "outcome", "sequenced")
	counter("svc_price_feed_total", prices, d.prices.Late.Load(), "outcome", "late")
	counter("svc_price_feed_total", prices, d.prices.Malformed.Load(), "outcome", "malformed")
	counter("svc_price_feed_total", prices, d.prices.Unknown.Load(), "outcome", "unknown")
	counter("svc_price_feed_total", prices, d.prices.Dropped.Load(), "outcome", "dropped")
	d.sources.metrics(emit)
}

// projected is the input sequence up to which every fill is in SQL.
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

// parts is the cluster on /readyz.
func (m *member) parts() []httpapi.Part {
	if m == nil {
		return nil
	}
	leader, _ := m.Node.Leader("order-matcher")
	switch {
	case m.Node.Leads():
		return []httpapi.Part{{Name: "cluster", Ready: true,
			Detail: fmt.Sprintf("member %s leads", leader)}}
	case leader != "":
		return []httpapi.Part{{Name: "cluster", Ready: true, Detail: fmt.Sprintf("follows member %s",
			leader)}}
	}
	return []httpapi.Part{{Name: "cluster", Detail: "no leader is known"}}
}
