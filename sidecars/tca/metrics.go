package tca

import "posttrade/ring/metric"

// Collect states how far the price history is behind.
//
// It reads two atomics. Any goroutine.
func (t *TCA) Collect(emit metric.Emit) {
	emit.Gauge("svc_tca_lag_records", "Durable commands that the price history has not taken in.",
		float64(t.Lag()))
}
