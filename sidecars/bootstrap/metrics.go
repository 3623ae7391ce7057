package bootstrap

import "posttrade/ring/metric"

// Collect states how far the replica of a source is.
//
// The names and labels are a contract with dashboards and alert rules. Any goroutine.
func (b *Bootstrap) Collect(emit metric.Emit, source string) {
	s := b.Status()
	CollectReady(emit, source, s.State == Ready)
	emit.Gauge("svc_replica_source_watermark", "Last version of the source that is applied.",
		float64(s.Watermark), "source", source)
	emit.Gauge("svc_replica_bootstrap_seconds",
		"Time that the last bootstrap took, from the subscription to ready.", s.Took.Seconds(),
		"source", source)
	emit.Gauge("svc_replica_lag_records", "Versions that were seen and are not applied.",
		float64(s.HighWatermark-min(s.Watermark, s.HighWatermark)), "source", source)
	deltas := func(outcome string, n uint64) {
		emit.Counter("svc_replica_deltas_total", "Deltas, by what became of them.", n,
			"source", source, "outcome", outcome)
	}
	deltas("applied", s.Applied)
	deltas("late", s.Late)
	deltas("repeated", s.Repeated)
	for _, reason := range Reasons() {
		emit.Counter("svc_replica_quarantine_total", "Quarantines, by reason.", s.Quarantines[reason],
			"source", source, "reason", string(reason))
	}
}

// CollectReady states whether a source is ready, also one that needs no replica.
//
// A source that is only seeded has no Bootstrap and counts as ready.
func CollectReady(emit metric.Emit, source string, ready bool) {
	emit.Flag("svc_replica_ready", "1 when the source is ready.", ready, "source", source)
}
