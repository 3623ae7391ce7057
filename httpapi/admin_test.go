package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
	"posttrade/ring/timing"
)

// adminGet asks an admin listener without a socket.
func adminGet(a *Admin, path, token string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	w := httptest.NewRecorder()
	a.http.Handler.ServeHTTP(w, req)
	return w
}

func TestAdminAnswers(t *testing.T) {
	ready := true
	a := NewAdmin(AdminConfig{
		Parts: func() []Part {
			return []Part{
				{Name: "journal", Ready: true, Detail: "durable 7"},
				{Name: "account", Ready: ready, Detail: "quarantined: gap"},
				{Name: "database", Detail: "cannot be reached", Beside: true}, // shown, decides nothing
			}
		},
		Version: map[string]string{"version": "1.2.3"},
		Extra: map[string]http.Handler{"GET /extra": http.HandlerFunc(func(w http.ResponseWriter,
			_ *http.Request) {
			io.WriteString(w, "more")
		})},
	})
	for _, tt := range []struct {
		path   string
		status int
		text   string
	}{
		{"/healthz", 200, `{"status":"ok"}`},
		{"/readyz", 200, `{"ready":true,"parts":[{"name":"journal","ready":true,"detail":"durable 7"},`},
		{"/version", 200, `{"version":"1.2.3"}`},
		{"/metrics", 200, "go_goroutines"},
		{"/debug/pprof/", 200, "goroutine"},
		{"/debug/pprof/cmdline", 404, ""},
		{"/debug/pprof/goroutine?debug=1", 200, "goroutine profile"},
		{"/debug/pprof/symbol", 200, "num_symbols"},
		{"/extra", 200, "more"},
		{"/nothing", 404, ""},
	} {
		w := adminGet(a, tt.path, "")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.text) {
			t.Errorf("%s: %d %.200s, want %d with %q", tt.path, w.Code, w.Body, tt.status, tt.text)
		}
	}
	ready = false
	w := adminGet(a, "/readyz", "")
	if w.Code != 503 || !strings.HasPrefix(w.Body.String(), `{"ready":false`) ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("not ready: %d %s", w.Code, w.Body)
	}
	if w := adminGet(NewAdmin(AdminConfig{}), "/readyz", ""); w.Code != 200 ||
		w.Body.String() != `{"ready":true,"parts":[]}`+"\n" {
		t.Errorf("no parts: %d %s", w.Code, w.Body)
	}
}

// only admits one token; "user" is a token without the admin claim, "scraper" one for metrics.
func only(token string) func(string) (gate.Claims, error) {
	return func(given string) (claims gate.Claims, err error) {
		claims.Admin, claims.Metrics = given == token, given == "scraper"
		if !claims.Admin && !claims.Metrics && given != "user" {
			err = gate.ErrTokenFormat
		}
		return claims, err
	}
}

func TestAdminTokenGuardsAllButHealth(t *testing.T) {
	a := NewAdmin(AdminConfig{Admit: only("let-me-in")})
	for _, path := range []string{"/readyz", "/metrics", "/version", "/debug/pprof/"} {
		for _, token := range []string{"", "let-me-in", "Bearer", "Bearer let-me", "Bearer let-me-in-2",
			"Basic let-me-in"} {
			w := adminGet(a, path, token)
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" ||
				!json.Valid(w.Body.Bytes()) {
				t.Errorf("%s with %q: %d %s", path, token, w.Code, w.Body)
			}
		}
		if w := adminGet(a, path, "Bearer user"); w.Code != 403 ||
			w.Header().Get("Content-Type") != contentProblem ||
			!strings.Contains(w.Body.String(), string(CodeAdminRequired)) {
			t.Errorf("%s without the admin claim: %d %s", path, w.Code, w.Body)
		}
		if w := adminGet(a, path, "bearer let-me-in"); w.Code != 200 {
			t.Errorf("%s with the token: %d", path, w.Code)
		}
		watched := 403
		if path == "/readyz" || path == "/metrics" {
			watched = 200
		}
		if w := adminGet(a, path, "Bearer scraper"); w.Code != watched {
			t.Errorf("%s with a token for metrics: %d", path, w.Code)
		}
	}
	if w := adminGet(a, "/healthz", ""); w.Code != 200 {
		t.Errorf("/healthz: %d", w.Code)
	}
}

