package console

import (
	"bufio"
	"bytes"
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// History is the last ten minutes of the figures of the page Overview, so that a page that is
// opened now shows what went before. One goroutine samples; any goroutine reads.

const (
	// Ten minutes of samples have at most maxSamples times maxFigures numbers.
	sampleEvery = 5 * time.Second
	maxSamples  = int(10 * time.Minute / sampleEvery)
	maxFigures  = 200 // of a sample; the rest of the metrics are not of the page
)

// figures are the metrics of the page, without the buckets of histograms.
//
// A metric that matches is still left out when the sample has maxFigures already.
var figures = regexp.MustCompile(`^svc_(orders_total|` +
	`(journal_commit|stage_latency)_seconds_(sum|count)|ring_depth|stage_sequence|` +
	`[a-z_]*_lag[a-z_]*|replica_ready|outbox_unpublished|recon_open|settlement|cluster_role|` +
	`kill_switch|evidence|disk_free|feed)`)

// sample is the value of each figure at a time.
type sample struct {
	At      int64              `json:"at"` // epoch milliseconds
	Metrics map[string]float64 `json:"metrics"`
}

// history is the samples, oldest first.
//
// A sample is never changed, so a copy of the slice may be read without the lock.
type history struct {
	mu      sync.Mutex
	samples []sample
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
// A figure's name is everything before its value, labels too.
func parseFigures(text []byte) map[string]float64 {
	found := map[string]float64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() && len(found) < maxFigures {
		line := lines.Bytes()
		cut := bytes.LastIndexByte(line, ' ')
		if cut < 0 || !figures.Match(line) || bytes.Contains(line[:cut], []byte("_bucket")) {
			continue
		}
		v, err := strconv.ParseFloat(string(line[cut+1:]), 64)
		if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has no such numbers
			found[string(line[:cut])] = v
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
