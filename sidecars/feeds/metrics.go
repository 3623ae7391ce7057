package feeds

import (
	"posttrade/ring/metric"
	"posttrade/sidecars/bootstrap"
)

// Collect states the counters of the source's outbox, sink and replica.
//
// Any goroutine may call it, also before Sink and Bootstrap are set. A source without a Bootstrap
// is stated as ready.
func (f *Feed) Collect(emit metric.Emit) {
	source := string(f.Source)
	f.Outbox.Collect(emit, source)
	unknown := 0
	if sink := f.Sink.Load(); sink != nil {
		unknown = sink.Unknown.Count()
	}
	emit.Gauge("svc_replica_unknown_records",
		"Records that the engine has no room for: unknown to the gate.", float64(unknown),
		"source", source)
	if b := f.Bootstrap.Load(); b != nil {
		b.Collect(emit, source)
	} else {
		bootstrap.CollectReady(emit, source, true)
	}
}
