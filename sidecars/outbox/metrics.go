package outbox

import "posttrade/ring/metric"

// Collect states the counters of a source.
func (b *Outbox) Collect(emit metric.Emit, source string) {
	emit.Gauge("svc_outbox_publish_lag_seconds", "Age of the oldest change that is not published.",
		b.LagSeconds(), "source", source)
	emit.Gauge("svc_outbox_unpublished_rows", "Changes that are not published.",
		float64(b.Unpublished()), "source", source)
	emit.Counter("svc_outbox_published_total", "Changes published since the start.", b.Published(),
		"source", source)
	emit.Counter("svc_outbox_alarms_total", "Findings on the stream that an operator should know of.",
		b.Alarms(), "source", source)
	emit.Counter("svc_outbox_foreign_messages_total",
		"Messages of other hands on the stream, passed over.", b.Foreign(), "source", source)
}
