package httpapi

import (
	"net"
	"net/http"
	"strings"

	"posttrade/matcher/gate"
)

// loopback reports an address that no other machine can reach.
func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return !ok || tcp.IP.IsLoopback() // a pipe or a unix socket does not leave the machine
}

// tokenGuard lets a request through when its bearer token carries the admin claim, or the claim
// metrics where that is enough.
//
// 401 asks for a bearer token; 403 says that the token is good for something else. The answer is
// the services' problem document.
func tokenGuard(admit func(string) (gate.Claims, error),
	metrics bool) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			claims, err := gate.Claims{}, gate.ErrTokenFormat
			if strings.EqualFold(scheme, "Bearer") {
				claims, err = admit(strings.TrimSpace(token))
			}
			switch {
			case err != nil:
				w.Header().Set("WWW-Authenticate", "Bearer")
				adminProblem(w, problemToken)
			case !claims.Admin && !(metrics && claims.Metrics):
				adminProblem(w, problemAdmin)
			default:
				h.ServeHTTP(w, r)
			}
		})
	}
}

// tokenOr is known for a request that carries a token, and open for one without.
//
// A token that is wrong is refused and not ignored: a misspelt one must not look like a part that
// has no details.
func tokenOr(known, open http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			open.ServeHTTP(w, r)
			return
		}
		known.ServeHTTP(w, r)
	})
}

// problems answers for mux where mux has no handler. It sends a problem document, as the services
// do; mux itself would send plain text.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			w = problemWriter{w}
		}
		mux.ServeHTTP(w, r)
	})
}

// problemWriter keeps the headers of a 404 or 405, such as Allow, and drops the body: a problem
// document takes its place.
type problemWriter struct{ http.ResponseWriter }

func (w problemWriter) WriteHeader(status int) {
	switch status {
	case http.StatusNotFound:
		adminProblem(w.ResponseWriter, problemRoute)
	case http.StatusMethodNotAllowed:
		adminProblem(w.ResponseWriter, problemMethod)
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w problemWriter) Write(text []byte) (int, error) { return len(text), nil }

// adminProblem answers with a problem document, as the services do.
func adminProblem(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", contentProblem)
	w.WriteHeader(p.status)
	_, _ = w.Write(append(p.append(nil), '}')) // the peer may be gone
}
