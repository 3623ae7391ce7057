package recon

import "posttrade/ring/metric"

// Collect states the counters.
//
// It reads atomics and the journal's head, and asks no database. Any goroutine.
func (r *Recon) Collect(emit metric.Emit) {
	m := r.Metrics()
	emit.Counter("svc_recon_matched_total", "Blotter entries whose row agrees.", m.MatchedTotal)
	emit.Counter("svc_recon_missing_in_projection_total",
		"Blotter entries without a row, after the grace.", m.MissingInProjectionTotal)
	emit.Counter("svc_recon_field_mismatch_total", "Blotter entries whose row differs.",
		m.FieldMismatchTotal)
	emit.Counter("svc_recon_orphan_total", "Rows without a fill.", m.OrphanTotal)
	emit.Gauge("svc_recon_lag_records", "Durable fills that reconciliation has not classified.",
		float64(m.Lag))
	emit.Gauge("svc_recon_open_breaks", "Breaks that are open.", float64(m.OpenBreaks))
}
