package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/metric"
	"posttrade/ring/must"
	"posttrade/sidecars/store"
)

// TestRowsComeFromTheDatabase drives the lists over a real database.
func TestRowsComeFromTheDatabase(t *testing.T) {
	db := must.Get(store.Open(store.Options{Dir: t.TempDir()}))(t)
	closed := false
	defer func() {
		if !closed {
			db.Close()
		}
	}()
	rows := testTrades()
	insertTrades(t, db, rows)
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades = StoreTrades{db} })
	// Every page of every size adds up to the whole list, for every caller.
	for _, token := range []string{"admin", "one", "two"} {
		for limit := 1; limit <= len(rows)+1; limit++ {
			var ids []string
			cursor := ""
			for {
				a := r.get(fmt.Sprintf("/trades?limit=%d%s", limit, cursor), token).want(t, 200, "")
				items := a.field(t, "items").([]any)
				for _, item := range items {
					ids = append(ids, item.(map[string]any)["id"].(string))
				}
				next, more := a.field(t, "nextCursor").(string)
				if !more {
					break
				}
				if len(items) != limit {
					t.Errorf("%s: a page of %d items, limit %d", token, len(items), limit)
				}
				cursor = "&cursor=" + next
			}
			var want []string
			for i := range rows {
				if token == "admin" || token == "one" && rows[i].AccountID == 1 ||
					token == "two" && rows[i].AccountID == 2 {
					want = append(want, rows[i].ID)
				}
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%s, limit %d: %v, want %v", token, limit, ids, want)
			}
		}
	}
	fake := newProcessorRig(t)
	for _, path := range []string{"/trades/trd-1", "/trades/trd-2", "/trades/trd-6",
		"/trades?status=Processing&settlementDate=2026-03-03&security=AAA"} {
		if got, want := r.get(path, "admin"), fake.get(path,
			"admin"); string(got.body) != string(want.body) {
			t.Errorf("%s: %s\nwant %s", path, got.body, want.body)
		}
	}
	closed = true
	must.OK(t, db.Close())
	if a := r.get("/trades", "admin"); a.status < 500 {
		t.Errorf("closed: %d %s", a.status, a.body)
	}
}

// TestSweepOutlivesTheWriteTimeout: the time-out begins with the answer.
func TestSweepOutlivesTheWriteTimeout(t *testing.T) {
	const timeout = 500 * time.Millisecond
	r := newTunedRig(t, func(p *TradeProcessor) { p.server.http.WriteTimeout = timeout })
	r.fakes.block, r.fakes.entered = make(chan struct{}), make(chan struct{}, 1)
	go func() {
		<-r.fakes.entered
		<-time.After(timeout * 3 / 2)
		close(r.fakes.block)
	}()
	r.post("/recon/orphan-sweep", "", "admin").want(t, 200, "")
	if n := r.fakes.timeless.Load(); n != 0 {
		t.Errorf("%d calls may take for ever", n)
	}
}

// TestShutdownEndsTheSweep that is under way, and answers it.
func TestShutdownEndsTheSweep(t *testing.T) {
	r := newProcessorRig(t)
	r.fakes.block, r.fakes.entered = make(chan struct{}), make(chan struct{}, 1)
	go func() {
		<-r.fakes.entered
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := r.p.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	}()
	r.post("/recon/orphan-sweep", "", "admin").want(t, 503, CodeStopping)
}

// TestShutdownMayComeBeforeServe: a service that is stopped while it starts must not serve without
// end.
func TestShutdownMayComeBeforeServe(t *testing.T) {
	p := NewTradeProcessor(ProcessorDeps{})
	must.OK(t, p.Shutdown(t.Context()))
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan error, 1)
	go func() { done <- p.Serve(ln) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still serving")
	}
	if conn, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener is open")
	}
}

