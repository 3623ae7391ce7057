package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"posttrade/matcher/gate"
)

// Part is one part of the process that /readyz shows. A part either must be ready before the
// process is ready, or works beside the admission of orders; the second kind is shown and does not
// decide.
//
// Detail is for people: it says why a part is not ready.
type Part struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Detail string `json:"detail"`
	Beside bool   `json:"-"`
}

// AdminConfig is what the admin listener shows.
//
// It is constant after NewAdmin. The functions are called by any number of goroutines.
type AdminConfig struct {
	Parts func() []Part // /readyz; nil: no part, ready
	// Vote is one more part of /readyz?vote=true: whether this member counts in a majority. nil: it is
	// no member.
	Vote    func() Part
	Version any     // /version, as JSON
	Metrics Metrics // /metrics, unless Registry is given
	// Admit guards every path but /healthz: it says whose claims a valid bearer token has. A token for
	// metrics opens /metrics and /readyz alone. nil: no guard.
	Admit func(token string) (claims gate.Claims, err error)
	// Process names this process in the header ProcessHeader of every answer; empty: no header.
	Process string
	// OpenHealth answers /readyz without a token too, then without details.
	OpenHealth bool
	Logger     *slog.Logger // may be nil
	// Registry is /metrics, shared with every other handler that shows the same metrics; nil: a
	// registry of Metrics.
	Registry *Registry
	Extra    map[string]http.Handler // further paths of the caller; may be nil
}

// ProcessHeader has the name that a process gives itself, on every answer of the admin listener, to
// those without a token too. It is no secret. A program that has the name from the data directory
// knows by it that no other process has taken the address.
const ProcessHeader = "X-Process"

// named puts the name of the process on every answer.
func named(process string, h http.Handler) http.Handler {
	if process == "" {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(ProcessHeader, process)
		h.ServeHTTP(w, r)
	})
}

// Admin is the listener for operators: health, readiness, metrics, profiles. It uses net/http,
// because the standard pprof and Prometheus handlers do.
//
//	                     with AdminConfig.Admit it asks for
//	/healthz             nothing
//	/readyz, /metrics    a token for metrics, or an admin token
//	everything else      an admin token
type Admin struct {
	http    http.Server
	guarded bool

	// end cancels the context of its requests: a profile of half a minute must not hold up Shutdown.
	end context.CancelFunc
}

// ErrPublicAdmin reports an admin listener that would be reachable from other
// machines without a token.
var ErrPublicAdmin = errors.New("admin listener beyond loopback needs a token")

// NewAdmin builds the admin listener.
//
// There is no write time-out: a profile takes as long as its caller asks for.
func NewAdmin(cfg AdminConfig) *Admin {
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	guard := func(h http.Handler) http.Handler { return h }
	watch := guard // what a token for metrics opens too
	if cfg.Admit != nil {
		guard, watch = tokenGuard(cfg.Admit, false), tokenGuard(cfg.Admit, true)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		adminJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	ready := watch(readiness(&cfg, true))
	if cfg.Admit != nil && cfg.OpenHealth {
		ready = tokenOr(ready, readiness(&cfg, false))
	}
	mux.Handle("GET /readyz", ready)
	mux.Handle("GET /version", guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		adminJSON(w, http.StatusOK, cfg.Version)
	})))
	if cfg.Registry == nil {
		cfg.Registry = NewRegistry(cfg.Metrics, log)
	}
	mux.Handle("GET /metrics", watch(cfg.Registry))
	mux.Handle("GET /debug/pprof/", guard(http.HandlerFunc(pprof.Index)))
	// The command line is not shown: a secret may have been given on it.
	mux.Handle("GET /debug/pprof/cmdline", http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) { adminProblem(w, problemRoute) }))
	mux.Handle("GET /debug/pprof/profile", guard(http.HandlerFunc(pprof.Profile)))
	mux.Handle("GET /debug/pprof/symbol", guard(http.HandlerFunc(pprof.Symbol)))
	mux.Handle("GET /debug/pprof/trace", guard(http.HandlerFunc(pprof.Trace)))
	for path, h := range cfg.Extra {
		mux.Handle(path, guard(h))
	}
	base, end := context.WithCancel(context.Background())
	return &Admin{
		guarded: cfg.Admit != nil,
		end:     end,
		http: http.Server{
			BaseContext:       func(net.Listener) context.Context { return base },
			Handler:           named(cfg.Process, problems(mux)),
			ReadHeaderTimeout: readTimeout,
			ReadTimeout:       readTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBlockBytes,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// Serve answers on ln until Shutdown; it then returns nil. An address beyond
// loopback without a token is refused with ErrPublicAdmin.
func (a *Admin) Serve(ln net.Listener) error {
	if !a.guarded && !loopback(ln.Addr()) {
		return fmt.Errorf("httpapi: serve admin address=%s: %w", ln.Addr(), ErrPublicAdmin)
	}
	if err := a.http.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("httpapi: serve admin: %w", err)
	}
	return nil
}

// Shutdown stops accepting, ends profiles and traces with the data they have, and waits for the
// requests under way until ctx ends. Requests that are left then lose their connections, and the
// error says so: their handlers may still be running.
func (a *Admin) Shutdown(ctx context.Context) error {
	a.end()
	err := a.http.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("httpapi: shut down admin: %w", errors.Join(err, a.http.Close()))
	}
	return err
}

// readiness answers 200 when every part that decides is ready, else 503. The body lists all parts
// in both cases. details false leaves the parts out: their texts are for operators. A 503 asks to
// look again after a second.
//
// With ?vote=true the vote of this member decides too: whether another member may be taken away.
func readiness(cfg *AdminConfig, details bool) http.Handler {
	parts, vote := cfg.Parts, cfg.Vote
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := struct {
			Ready bool   `json:"ready"`
			Parts []Part `json:"parts,omitzero"`
		}{Ready: true, Parts: []Part{}}
		if parts != nil {
			answer.Parts = append(answer.Parts, parts()...)
		}
		if vote != nil && r.URL.Query().Get("vote") == "true" {
			answer.Parts = append(answer.Parts, vote())
		}
		for _, p := range answer.Parts {
			answer.Ready = answer.Ready && (p.Ready || p.Beside)
		}
		if !details {
			answer.Parts = nil
		}
		status := http.StatusOK
		if !answer.Ready {
			status = http.StatusServiceUnavailable
			w.Header().Set("Retry-After", "1")
		}
		adminJSON(w, status, answer)
	})
}

// adminJSON answers with v, which must marshal. No cache keeps it.
func adminJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", contentJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the head is already sent: the error cannot be reported to the peer
}
