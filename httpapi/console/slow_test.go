package console

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

// TestABrowserThatReadsNothingLosesItsPlace: three ask for a file, a page, and a page that they
// have, and read nothing. A stream whose browser reads lasts, however long it takes; a pause
// between two of its pieces is no fault. A browser that reads a long file slowly gets all of it.
func TestABrowserThatReadsNothingLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces, between = 4, 2 * writeTimeout
		verifier := must.Get(gate.NewVerifier(secret, "", 0, time.Now))(t)
		c := must.Get(New(Options{Verifier: verifier, Prover: make([]byte, 10*writePiece)}))(t)
		service := &httpService{http.Server{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				next := time.NewTicker(between)
				defer next.Stop()
				for n := range pieces {
					if n > 0 {
						<-next.C
					}
					fmt.Fprintln(w, n)
					must.OK(t, http.NewResponseController(w).Flush())
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
		ask := func(path, header string) net.Conn {
			conn := must.Get(ln.dial(t.Context()))(t)
			t.Cleanup(func() { _ = conn.Close() })
			must.Get(fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nCookie: posttrade=%s\r\n"+
				"%s\r\n", path, token, header))(t)
			return conn
		}
		quiet := []net.Conn{ask("/assets/console.css", ""), ask("/evidence", ""),
			ask("/evidence", "If-None-Match: "+c.files["assets/index.html"].etag+"\r\n")}
		synctest.Wait()
		if n := len(c.inflight); n != 1 { // the others are short: their handlers have ended
			t.Fatalf("%d requests in work, want 1", n)
		}
		stream := bufio.NewReader(ask("/api/order-matcher/stream", ""))
		answer := must.Get(http.ReadResponse(stream, nil))(t)
		body := must.Get(io.ReadAll(answer.Body))(t)
		if answer.StatusCode != 200 || string(body) != "0\n1\n2\n3\n" {
			t.Errorf("%d %q", answer.StatusCode, body)
		}
		synctest.Wait()
		if n := len(c.inflight); n != 0 {
			t.Errorf("%d requests in work, want none", n)
		}
		for _, conn := range quiet { // a pipe delivers nothing that is not read
			if text, err := io.ReadAll(conn); err != nil || len(text) != 0 {
				t.Errorf("the connection was open: %q, %v", text, err)
			}
		}
		slow, size := ask("/assets/verify/verify.wasm", ""), 0
		next := time.NewTicker(writeTimeout / 3)
		defer next.Stop()
		for buf := make([]byte, writePiece/2); ; <-next.C {
			n, err := io.ReadFull(slow, buf)
			if size += n; err != nil {
				break // the connection ends when it is idle
			}
		}
		if size < len(c.files["assets/verify/verify.wasm"].text) {
			t.Errorf("%d bytes of a file, want %d", size, len(c.files["assets/verify/verify.wasm"].text))
		}
	})
}

// TestAFullConsoleSendsNothingOn: a request too many says that it may be sent again.
func TestAFullConsoleSendsNothingOn(t *testing.T) {
	c := must.Get(New(Options{Verifier: must.Get(gate.NewVerifier(secret, "", 0, time.Now))(t)}))(t)
	for range cap(c.inflight) {
		c.inflight <- struct{}{}
	}
	answer := httptest.NewRecorder()
	c.ServeHTTP(answer, httptest.NewRequest("POST", "/api/order-matcher/orders", nil))
	if text := answer.Body.String(); answer.Code != 503 || !strings.Contains(text, `"BUSY"`) ||
		!strings.Contains(text, `"sequenced":false`) {
		t.Errorf("%d %s", answer.Code, text)
	}
}
