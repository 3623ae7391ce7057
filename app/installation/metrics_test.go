package installation

import (
	"bufio"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/app/apptest"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store/storetest"
)

// scrape reads a page of metrics: its samples, and the type of each metric.
func scrape(text string) (samples []string, kinds map[string]string) {
	kinds = map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		if kind, ok := strings.CutPrefix(lines.Text(), "# TYPE "); ok {
			name, kind, _ := strings.Cut(kind, " ")
			kinds[name] = kind
		} else if !strings.HasPrefix(lines.Text(), "#") {
			samples = append(samples, lines.Text())
		}
	}
	return samples, kinds
}

// awaitMetrics waits until the admin listener shows these samples.
func (i *installed) awaitMetrics(want ...string) {
	i.t.Helper()
	apptest.Until(i.t, strings.Join(want, ", "), func() (bool, any) {
		_, text := i.get("admin", "/metrics")
		samples, _ := scrape(string(text))
		var near []string
		for _, w := range want {
			if slices.Contains(samples, w) {
				continue
			}
			for _, s := range samples {
				if strings.HasPrefix(s, w[:strings.LastIndexByte(w, ' ')+1]) {
					near = append(near, s)
				}
			}
			return false, near
		}
		return true, nil
	})
}

// TestMetricsHaveTheContractsNamesAndTypes reads both pages: the metrics of the specification,
// those of the contract, and how far each part is behind.
func TestMetricsHaveTheContractsNamesAndTypes(t *testing.T) {
	want := map[string]string{
		"svc_recon_matched_total": "counter", "svc_recon_missing_in_projection_total": "counter",
		"svc_recon_field_mismatch_total": "counter", "svc_recon_orphan_total": "counter",
		"svc_settlement_swept_total": "counter", "svc_outbox_publish_lag_seconds": "gauge",
		"svc_outbox_unpublished_rows": "gauge", "svc_replica_ready": "gauge",
		"svc_ring_depth": "gauge", "svc_ring_slots": "gauge", "svc_stage_sequence": "gauge",
		"svc_stage_latency_seconds": "histogram",
		"svc_orders_total":          "counter", "svc_gate_rejections_total": "counter",
		"svc_journal_commit_seconds": "histogram", "svc_journal_bytes_total": "counter",
		"go_goroutines":              "gauge",
		"svc_projection_lag_records": "gauge", "svc_recon_lag_records": "gauge",
		"svc_tca_lag_records":         "gauge",
		"svc_projection_trades_total": "counter", "svc_price_feed_total": "counter",
		"svc_settlement_forced_total": "counter",
		"svc_price_ticks_late_total":  "counter",
		"svc_gate_missed_total":       "counter",
		"svc_recon_open_breaks":       "gauge",
		"svc_cluster_role":            "gauge", "svc_cluster_commit_seconds": "histogram",
		"svc_feed_clients": "gauge", "svc_feed_events_total": "counter",
		"svc_feed_bytes_total": "counter", "svc_feed_slow_total": "counter",
		"svc_feed_refused_total":  "counter",
		"svc_http_requests_total": "counter", "svc_disk_free_bytes": "gauge",
		"svc_build_info": "gauge", "svc_snapshot_age_seconds": "gauge", "svc_kill_switch": "gauge",
	}
	labels := map[string][]string{ // classification labels only
		"svc_recon_matched_total": nil, "svc_recon_missing_in_projection_total": nil,
		"svc_recon_orphan_total":         nil,
		"svc_recon_field_mismatch_total": nil, "svc_settlement_swept_total": nil,
		"svc_outbox_publish_lag_seconds": {"source"}, "svc_outbox_unpublished_rows": {"source"},
		"svc_replica_ready": {"source"}, "svc_projection_trades_total": {"outcome", "path"},
		"svc_price_ticks_late_total": nil,
		"svc_price_feed_total":       {"outcome"}, "svc_gate_rejections_total": {"reason"},
		"svc_orders_total":        {"decision"},
		"svc_cluster_role":        {"role"},
		"svc_feed_clients":        {"reads"},
		"svc_http_requests_total": {"service", "route", "code"},
		"svc_build_info":          {"version", "commit", "goversion"}, "svc_disk_free_bytes": nil,
	}
	in := install(t, t.TempDir())
	day := newTradingDay(t, in.Core, *daySeed)
	day.trade(t.Context(), 300)
	in.awaitMatched()
	n := in.tradeSeq()
	in.awaitMetrics(sample("svc_recon_matched_total", n), sample("svc_settlement_swept_total", n),
		sample(`svc_projection_trades_total{outcome="booked",path="journal"}`, n),
		sample("svc_projection_lag_records", 0),
		sample("svc_recon_lag_records", 0), sample("svc_tca_lag_records", 0),
		sample("svc_recon_open_breaks", 0),
		sample(`svc_cluster_role{role="single"}`, 1), sample("svc_cluster_commit_seconds_count", 0))
	for _, page := range [][2]string{{"admin", "/metrics"},
		{"trade-processor", "/actuator/prometheus"}} {
		status, text := in.get(page[0], page[1])
		samples, kinds := scrape(string(text))
		if status != http.StatusOK {
			t.Errorf("%v: %d %s", page, status, text)
		}
		for name, kind := range want {
			if kinds[name] != kind {
				t.Errorf("%v: %s is a %q, want a %s", page, name, kinds[name], kind)
			}
		}
		for _, s := range samples {
			name, rest, _ := strings.Cut(strings.TrimSuffix(s[:strings.LastIndexByte(s, ' ')], "}"), "{")
			if allowed, ok := labels[name]; ok {
				for _, label := range strings.Split(rest, ",") {
					if label, _, _ = strings.Cut(label, "="); label != "" && !slices.Contains(allowed, label) {
						t.Errorf("%v: label %s of %s", page, label, s)
					}
				}
			}
		}
	}
}

