package projection

import "posttrade/ring/metric"

// Collect states the counters.
//
// Names and label values are a contract with alert rules and dashboards.
func (p *Projection) Collect(emit metric.Emit) {
	m := p.Metrics()
	emit.Gauge("svc_projection_lag_records", "Durable fills that are not in SQL yet.",
		float64(m.LagRecords))
	booked := func(path, outcome string, n uint64) {
		emit.Counter("svc_projection_trades_total", "Trades booked into SQL, by path and outcome.", n,
			"path", path, "outcome", outcome)
	}
	booked("journal", "booked", m.Booked)
	booked("journal", "duplicate", m.Duplicates)
	booked("legacy", "booked", m.LegacyBooked)
	booked("legacy", "duplicate", m.LegacyDuplicates)
	booked("legacy", "malformed", m.LegacyMalformed)
	booked("legacy", "FOREIGN_ID", m.LegacyForeign)
}
