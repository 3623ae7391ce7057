package evidence

import (
	"time"

	"posttrade/ring/metric"
)

// Collect states how far the log has come. Any goroutine; it takes the lock of the state once.
//
// Size and head are of the tree and of the open leaf; signed and cosigned are of published heads.
// The lag is 0 while every stable command is covered by one, so a witness that is away shows as a
// lag that grows. The counter of divergences should stay 0 for ever: an alert rule needs no
// threshold.
func (l *Log) Collect(emit metric.Emit) {
	s := l.State()
	lag := 0.0
	if !s.Behind.IsZero() {
		lag = time.Since(s.Behind).Seconds()
	}
	emit.Gauge("svc_evidence_tree_size", "Leaves of the transparency log.", float64(s.Size))
	emit.Gauge("svc_evidence_head_sequence", "The last command in the transparency log.",
		float64(s.Head))
	emit.Gauge("svc_evidence_signed_sequence", "The last command that a published head covers.",
		float64(s.Signed))
	emit.Gauge("svc_evidence_cosigned_sequence",
		"The last command that a head covers which the witnesses have cosigned.", float64(s.Cosigned))
	emit.Gauge("svc_evidence_lag_seconds",
		"How long the oldest command waits that no published head covers.", lag)
	emit.Counter("svc_evidence_divergence_total",
		"Members found to have another history, and files found to contradict the journal.",
		s.Divergences)
}
