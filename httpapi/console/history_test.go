package console

import (
	"io"
	"io/fs"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/waittest"
)

// TestTheHistoryIsThere: a page that is opened later has the figures of before, and only those of
// the page, each of them a number.
func TestTheHistoryIsThere(t *testing.T) {
	text := "# HELP svc_orders_total x\nsvc_orders_total{decision=\"accepted\"} 7\n" +
		"svc_stage_latency_seconds_bucket{stage=\"ring\",le=\"1\"} 4\n" +
		"svc_stage_latency_seconds_bucket{stage=\"http\",le=\"1\"} 5\n" +
		"svc_stage_latency_seconds_sum{stage=\"http\"} NaN\n" +
		"svc_recon_lag_records 3\nsvc_recon_lag_records_more 3\ngo_goroutines 9\n"
	r := newRig(t, func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, text)
		})
	})
	admin := r.signedIn(gate.Mint(secret, gate.Claims{Subject: "a", Admin: true}, "", time.Hour,
		time.Now()))
	const want = `"metrics":{"svc_orders_total{decision=\"accepted\"}":7,"svc_recon_lag_records":3,` +
		`"svc_stage_latency_seconds_bucket{stage=\"http\",le=\"1\"}":5}`
	waittest.Until(t, "the history has "+want, func() (bool, any) {
		_, said := r.ask("GET", "/api/history", "", admin...)
		return strings.Contains(said, want), said
	})
}

// TestTheHistoryHasWhatThePagesShow: the server and the page each keep every figure that a page
// shows over time, and no other.
func TestTheHistoryHasWhatThePagesShow(t *testing.T) {
	text := func(name string) string {
		return string(must.Get(fs.ReadFile(assets, "assets/"+name))(t))
	}
	kept := map[string]bool{}
	_, list, _ := strings.Cut(text("history.js"), "const kept = new Set([")
	list, _, _ = strings.Cut(list, "]);")
	for _, one := range regexp.MustCompile(`'([^']+)'`).FindAllStringSubmatch(list, -1) {
		kept[one[1]] = true
	}
	shown := map[string]bool{}
	each := regexp.MustCompile(`\b(?:rates|gauge|means|p99s)\(`)
	call := regexp.MustCompile(`\b(rates|gauge|means|p99s)\(` +
		`\w+, (?:sum\(|most\(|\(x\) => total\(x, )?'(svc_\w+)'(?:, '([^']*)')?`)
	for _, page := range must.Get(fs.ReadDir(assets, "assets/pages"))(t) {
		module := text("pages/" + page.Name())
		calls := call.FindAllStringSubmatch(module, -1)
		if n := len(each.FindAllString(module, -1)); n != len(calls) {
			t.Errorf("%s: of %d figures over time this test reads %d", page.Name(), n, len(calls))
		}
		for _, one := range calls {
			metric, label := one[2], one[3]
			if label != "" {
				label = "{" + label + "}"
			}
			switch one[1] {
			case "means":
				shown[metric+"_sum"+label], shown[metric+"_count"+label] = true, true
			case "p99s":
				shown[metric+"_bucket"+label] = true
			default:
				shown[metric] = true
			}
		}
	}
	served := map[string]bool{}
	for _, one := range figures {
		served[one] = true
	}
	if !maps.Equal(served, shown) {
		t.Errorf("history.go keeps %v, the pages show %v", served, shown)
	}
	if !maps.Equal(kept, shown) {
		t.Errorf("history.js keeps %v, the pages show %v", kept, shown)
	}
}