// TestScrapesShowTheSameRegistry on both listeners, what the installation has added included.
func TestScrapesShowTheSameRegistry(t *testing.T) {
	registry := NewRegistry(Metrics{More: func(emit metric.Emit) {
		emit("svc_recon_matched_total", "Entries matched.", true, 7)
		emit("svc_recon_orphan_total", "Orphans.", true, 0)
		emit("svc_projection_lag_records", "Fills not projected.", false, 3)
		emit("svc_replica_quarantine_total", "Quarantines.", true, 1, "source", "account",
			"reason", "gap")
		emit("svc_replica_quarantine_total", "Quarantines.", true, 2, "source", "security",
			"reason", "gap")
	}}, nil)
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Metrics = registry })
	text := string(r.get("/actuator/prometheus", "").want(t, 200, "").body)
	other := adminGet(NewAdmin(AdminConfig{Registry: registry}), "/metrics", "").Body.String()
	for _, line := range []string{
		"# TYPE svc_recon_matched_total counter", "svc_recon_matched_total 7", "svc_recon_orphan_total 0",
		"# TYPE svc_projection_lag_records gauge",
		"# HELP svc_projection_lag_records Fills not projected.", "svc_projection_lag_records 3",
		`svc_replica_quarantine_total{reason="gap",source="account"} 1`,
		`svc_replica_quarantine_total{reason="gap",source="security"} 2`, "go_goroutines",
	} {
		if !strings.Contains(text, line+"\n") && !strings.Contains(text, line+" ") ||
			!strings.Contains(other, line) {
			t.Errorf("%s is not in both\n%s", line, text)
		}
	}
	// What a scraper asks for reaches the registry.
	a := r.call(request{method: "GET", path: "/actuator/prometheus",
		header: map[string]string{"Accept-Encoding": "gzip"}})
	if a.header.Get("Content-Encoding") != "gzip" ||
		!strings.Contains(string(a.unpack(t)), "svc_recon_matched_total 7") {
		t.Errorf("%v", a.header)
	}
}

// TestMalformedMetricFailsTheScrape instead of being left out.
func TestMalformedMetricFailsTheScrape(t *testing.T) {
	for name, labels := range map[string][]string{"a label without a value": {"source"},
		"a label twice": {"a", "1", "a", "2"}} {
		r := newProcessorRig(t, func(d *ProcessorDeps) {
			d.Metrics = NewRegistry(Metrics{More: func(emit metric.Emit) {
				emit("svc_x_total", "X.", true, 1, labels...)
			}}, nil)
		})
		if a := r.get("/actuator/prometheus", ""); a.status != http.StatusInternalServerError {
			t.Errorf("%s: %d %.200s", name, a.status, a.body)
		}
	}
}

// TestBothServicesCountTheirFaults in one metric.
func TestBothServicesCountTheirFaults(t *testing.T) {
	m, p := newRig(t), newProcessorRig(t, func(d *ProcessorDeps) { d.Recon = nil })
	p.get("/recon/status", "admin").want(t, 500, CodeInternal)
	metrics := m.m.Metrics()
	metrics.Services = append(metrics.Services, p.p.Counted)
	text := adminGet(NewAdmin(AdminConfig{Metrics: metrics}), "/metrics", "").Body.String()
	for _, line := range []string{`{fault="panic",service="order-matcher"} 0`,
		`{fault="panic",service="trade-processor"} 1`} {
		if !strings.Contains(text, "svc_http_faults_total"+line) {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
}

// TestProcessorHealthSaysWhatMainSays about its parts.
func TestProcessorHealthSaysWhatMainSays(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) {
		d.State, d.Cluster, d.Projected = func() string { return "degraded" }, leading("2"), nil
	})
	a := r.get("/health", "").want(t, 200, "")
	want := `{"service":"trade-processor","status":"degraded","role":"LEADER","member":"2",` +
		`"leader":"2","durability":"fsync",` +
		`"applied":12,"durable":11,"projected":null}`
	if string(a.body) != want {
		t.Errorf("%s", a.body)
	}
}
