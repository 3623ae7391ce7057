package httpapi

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"posttrade/matcher"
	"posttrade/ring/metric"
	"posttrade/ring/timing"
)

// Counts are where a service emits what it counts.
//
// The functions are valid during one scrape. count only grows.
type Counts struct {
	// Fault is for requests that reached no handler (refused), or that ended with a panic of the
	// handler.
	Fault func(service, fault string, count uint64)
	// Request is for answers, by the pattern of their endpoint and by code.
	Request func(service, route, code string, count uint64)
}

// Metrics are cold functions that a scrape calls; nil ones are left out. They read padded counters
// of the hot threads and must be safe from any goroutine.
//
// The installation fills it from all parts. A scrape calls each function once, on its own
// goroutine; none of them may take a lock of the path of an order.
type Metrics struct {
	// Rings gives depth and size of each ring in entries, Stages the last input sequence of each
	// stage, and Latencies the times that each stage has counted since the start.
	Rings     func(emit func(ring string, depth, slots int))
	Stages    func(emit func(stage string, sequence uint64))
	Latencies func(emit func(stage string, d timing.Distribution))

	// Orders gives the edge's decisions, Rejections its refusals by reason, and Services the faults
	// and answers of each service.
	Orders     func(emit func(decision string, count uint64))
	Rejections func(emit func(reason matcher.RiskReason, count uint64))
	Services   []func(to Counts)

	JournalCommits func() timing.Distribution
	JournalBytes   func() uint64

	// ClusterCommits is the time that a majority took to agree on commands; empty on a single node.
	ClusterCommits func() timing.Distribution

	// More are the metrics of parts that this package does not know. labels are
	// pairs of name and value; names of the same metric always have the same help,
	// kind and label names. Values are classifications, never an id.
	More func(emit metric.Emit)
}

// collector turns Metrics into the contract's metrics.
type collector struct{ m Metrics }

// desc describes a metric; the names of its labels are the same in every sample.
func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	descRing       = desc("svc_ring_depth", "Entries published and not yet released.", "ring")
	descSlots      = desc("svc_ring_slots", "Entries that a ring has room for.", "ring")
	descStage      = desc("svc_stage_sequence", "Last input sequence of a stage.", "stage")
	descLatency    = desc("svc_stage_latency_seconds", "Time spent in a stage.", "stage")
	descOrders     = desc("svc_orders_total", "Orders decided.", "decision")
	descRejections = desc("svc_gate_rejections_total", "Orders refused, by reason.", "reason")
	descCommit     = desc("svc_journal_commit_seconds",
		"Time from a block's append to its durability.")
	descAgreed = desc("svc_cluster_commit_seconds",
		"Time from a proposal to its agreement by a majority and application.")
	descBytes  = desc("svc_journal_bytes_total", "Bytes appended to the journal.")
	descFaults = desc("svc_http_faults_total",
		"Requests without a handler, or whose handler panicked.", "service", "fault")
	descRequests = desc("svc_http_requests_total",
		"Requests answered, by the pattern of the endpoint and the status code.",
		"service", "route", "code")
)

// Describe names every metric.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descRing, descSlots, descStage, descLatency, descOrders, descRejections, descCommit, descAgreed,
		descBytes, descFaults, descRequests,
	} {
		out <- d
	}
}

// Collect reads the sources. It is called for each scrape, and keeps nothing.
func (c collector) Collect(out chan<- prometheus.Metric) {
	value := func(d *prometheus.Desc, kind prometheus.ValueType, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
	}
	m := &c.m
	if m.Rings != nil {
		m.Rings(func(ring string, depth, slots int) {
			value(descRing, prometheus.GaugeValue, uint64(depth), ring)
			value(descSlots, prometheus.GaugeValue, uint64(slots), ring)
		})
	}
	if m.Stages != nil {
		m.Stages(func(stage string, n uint64) { value(descStage, prometheus.GaugeValue, n, stage) })
	}
	if m.Latencies != nil {
		m.Latencies(func(stage string, d timing.Distribution) {
			out <- histogramOf(descLatency, d, stage)
		})
	}
	if m.Orders != nil {
		m.Orders(func(decision string, n uint64) {
			value(descOrders, prometheus.CounterValue, n, decision)
		})
	}
	if m.Rejections != nil {
		m.Rejections(func(r matcher.RiskReason, n uint64) {
			value(descRejections, prometheus.CounterValue, n, r.String())
		})
	}
	for _, counted := range m.Services {
		counted(Counts{
			Fault: func(service, fault string, n uint64) {
				value(descFaults, prometheus.CounterValue, n, service, fault)
			},
			Request: func(service, route, code string, n uint64) {
				value(descRequests, prometheus.CounterValue, n, service, route, code)
			}})
	}
	if m.ClusterCommits != nil {
		out <- histogramOf(descAgreed, m.ClusterCommits())
	}
	if m.JournalCommits != nil {
		out <- histogramOf(descCommit, m.JournalCommits())
	}
	if m.JournalBytes != nil {
		value(descBytes, prometheus.CounterValue, m.JournalBytes())
	}
}

// histogram is a distribution in both forms: a scraper takes the one that it knows.
//
// Both come from the same counts, so they agree.
type histogram struct {
	prometheus.Metric // the native form
	classic           [len(timing.Bounds)]uint64
}

// histogramOf is a distribution as a metric. Its buckets are whole numbers that were counted here,
// so an error is a bug; it shows in the scrape.
func histogramOf(of *prometheus.Desc, d timing.Distribution, labels ...string) prometheus.Metric {
	native, err := prometheus.NewConstNativeHistogram(of, d.Count, d.Sum, d.Native, nil, 0,
		timing.Schema, prometheus.DefNativeHistogramZeroThreshold, time.Time{}, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(of, err)
	}
	return histogram{native, d.Classic}
}

// Write implements prometheus.Metric.
func (h histogram) Write(to *dto.Metric) error {
	if err := h.Metric.Write(to); err != nil {
		return err
	}
	for i, bound := range timing.Bounds {
		to.Histogram.Bucket = append(to.Histogram.Bucket,
			&dto.Bucket{UpperBound: &bound, CumulativeCount: &h.classic[i]})
	}
	return nil
}

// moreCollector is Metrics.More. It describes nothing in advance, because it does not know the
// metrics; the registry then checks each scrape.
type moreCollector struct{ m Metrics }

// Describe sends nothing.
func (moreCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the sources. A metric that is not well-formed fails the scrape.
func (c moreCollector) Collect(out chan<- prometheus.Metric) {
	if c.m.More == nil {
		return
	}
	c.m.More(func(name, help string, counter bool, value float64, labels ...string) {
		kind := prometheus.GaugeValue
		if counter {
			kind = prometheus.CounterValue
		}
		var names, values []string
		for i, text := range labels {
			if i%2 == 0 {
				names = append(names, text)
			} else {
				values = append(values, text)
			}
		}
		d := desc(name, help, names...)
		m, err := prometheus.NewConstMetric(d, kind, value, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(d, err)
		}
		out <- m
	})
}

// Registry is the process's metrics. It is the handler of /metrics on the admin
// listener and of /actuator/prometheus on the trade-processor: both show the same.
type Registry struct{ http.Handler }

// NewRegistry returns the registry of m and of the Go runtime's metrics. It reports scrapes that
// fail to log, if that is not nil.
//
// A scrape that fails is an error 500 of the handler.
func NewRegistry(m Metrics, log *slog.Logger) *Registry {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := prometheus.NewRegistry()
	r.MustRegister(collector{m}, moreCollector{m}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Registry{promhttp.HandlerFor(r, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelError),
	})}
}
