package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// policy allows the console's own files only: no inline script, no inline style, no other host.
// 'wasm-unsafe-eval' is for the verifier of the page Evidence.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; object-src 'none'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// harden sets the headers that every answer has.
//
// A handler may add headers, and never changes these.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

// knownHost reports that a request is for this console. An IP address is fine: a page that another
// machine's name led to carries that name in Host, whatever it resolves to.
//
// Without this check a page could reach the console by a name of its own that resolves to this
// machine, and read the answers.
func (c *Console) knownHost(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(name)
	return name == "localhost" || slices.ContainsFunc(c.Names(), func(known string) bool {
		if rest, wild := strings.CutPrefix(known, "*"); wild { // of a certificate: one label
			label, found := strings.CutSuffix(name, rest)
			return found && label != "" && !strings.Contains(label, ".")
		}
		return name == known
	})
}

// ownOrigin reports that a page of this console sent the request, as far as the browser says. A
// request without Origin does not come from a page's script.
//
// The console sends no header that would let another origin read an answer; this check keeps it
// from asking.
func ownOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	switch len(origins) {
	case 0:
		return r.Method == http.MethodGet && ownSite(r)
	case 1:
		u, err := url.Parse(origins[0])
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") &&
			strings.EqualFold(u.Host, r.Host) && ownSite(r)
	}
	return false
}

// ownSite reports that the browser says nothing against it: another port of the same machine is the
// same site, but not the same origin.
func ownSite(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// headerCSRF carries the value that only a page of this origin can know.
const headerCSRF = "X-CSRF-Token"

// csrfOf is that value for a session: it is drawn from the token, which no script can read. It
// changes with the token, and needs no memory here.
func csrfOf(token string) string {
	sum := sha256.Sum256([]byte("posttrade console csrf\x00" + token))
	return hex.EncodeToString(sum[:16])
}

// knowsCSRF reports that the request carries that value once. The time of the comparison does not
// depend on where it differs.
func knowsCSRF(r *http.Request, token string) bool {
	given := r.Header.Values(headerCSRF)
	return len(given) == 1 &&
		subtle.ConstantTimeCompare([]byte(given[0]), []byte(csrfOf(token))) == 1
}

// refuseCSRF answers a write of a session without its value.
func refuseCSRF(w http.ResponseWriter) {
	refuse(w, http.StatusForbidden, "FOREIGN_ORIGIN", headerCSRF+" is missing or wrong")
}

// cutPath splits a path into its first segment and the rest, which begins with a slash if there is
// one.
func cutPath(path string) (first, rest string) {
	path = strings.TrimPrefix(path, "/")
	if i := strings.IndexByte(path, '/'); i >= 0 {
		return path[:i], path[i:]
	}
	return path, ""
}

// headerStatus asks for the status of an answer in a header of that name, and 200 in its place. A
// browser writes every other answer to its console as an error, also a refusal of the risk gate,
// which is none.
const headerStatus = "X-Console-Status"

// statusHeaderWriter is the writer of an answer whose status goes into headerStatus. It is for the
// pages' own scripts.
type statusHeaderWriter struct{ http.ResponseWriter }

func (w statusHeaderWriter) WriteHeader(status int) {
	if status >= 400 {
		w.Header().Set(headerStatus, strconv.Itoa(status))
		status = http.StatusOK
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets the standard library flush and set deadlines.
func (w statusHeaderWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// deadlineWriter is the writer of an answer that a browser must take: each writePiece of it, its
// header and each flush have writeTimeout of their own. So a stream and a slow browser may last,
// and a browser that reads nothing loses its connection, and its place among maxInflight.
type deadlineWriter struct{ http.ResponseWriter }

// writePiece is what a browser must take within writeTimeout.
const writePiece = 32 << 10

// renew moves the connection's deadline. Handlers of a test may write without a connection.
func (w deadlineWriter) renew() {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
}

func (w deadlineWriter) WriteHeader(status int) {
	w.renew() // an answer without a body is written behind the handler
	w.ResponseWriter.WriteHeader(status)
}

func (w deadlineWriter) Write(b []byte) (n int, err error) {
	for {
		w.renew()
		wrote, err := w.ResponseWriter.Write(b[n:min(n+writePiece, len(b))])
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

// FlushError is what http.ResponseController calls.
func (w deadlineWriter) FlushError() error {
	w.renew()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets the standard library set deadlines.
func (w deadlineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuse answers with a problem document, as the services do.
//
// No cache keeps it. detail is the console's own text: it holds nothing of the request. A 503 says
// that the request was not sent on: nothing of it was sequenced.
func refuse(w http.ResponseWriter, status int, code, detail string) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	problem := map[string]any{
		"type":  "urn:posttrade:problem:" + strings.ReplaceAll(strings.ToLower(code), "_", "-"),
		"title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	}
	if status == http.StatusServiceUnavailable {
		problem["sequenced"] = false
	}
	_ = json.NewEncoder(w).Encode(problem) // the peer may be gone
}

// allow refuses every other method. The refusal is then written, and false returned.
func allow(w http.ResponseWriter, r *http.Request, methods ...string) bool {
	if slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	refuse(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED",
		"this path answers to "+strings.Join(methods, ", "))
	return false
}
