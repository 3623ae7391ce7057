package feed

import (
	"sync/atomic"

	"posttrade/ring/metric"
)

// counts only rise. They are raised and read without the hub's lock.
type counts struct {
	events  atomic.Uint64 // derived, by the follower
	bytes   atomic.Uint64 // given to readers, by each reader
	slow    atomic.Uint64 // readers that were ended with ErrSlow
	refused atomic.Uint64 // calls that ended with ErrBusy
}

// Collect states how many readers there are and what they were given. Any goroutine; it takes the
// hub's lock for an instant.
func (h *Hub) Collect(emit metric.Emit) {
	all, history := h.Readers()
	const clients = "Clients of the live feed, by what they read."
	emit.Gauge("svc_feed_clients", clients, float64(all-history), "reads", "live")
	emit.Gauge("svc_feed_clients", clients, float64(history), "reads", "history")
	emit.Counter("svc_feed_events_total", "Events that the live feed has derived.",
		h.counts.events.Load())
	emit.Counter("svc_feed_bytes_total", "Bytes that the live feed has handed to its clients.",
		h.counts.bytes.Load())
	emit.Counter("svc_feed_slow_total",
		"Clients of the live feed that were ended because too much waited for them.",
		h.counts.slow.Load())
	emit.Counter("svc_feed_refused_total",
		"Clients of the live feed that were refused, or ended, because there was no room for them.",
		h.counts.refused.Load())
}
