package asof

import "posttrade/ring/metric"

// Collect states what is kept for the past.
func (h *History) Collect(emit metric.Emit) {
	count, bytes := h.Checkpoints()
	emit.Gauge("svc_asof_bytes", "Memory of the engines that are kept for the past.",
		float64(h.Bytes()))
	emit.Gauge("svc_asof_engines", "Engines that are kept for the past.", float64(h.Warm()))
	emit.Gauge("svc_asof_checkpoints", "Checkpoints from which the past is replayed.",
		float64(count))
	emit.Gauge("svc_asof_checkpoint_bytes", "Size of the checkpoints' files.", float64(bytes))
}
