package console

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

// TestABrowserThatReadsNothingLosesItsPlace: two ask for a page and a file and
// read nothing. A stream whose browser reads lasts, however long it takes; a pause between two
// of its pieces is no fault.
func TestABrowserThatReadsNothingLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, between = 4, 2 * writeTimeout
		verifier := must.Get(gate.NewVerifier(secret, "", 0, time.Now))(t)
		c := must.Get(New(Options{Verifier: verifier}))(t)
		service := &httpService{http.Server{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				for n := range pieces {
					fmt.Fprintln(w, n)
					http.NewResponseController(w).Flush()
					if n+1 < pieces {
						time.Sleep(between)
					}
				}
			})}}
		c.Attach("order-matcher", service)
		ln := newPipeListener("browser")
		ended := make(chan error, 1)
		go func() { ended <- c.Serve(ln) }()
		defer func() {
			must.OK(t, c.Shutdown(t.Context()))
			must.OK(t, <-ended)
			_ = service.Close()
		}()

		token := gate.Mint(secret, gate.Claims{Subject: "desk"}, "", 24*time.Hour, time.Now())
		ask := func(path string) *bufio.Reader {
			conn := must.Get(ln.dial(t.Context()))(t)
			t.Cleanup(func() { _ = conn.Close() })
			must.Get(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nCookie: %s=%s\r\n\r\n", path,
				"posttrade", token))(t)
			return bufio.NewReader(conn)
		}
		quiet := []*bufio.Reader{ask("/assets/console.css"), ask("/evidence")}
		synctest.Wait()
		if n := len(c.inflight); n != 1 { // the page is short: its handler has ended
			t.Fatalf("%d requests in work, want 1", n)
		}
		answer := must.Get(http.ReadResponse(ask("/api/order-matcher/stream"), nil))(t)
		body := must.Get(io.ReadAll(answer.Body))(t)
		if answer.StatusCode != 200 || string(body) != "0\n1\n2\n3\n" {
			t.Errorf("%d %q", answer.StatusCode, body)
		}
		synctest.Wait()
		if n := len(c.inflight); n != 0 {
			t.Errorf("%d requests in work, want none", n)
		}
		for _, r := range quiet {
			if _, err := io.ReadAll(r); err == nil {
				if _, err = r.ReadByte(); err != io.EOF {
					t.Errorf("the connection is open: %v", err)
				}
			}
		}
	})
}
