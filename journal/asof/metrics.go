package asof

import "posttrade/ring/metric"

// Collect states what is kept for the past. It takes the lock of the warm shadows and asks the
// system for the resident memory of each, so it is for a scrape, not for a loop.
func (h *History) Collect(emit metric.Emit) {
	count, bytes := h.Checkpoints()
	emit.Gauge("svc_asof_bytes", "Memory of the engines that are kept for the past.",
		float64(h.Bytes()))
	emit.Gauge("svc_asof_engines", "Engines that are kept for the past.", float64(h.Warm()))
	emit.Gauge("svc_asof_checkpoints", "Checkpoints from which the past is replayed.",
		float64(count))
	emit.Gauge("svc_asof_checkpoint_bytes", "Size of the checkpoints' files.", float64(bytes))
}