// sample is a line of a metrics page.
func sample(name string, n uint64) string { return name + " " + strconv.FormatUint(n, 10) }

// TestReadyWithoutDatabaseAndBroker starts when neither can be reached: orders are admitted, and
// the parts say what is missing.
func TestReadyWithoutDatabaseAndBroker(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	o, network := storetest.CutOptions(t)
	network.Cut()
	nats := brokertest.ExternalWith(t, brokertest.Config{Stopped: true})
	in := install(t, t.TempDir(), "database.url", o.URL, "nats.url", nats.URL())
	if status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/orders",
		sellOrder); status != http.StatusCreated {
		t.Errorf("order: %d %s", status, body)
	}
	for _, part := range []string{"database", "broker"} {
		apptest.Until(t, part+" is shown as missing", func() (bool, any) {
			ready, detail := in.part(part)
			return !ready && detail != "", detail
		})
	}
	if _, body := in.get("trade-processor", "/health"); !strings.Contains(string(body), `"degraded"`) {
		t.Errorf("health of the trade-processor: %s", body)
	}
	if status, body := in.get("trade-processor",
		"/recon/status"); status != http.StatusServiceUnavailable {
		t.Errorf("recon status without a database: %d %s", status, body)
	}
	network.Heal()
	nats.Restart()
	for _, part := range []string{"database", "broker"} {
		apptest.Until(t, part+" is shown as there", func() (bool, any) { return in.part(part) })
	}
	if status, body := call(t, "POST", "http://"+in.at("order-matcher")+"/orders",
		buyOrder); status != http.StatusCreated {
		t.Errorf("order: %d %s", status, body)
	}
	wantWhole(t, in)
}

// part reads one part of /readyz, which must report that orders are admitted.
func (i *installed) part(name string) (ready bool, detail string) {
	i.t.Helper()
	status, body := i.get("admin", "/readyz")
	var answer struct {
		Ready bool
		Parts []struct {
			Name, Detail string
			Ready        bool
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || status != http.StatusOK || !answer.Ready {
		i.t.Fatalf("readyz: %d %s, %v", status, body, err)
	}
	for _, p := range answer.Parts {
		if p.Name == name {
			return p.Ready, p.Detail
		}
	}
	return false, ""
}
