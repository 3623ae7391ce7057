package settlement

import "posttrade/ring/metric"

// Collect states the counters.
func (s *Settlement) Collect(emit metric.Emit) {
	m := s.Metrics()
	emit.Counter("svc_settlement_swept_total", "Trades settled by the schedule.", m.Swept)
	emit.Counter("svc_settlement_forced_total", "Trades settled by hand.", m.Forced)
}
