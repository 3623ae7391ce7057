package httpapi

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"posttrade/matcher"
)

// Distribution is a native histogram as a scrape reads it; durations in seconds.
type Distribution struct {
	Count    uint64
	Sum      float64
	Schema   int32
	Zero     uint64
	Positive map[int]int64 // population by bucket index
}

// Distribution returns what was recorded so far.
func (l *Latency) Distribution() Distribution {
	d := Distribution{Schema: latencySchema, Positive: map[int]int64{}}
	for i := range l.buckets {
		if n := l.buckets[i].Load(); n > 0 {
			d.Positive[latencyLowest+i] = int64(n)
			d.Count += n // of the buckets: the sum over them must agree
		}
	}
	d.Sum = float64(l.sumNs.Load()) / 1e9
	return d
}

// Metrics are cold functions that a scrape calls; nil ones are left out. They
// read padded counters of the hot threads and must be safe from any goroutine.
type Metrics struct {
	Rings     func(emit func(ring string, depth uint64))
	Stages    func(emit func(stage string, sequence uint64))
	Latencies func(emit func(stage string, d Distribution))

	Orders     func(emit func(decision string, count uint64))
	Rejections func(emit func(reason matcher.RiskReason, count uint64))
	Server     func(emit func(name string, count uint64)) // panicked, refused

	JournalCommits func() Histogram
	JournalBytes   func() uint64
}

// collector turns Metrics into the contract's metrics.
type collector struct{ m Metrics }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descRing       = desc("svc_ring_depth", "Entries published and not yet released.", "ring")
	descStage      = desc("svc_stage_sequence", "Last input sequence of a stage.", "stage")
	descLatency    = desc("svc_stage_latency_seconds", "Time spent in a stage.", "stage")
	descOrders     = desc("svc_orders_total", "Orders decided.", "decision")
	descRejections = desc("svc_gate_rejections_total", "Orders refused, by reason.", "reason")
	descCommit     = desc("svc_journal_commit_seconds", "Time from a block's append to its durability.")
	descBytes      = desc("svc_journal_bytes_total", "Bytes appended to the journal.")
	descServer     = desc("svc_http_faults_total", "Requests that reached no handler, or whose handler panicked.", "fault")
)

// Describe names every metric.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRing, descStage, descLatency, descOrders, descRejections, descCommit, descBytes, descServer,
	} {
		out <- d
	}
}

// Collect reads the sources.
func (c collector) Collect(out chan<- prometheus.Metric) {
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
	}
	m := &c.m
	if m.Rings != nil {
		m.Rings(func(ring string, n uint64) { value(descRing, prometheus.GaugeValue, n, ring) })
	}
	if m.Stages != nil {
		m.Stages(func(stage string, n uint64) { value(descStage, prometheus.GaugeValue, n, stage) })
	}
	if m.Latencies != nil {
		m.Latencies(func(stage string, d Distribution) { out <- d.metric(descLatency, stage) })
	}
	if m.Orders != nil {
		m.Orders(func(decision string, n uint64) { value(descOrders, prometheus.CounterValue, n, decision) })
	}
	if m.Rejections != nil {
		m.Rejections(func(r matcher.RiskReason, n uint64) {
			value(descRejections, prometheus.CounterValue, n, r.String())
		})
	}
	if m.Server != nil {
		m.Server(func(name string, n uint64) { value(descServer, prometheus.CounterValue, n, name) })
	}
	if m.JournalCommits != nil {
		out <- m.JournalCommits().metric(descCommit)
	}
	if m.JournalBytes != nil {
		value(descBytes, prometheus.CounterValue, m.JournalBytes())
	}
}

// metric is the distribution as a native histogram. Its buckets are whole
// numbers that were counted here, so an error is a bug; it shows in the scrape.
func (d Distribution) metric(of *prometheus.Desc, labels ...string) prometheus.Metric {
	m, err := prometheus.NewConstNativeHistogram(of, d.Count, d.Sum, d.Positive, nil,
		d.Zero, d.Schema, prometheus.DefNativeHistogramZeroThreshold, time.Time{}, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(of, err)
	}
	return m
}

// Histogram is a distribution over buckets whose bounds the source has chosen.
type Histogram struct {
	Count   uint64
	Sum     float64            // seconds
	Buckets map[float64]uint64 // upper bound in seconds: how many at or below it
}

func (h Histogram) metric(of *prometheus.Desc) prometheus.Metric {
	return prometheus.MustNewConstHistogram(of, h.Count, h.Sum, h.Buckets)
}

// newRegistry returns a registry with the engine's metrics and the Go runtime's.
func newRegistry(m Metrics) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(collector{m}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}
