package prices

import (
	"sync/atomic"

	"posttrade/ring/metric"
)

// Collect states what became of the messages.
func (f *Feed) Collect(emit metric.Emit) {
	for _, of := range []struct {
		outcome string
		count   *atomic.Uint64
	}{{"sequenced", &f.Sequenced}, {"late", &f.Late}, {"malformed", &f.Malformed},
		{"unknown", &f.Unknown}, {"dropped", &f.Dropped}} {
		emit.Counter("svc_price_feed_total", "Prices from the message broker, by outcome.",
			of.count.Load(), "outcome", of.outcome)
	}
}