// TestOpenHealthShowsNoDetails: without a token /readyz says only whether the process is ready,
// with a wrong one it is refused, and nothing else opens.
func TestOpenHealthShowsNoDetails(t *testing.T) {
	a := NewAdmin(AdminConfig{OpenHealth: true,
		Admit: only("good"),
		Parts: func() []Part { return []Part{{Name: "disk", Detail: "a secret place"}} }})
	for _, tt := range []struct {
		path, token string
		status      int
		details     bool
	}{
		{"/readyz", "", 503, false}, {"/readyz", "Bearer good", 503, true},
		{"/readyz", "Bearer bad", 401, false}, {"/readyz", "Basic x", 401, false},
		{"/metrics", "", 401, false}, {"/healthz", "", 200, false},
	} {
		r := httptest.NewRequest("GET", tt.path, nil)
		if tt.token != "" {
			r.Header.Set("Authorization", tt.token)
		}
		w := httptest.NewRecorder()
		a.http.Handler.ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), "a secret place"); w.Code != tt.status ||
			got != tt.details {
			t.Errorf("%s with %q: %d %s", tt.path, tt.token, w.Code, w.Body)
		}
	}
}

// TestReadinessWithAVote: a member without a vote serves requests, so /readyz is ready. With
// ?vote=true it is not, also without a token; a single node is no member.
func TestReadinessWithAVote(t *testing.T) {
	votes := false
	member := AdminConfig{Vote: func() Part { return Part{Name: "vote", Ready: votes} }}
	guarded := member
	guarded.Admit, guarded.OpenHealth = only("good"), true
	for _, tt := range []struct {
		config AdminConfig
		path   string
		votes  bool
		status int
	}{
		{member, "/readyz", false, 200}, {member, "/readyz?vote=true", false, 503},
		{member, "/readyz?vote=true", true, 200}, {guarded, "/readyz?vote=true", false, 503},
		{AdminConfig{}, "/readyz?vote=true", false, 200},
	} {
		votes = tt.votes
		if w := adminGet(NewAdmin(tt.config), tt.path, ""); w.Code != tt.status {
			t.Errorf("%s with a vote %v: %d %s", tt.path, votes, w.Code, w.Body)
		}
	}
}

// TestAdminProblemsAreDocuments requests paths that do not exist, and uses wrong methods.
func TestAdminProblemsAreDocuments(t *testing.T) {
	a := NewAdmin(AdminConfig{})
	for _, tt := range []struct {
		method, path string
		status       int
		code         Code
		allow        string
	}{
		{"GET", "/nothing", 404, CodeNotFound, ""},
		{"POST", "/nothing", 404, CodeNotFound, ""},
		{"POST", "/metrics", 405, CodeMethodNotAllowed, "GET, HEAD"},
		{"DELETE", "/healthz", 405, CodeMethodNotAllowed, "GET, HEAD"},
	} {
		w := httptest.NewRecorder()
		a.http.Handler.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, nil))
		var document struct {
			Status int
			Code   Code
		}
		err := json.Unmarshal(w.Body.Bytes(), &document)
		if err != nil || w.Code != tt.status || document.Status != tt.status ||
			document.Code != tt.code ||
			w.Header().Get("Content-Type") != contentProblem || w.Header().Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d %v %s, want %d %s", tt.method, tt.path, w.Code, w.Header(), w.Body,
				tt.status, tt.code)
		}
	}
}

// addressed is a listener that reports another address.
type addressed struct {
	net.Listener
	addr net.Addr
}

func (l addressed) Addr() net.Addr { return l.addr }

