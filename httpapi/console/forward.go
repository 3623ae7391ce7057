package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"time"

	"posttrade/httpapi/urlpath"
)

// adminPaths are the paths of the admin listener that the pages read. Profiles are not among them.
var adminPaths = []string{"/readyz", "/metrics", "/version"}

// ownNames are what the console itself shows to an administrator.
var ownNames = []string{"cluster", "files", "history"}

// passedOn are the headers of a page's request that a service gets. A header that is there twice is
// not passed on. Cookies and Origin never are.
var passedOn = []string{"Accept", "Accept-Encoding", "Content-Type", "Last-Event-Id",
	"X-Consistency", "X-Min-Sequence", "X-Min-Version", "X-Reason"}

// ownHeaders are the headers of an answer that the console sets itself, and cookies: no service
// sets any.
var ownHeaders = []string{"Content-Security-Policy", "X-Content-Type-Options", "X-Frame-Options",
	"Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy", "Set-Cookie",
	"Access-Control-Allow-Origin"}

// backend is a service that the pages call.
//
// One is made for each service, at Attach.
type backend struct {
	name     string
	listener *pipeListener
	proxy    *httputil.ReverseProxy
}

// tokenKey and pathKey are the context values of a request on its way to a service.
type (
	tokenKey struct{}
	pathKey  struct{}
)

// newBackend makes the proxy of a service. Each request has a connection of its own, in memory.
func newBackend(name string, log *slog.Logger) *backend {
	b := &backend{name: name, listener: newPipeListener(name)}
	b.proxy = &httputil.ReverseProxy{
		Rewrite:       b.rewrite,
		FlushInterval: -1, // an event leaves when it is there
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return b.listener.dial(ctx)
			},
			DisableKeepAlives:  true, // a connection carries one browser's address
			DisableCompression: true,
		},
		ModifyResponse: func(a *http.Response) error {
			for _, name := range ownHeaders {
				a.Header.Del(name)
			}
			if a.Header.Get("Cache-Control") == "" {
				a.Header.Set("Cache-Control", "no-store")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				log.Debug("console: no answer", "service", name, "error", err)
			}
			// Without a connection nothing was sent. One that broke may have carried the whole request.
			status, code := http.StatusBadGateway, "OUTCOME_UNKNOWN"
			if errors.Is(err, net.ErrClosed) {
				status, code = http.StatusServiceUnavailable, "STOPPING"
			}
			refuse(w, status, code, "the "+name+" does not answer")
		},
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return b
}

// rewrite builds the service's request anew: nothing of the browser's goes there but what is named.
func (b *backend) rewrite(p *httputil.ProxyRequest) {
	in, out := p.In, p.Out
	out.URL.Scheme, out.URL.Host, out.Host = "http", b.name, b.name
	path, _ := in.Context().Value(pathKey{}).(string)
	token, _ := in.Context().Value(tokenKey{}).(string)
	out.URL.Path, out.URL.RawPath, out.URL.RawQuery = path, "", in.URL.RawQuery
	out.Header = http.Header{"Authorization": {"Bearer " + token}, "User-Agent": {"posttrade-console"}}
	for _, name := range passedOn {
		if values := in.Header.Values(name); len(values) == 1 {
			out.Header[name] = values
		}
	}
}

// serveAPI sends /api/<service>/<path> to the service, with the token of the session.
//
// The order of the checks: origin (403), session (401), path (400), name (404), admin claim (403),
// method (405), the proof of a page in requests that write (403). None of them says anything about
// orders or accounts: those are the service's own checks, with the token that it gets.
func (c *Console) serveAPI(w http.ResponseWriter, r *http.Request, path string) {
	if !ownOrigin(r) {
		refuse(w, http.StatusForbidden, "FOREIGN_ORIGIN", "only the console's own pages may ask")
		return
	}
	name, rest := cutPath(path)
	if name == "session" && rest == "" {
		c.serveSession(w, r)
		return
	}
	token, claims, ok := c.sessionOf(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "UNAUTHORIZED", "sign in first")
		return
	}
	b, own := c.services[name], slices.Contains(ownNames, name)
	switch {
	case !urlpath.Plain([]byte(r.URL.EscapedPath())):
		refuse(w, http.StatusBadRequest, "BAD_REQUEST", "the path must have plain segments only")
		return
	case b == nil && !own || name == "admin" && !slices.Contains(adminPaths, rest):
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such service or path")
		return
	case (own || name == "admin") && !claims.Admin:
		// The admin listener may go without a token on loopback. The console may be reached from beyond.
		refuse(w, http.StatusForbidden, "ADMIN_REQUIRED", "the token is not an admin's")
		return
	case !allow(w, r, http.MethodGet, http.MethodPost, http.MethodPut):
		return
	case r.Method != http.MethodGet && !knowsCSRF(r, token):
		refuseCSRF(w)
		return
	case own && !allow(w, r, http.MethodGet):
		return
	case name == "cluster":
		c.serveCluster(w, r)
		return
	case name == "history":
		sendJSON(w, map[string]any{"items": c.history.all()})
		return
	case name == "files":
		c.serveFolder(w, r, rest)
		return
	}
	c.forward(w, r, b, token, rest)
}

// forward sends a request on to a service.
//
// The body is read whole before the service is called, so that a slow browser holds no request of a
// service. The answer is passed on as it comes, streams too.
func (c *Console) forward(w http.ResponseWriter, r *http.Request, b *backend, token, rest string) {
	if rest == "" {
		rest = "/"
	}
	body, err := readBody(w, r, maxBodyBytes)
	if err != nil {
		refuseBody(w, err)
		return
	}
	ctx := context.WithValue(r.Context(), tokenKey{}, token)
	ctx = context.WithValue(ctx, pathKey{}, rest)
	r = r.WithContext(ctx)
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)),
		int64(len(body)), nil
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	b.proxy.ServeHTTP(w, r)
}

// readBody reads a request's whole body within readTimeout. A read deadline must not be left on the
// connection: it would end a stream that is under way.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // a test's writer has none
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	_ = control.SetReadDeadline(time.Time{})
	return body, err
}

// refuseBody answers for a body that readBody could not read: 413 when it is too long, else 400.
func refuseBody(w http.ResponseWriter, err error) {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		refuse(w, http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", "the body is too long")
		return
	}
	refuse(w, http.StatusBadRequest, "BAD_REQUEST", "the body did not arrive")
}
