package console

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// Ten minutes of samples have at most maxSamples times maxFigures numbers.
	sampleEvery = 5 * time.Second
	maxSamples  = int(10 * time.Minute / sampleEvery)
	maxFigures  = 200 // of a sample: a bound of memory that the series of figures do not reach
)

// figures are what the pages show over time: a metric with all its series, or one series, of a
// histogram with all its buckets.
//
// The list in assets/history.js is the same. A test compares both with what the pages read.
var figures = []string{
	"svc_orders_total",
	"svc_journal_commit_seconds_sum", "svc_journal_commit_seconds_count",
	"svc_journal_commit_seconds_bucket",
	`svc_stage_latency_seconds_sum{stage="http"}`, `svc_stage_latency_seconds_count{stage="http"}`,
	`svc_stage_latency_seconds_bucket{stage="http"}`,
	"svc_ring_depth", "svc_ring_slots",
	"svc_projection_lag_records", "svc_recon_lag_records", "svc_recon_open_breaks",
	"svc_replica_lag_records", "svc_outbox_unpublished_rows",
	"svc_tca_lag_records", "svc_evidence_lag_seconds",
}

// sample is the value of each figure at a time.
type sample struct {
	At      int64              `json:"at"` // epoch milliseconds
	Metrics map[string]float64 `json:"metrics"`
}

// history is the last ten minutes of the figures, so that a page that is opened now shows what went
// before. One goroutine samples; any goroutine reads.
//
// A sample is never changed, so a copy of the slice may be read without the lock.
type history struct {
	mu      sync.Mutex
	samples []sample // oldest first
}

// follow samples metrics until ctx ends.
//
// It takes the first sample at once. One goroutine calls it, once.
func (h *history) follow(ctx context.Context, metrics http.Handler) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		h.take(ctx, metrics)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// take adds a sample, and drops what is older than ten minutes.
//
// The scrape runs before the lock is taken: readers never wait for it.
func (h *history) take(ctx context.Context, metrics http.Handler) {
	w := memoryWriter{header: http.Header{}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return // the request is constant: there is no such error
	}
	metrics.ServeHTTP(&w, r)
	s := sample{time.Now().UnixMilli(), parseFigures(w.text.Bytes())}
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.samples) - maxSamples + 1; n > 0 {
		h.samples = append(h.samples[:0], h.samples[n:]...)
	}
	h.samples = append(h.samples, s)
}

// all is a copy of the samples; a sample itself never changes.
func (h *history) all() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]sample{}, h.samples...)
}

// parseFigures reads the figures of a text in Prometheus' format.
//
// A figure's name in a sample is everything before its value, labels too.
func parseFigures(text []byte) map[string]float64 {
	found := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() && len(found) < maxFigures {
		line := lines.Bytes()
		cut := bytes.LastIndexByte(line, ' ')
		if cut < 0 {
			continue
		}
		series := string(line[:cut])
		metric, _, _ := strings.Cut(series, "{")
		one := series
		if labels, _, bucket := strings.Cut(series, `,le="`); bucket {
			one = labels + "}"
		}
		if !slices.Contains(figures, metric) && !slices.Contains(figures, one) {
			continue
		}
		v, err := strconv.ParseFloat(string(line[cut+1:]), 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has no such numbers
			found[series] = v
		}
	}
	return found
}

// memoryWriter keeps an answer. The status is not looked at: the text of an error has no figures.
type memoryWriter struct {
	header http.Header
	text   bytes.Buffer
}

func (w *memoryWriter) Header() http.Header         { return w.header }
func (w *memoryWriter) WriteHeader(int)             {}
func (w *memoryWriter) Write(p []byte) (int, error) { return w.text.Write(p) }
