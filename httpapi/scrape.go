package httpapi

import (
	"bytes"
	"net/http"
)

// scrape is GET /actuator/prometheus. It needs no token, as scrapers have none: metrics carry
// classification labels only.
//
// The whole text is made in memory, by a net/http handler that this service's library cannot call
// directly.
func (q *inquiry) scrape() problem {
	if q.p.Metrics == nil {
		return problemRoute
	}
	r, err := http.NewRequest(http.MethodGet, "/", nil)
	if err != nil {
		panic("httpapi: a constant request: " + err.Error())
	}
	for _, name := range []string{"Accept", "Accept-Encoding"} {
		for _, value := range q.ctx.Request.Header.PeekAll(name) {
			r.Header.Add(name, string(value))
		}
	}
	w := memoryWriter{head: http.Header{}, status: http.StatusOK}
	q.p.Metrics.ServeHTTP(&w, r)
	if w.status != http.StatusOK {
		return problemCrash // the handler has logged the cause
	}
	q.ctx.Response.SetBody(w.body.Bytes())
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		if value := w.head.Get(name); value != "" {
			q.ctx.Response.Header.Set(name, value)
		}
	}
	return problem{}
}

// memoryWriter keeps the answer of a net/http handler.
//
// One goroutine uses it, for one answer.
type memoryWriter struct {
	head   http.Header
	body   bytes.Buffer
	status int
}

// Header implements http.ResponseWriter.
func (w *memoryWriter) Header() http.Header { return w.head }

// Write implements http.ResponseWriter.
func (w *memoryWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// WriteHeader implements http.ResponseWriter.
func (w *memoryWriter) WriteHeader(status int) { w.status = status }
