package installation

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/ring/must"
	"posttrade/sidecars/broker/brokertest"
	"posttrade/sidecars/store/storetest"
)

// TestEngineAloneReportsAndReindexes runs without the post-trade services: none of them listens or
// is made, and the commands that read only the journal work.
func TestEngineAloneReportsAndReindexes(t *testing.T) {
	data := t.TempDir()
	in := install(t, data, "sidecars.enabled", "false")
	var names []string
	for _, l := range in.listeners.open {
		names = append(names, l.name)
	}
	if !slices.Equal(names, []string{"order-matcher", "admin", "console"}) ||
		in.Beside.Load() != nil {
		t.Errorf("%v listen", names)
	}
	day := newTradingDay(t, in.Core, *daySeed)
	day.trade(t.Context(), 500)
	tr := replayJournal(t, in.Core)
	tr.checkBlotter(t, in)
	tr.checkReport(t, in, uint64(len(tr.commands)))
	n := uint64(len(tr.fills))
	if info, err := in.orders.Reindex(t.Context()); err != nil || info.IndexedTrades != n ||
		info.LastTradeSeq != n ||
		info.LastSequence != uint64(len(tr.commands)) {
		t.Errorf("reindex of %d trades: %+v, %v", n, info, err)
	}
	if page, err := in.orders.FullHistory(t.Context(), n-1, 10); err != nil || len(page.Items) != 1 ||
		page.Items[0].TradeSeq != n {
		t.Errorf("full history: %+v, %v", page, err)
	}
	if status, body := in.get("admin", "/readyz"); status != http.StatusOK ||
		strings.Contains(string(body), "database") {
		t.Errorf("readyz: %d %s", status, body)
	}
	_, metrics := in.get("admin", "/metrics")
	if text := string(metrics); strings.Contains(text, "svc_recon") ||
		!strings.Contains(text, "svc_journal_bytes_total") {
		t.Error("the metrics show a reconciliation that does not run, or no journal")
	}
	for _, name := range []string{"posttrade.db", "broker", "tca"} {
		if _, err := os.Stat(filepath.Join(data, name)); !os.IsNotExist(err) {
			t.Errorf("%s is in data.dir: %v", name, err)
		}
	}
	health, err := in.orders.Health(t.Context())
	if err != nil || health.Durable != uint64(len(tr.commands)) || health.Projected != nil {
		t.Errorf("health: %+v, %v", health, err)
	}
}

// TestPortsFileNamesEveryListener serves with everything on, and then alone.
func TestPortsFileNamesEveryListener(t *testing.T) {
	for sidecars, want := range map[string][]string{
		"true": {"account-service", "admin", "console", "order-matcher", "reference-data",
			"trade-processor"},
		"false": {"admin", "console", "order-matcher"},
	} {
		data := t.TempDir()
		s := startServer(t, data, "sidecars.enabled", sidecars)
		text := must.Get(os.ReadFile(filepath.Join(data, "ports.json")))(t)
		var ports map[string]string
		must.OK(t, json.Unmarshal(text, &ports))
		var names []string
		for name, at := range ports {
			names = append(names, name)
			path := "/health"
			switch name {
			case "admin":
				path = "/healthz"
			case "console":
				path = "/overview"
			}
			if status, body := call(t, "GET", "http://"+at+path, ""); status != http.StatusOK {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("ports.json of sidecars.enabled=%s names %v, want %v", sidecars, names, want)
		}
		s.stop(t)
	}
}

// TestStopEndsPromptlyInTheMiddleOfEverything stops an installation while all of its sidecars are
// behind, and opens it again: the stop loses nothing.
func TestStopEndsPromptlyInTheMiddleOfEverything(t *testing.T) {
	data := t.TempDir()
	for k := range uint64(3) {
		in := install(t, data)
		day := newTradingDay(t, in.Core, *daySeed+k)
		ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
		day.trade(ctx, in.tradeSeq()+3000)
		cancel()
		in.stop()
	}
	wantWhole(t, install(t, data))
}

// TestStopEndsWhileTheNetworkSwallows stops an installation while its database and message broker
// do not answer and close no connection.
func TestStopEndsWhileTheNetworkSwallows(t *testing.T) {
	if !hasPostgres(t) {
		return
	}
	o, network := storetest.CutOptions(t)
	nats := brokertest.External(t)
	data := t.TempDir()
	in := install(t, data, "database.url", o.URL, "nats.url", nats.URL())
	_, end := ordersFlow(t, in, *daySeed)
	apptest.Until(t, "the projection has begun",
		func() (bool, any) { return in.Beside.Load().projected() > 0, nil })
	network.Hold()
	nats.Hang()
	awaitFills(t, in, in.tradeSeq()+awayTrades)
	end()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		in.stop()
	}()
	select {
	case <-stopped:
	case <-time.After(apptest.Patience):
		t.Fatalf("the installation has not stopped after %s", apptest.Patience)
	}
	network.Heal()
	nats.Resume()
	wantWhole(t, install(t, data, "database.url", o.URL, "nats.url", nats.URL()))
}
