package settlement

import "posttrade/ring/metric"

// Collect states the counters.
//
// Both count this process alone and begin at 0. Any goroutine.
func (s *Settlement) Collect(emit metric.Emit) {
	m := s.Metrics()
	emit.Counter("svc_settlement_swept_total", "Trades settled by the schedule.", m.Swept)
	emit.Counter("svc_settlement_forced_total", "Trades settled by hand.", m.Forced)
}