func TestAdminBeyondLoopbackNeedsAToken(t *testing.T) {
	public := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 18111}
	for _, ip := range []net.IP{public.IP, net.IPv4zero, net.IPv6zero} {
		err := NewAdmin(AdminConfig{}).Serve(addressed{nil, &net.TCPAddr{IP: ip}})
		if !errors.Is(err, ErrPublicAdmin) {
			t.Errorf("%v without a token: %v", ip, err)
		}
	}
	for _, tt := range []struct {
		admit func(string) (gate.Claims, error)
		addr  net.Addr
	}{{only("secret"), public}, {nil, &net.TCPAddr{IP: net.IPv6loopback}}, {nil,
		&net.UnixAddr{Name: "x"}}} {
		ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		a := NewAdmin(AdminConfig{Admit: tt.admit})
		var group sync.WaitGroup
		group.Go(func() {
			if err := a.Serve(addressed{ln, tt.addr}); err != nil {
				t.Error(err)
			}
		})
		resp := must.Get(http.Get("http://" + ln.Addr().String() + "/healthz"))(t)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("status %d", resp.StatusCode)
		}
		if err := a.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		group.Wait()
	}
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ln.Close()
	if err := NewAdmin(AdminConfig{}).Serve(ln); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}

func TestMetricsHaveTheContractsNames(t *testing.T) {
	r := newRig(t)
	r.price("AAA", "100")
	r.order("1", "Buy", "1", "100", `,"clientOrderId":"k"`).want(t, 201, "")
	r.order("1", "Buy", "1", "100", `,"clientOrderId":"k"`).want(t, 201, "")
	r.order("9", "Buy", "1", "100", "").want(t, 422, "")
	m := r.m.Metrics()
	m.Rings = func(emit func(string, int, int)) { emit("input", 3, 8) }
	m.Stages = func(emit func(string, uint64)) { emit("matcher", 4) }
	m.JournalCommits = func() timing.Distribution {
		return timing.Distribution{Count: 3, Sum: 0.5, Native: map[int]int64{-3: 3},
			Classic: [11]uint64{8: 0, 9: 2, 10: 3}}
	}
	m.JournalBytes = func() uint64 { return 1234 }
	text := adminGet(NewAdmin(AdminConfig{Metrics: m}), "/metrics", "").Body.String()
	for _, line := range []string{
		`svc_ring_depth{ring="input"} 3`, `svc_ring_slots{ring="input"} 8`,
		`svc_stage_sequence{stage="matcher"} 4`,
		`svc_stage_latency_seconds_count{stage="http"} 2`,
		`svc_orders_total{decision="accepted"} 1`,
		`svc_orders_total{decision="rejected"} 1`,
		`svc_orders_total{decision="duplicate"} 1`,
		`svc_gate_rejections_total{reason="UNKNOWN_ACCOUNT"} 1`,
		`svc_journal_commit_seconds_count 3`,
		`svc_journal_commit_seconds_bucket{le="1e-06"} 0`,
		`svc_journal_commit_seconds_bucket{le="1"} 2`,
		`svc_journal_commit_seconds_bucket{le="10"} 3`,
		`svc_http_requests_total{code="201",route="/orders",service="order-matcher"} 2`,
		`svc_http_requests_total{code="422",route="/orders",service="order-matcher"} 1`,
		`svc_journal_bytes_total 1234`,
		`svc_http_faults_total{fault="panic",service="order-matcher"} 0`,
		`# TYPE svc_journal_commit_seconds histogram`,
		`go_gc_duration_seconds`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
}

// TestBrokenDistributionShowsInTheScrape plants a histogram with buckets that do not add up.
func TestBrokenDistributionShowsInTheScrape(t *testing.T) {
	m := Metrics{Latencies: func(emit func(string, timing.Distribution)) {
		emit("http", timing.Distribution{Count: 7})
	}}
	if w := adminGet(NewAdmin(AdminConfig{Metrics: m}), "/metrics", ""); w.Code == 200 {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
}
