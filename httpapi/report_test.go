package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp"

	"posttrade/ring/must"
)

// fetched is a report as it arrived, with what came after the body.
type fetched struct {
	answer
	trailer http.Header
	err     error // of reading the body
}

// fetch asks for a report over a connection of its own.
func (r *rig) fetch(query string, header map[string]string) fetched {
	r.t.Helper()
	return r.fetchAt(r.address, query, header)
}

func (r *rig) fetchAt(address, query string, header map[string]string) fetched {
	r.t.Helper()
	return fetchFrom(r.t, address, "/regulatory/report"+query, r.token("admin"), header)
}

// fetchFrom asks for a streamed answer over a connection of its own.
func fetchFrom(t testing.TB, address, target, token string, header map[string]string) fetched {
	t.Helper()
	conn, resp := askFor(t, address, target, token, header)
	defer conn.Close()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fetched{answer{status: resp.StatusCode, header: resp.Header, body: body}, resp.Trailer, err}
}

// ask asks for a report and reads the head of the answer.
func (r *rig) ask(query string, header map[string]string) (net.Conn, *http.Response) {
	r.t.Helper()
	return r.askAt(r.address, query, header)
}

func (r *rig) askAt(address, query string, header map[string]string) (net.Conn, *http.Response) {
	r.t.Helper()
	return askFor(r.t, address, "/regulatory/report"+query, r.token("admin"), header)
}

// askFor asks for a streamed answer and reads its head.
func askFor(t testing.TB, address, target, token string, header map[string]string) (net.Conn,
	*http.Response) {
	t.Helper()
	conn := must.Get(net.Dial("tcp", address))(t)
	must.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	text := "GET " + target + " HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer " + token + "\r\n"
	for name, value := range header {
		text += name + ": " + value + "\r\n"
	}
	must.Get(conn.Write([]byte(text + "\r\n")))(t)
	resp := must.Get(http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "GET"}))(t)
	return conn, resp
}

// unpack undoes the coding that an answer names.
func (a answer) unpack(t testing.TB) []byte {
	t.Helper()
	var plain io.Reader = bytes.NewReader(a.body)
	switch a.header.Get("Content-Encoding") {
	case "":
	case "gzip":
		plain = must.Get(gzip.NewReader(plain))(t)
	case "zstd":
		d := must.Get(zstd.NewReader(plain))(t)
		defer d.Close()
		plain = d
	default:
		t.Fatalf("coding %q", a.header.Get("Content-Encoding"))
	}
	return must.Get(io.ReadAll(plain))(t)
}

func TestReportIsWhatTheContractSays(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct {
		query    string
		from, to uint64
	}{
		{"", 1, 5}, {"?fromSeq=2", 2, 5}, {"?toSeq=3", 1, 3}, {"?fromSeq=4&toSeq=4", 4, 4},
		{"?fromSeq=1&toSeq=99", 1, 5}, {"?fromSeq=5", 5, 5},
		{"?toSeq=9223372036854775808", 1, 5}, {"?toSeq=18446744073709551615", 1, 5},
	} {
		one := r.fetch(tt.query, nil)
		if one.err != nil || one.status != 200 || string(one.body) != wantReport(tt.from, tt.to) {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", tt.query, one.status, one.err, one.body,
				wantReport(tt.from, tt.to))
		}
		matcherAPI.checkAnswer(t, "GET", "/regulatory/report", one.answer)
		lines := r.fetch(tt.query, map[string]string{"Accept": "application/x-ndjson"})
		if lines.err != nil || lines.header.Get("Content-Type") != contentNDJSON ||
			string(lines.body) != wantLines(tt.from, tt.to) {
			t.Errorf("%s: %v\n%s", tt.query, lines.err, lines.body)
		}
		matcherAPI.checkAnswer(t, "GET", "/regulatory/report", lines.answer)
		for _, a := range []fetched{one, lines} {
			if a.header.Get(headerReportFrom) != itoa(tt.from) ||
				a.header.Get(headerReportTo) != itoa(tt.to) {
				t.Errorf("%s: header %v", tt.query, a.header)
			}
			if sum := a.trailer.Get(headerReportSHA256); !strings.Contains(wantReport(tt.from, tt.to),
				`"sha256":"`+sum+`"`) || len(sum) != 64 {
				t.Errorf("%s: trailer %v", tt.query, a.trailer)
			}
			if count := a.trailer.Get(headerReportCount); !strings.Contains(wantReport(tt.from, tt.to),
				`"count":`+count+`,`) {
				t.Errorf("%s: trailer %v", tt.query, a.trailer)
			}
		}
	}
}

// TestReportIsCompressedAsAsked: q values decide first, then the server's own order.
func TestReportIsCompressedAsAsked(t *testing.T) {
	r := newRig(t)
	for _, tt := range []struct{ accept, coding string }{
		{"", ""}, {"zstd", "zstd"}, {"gzip", "gzip"}, {"zstd, gzip", "zstd"}, {"gzip, zstd", "zstd"},
		{"gzip;q=1, zstd;q=0.5", "gzip"},
		{"gzip;q=0", ""}, {"zstd;q=0, gzip", "gzip"}, {"*", "zstd"}, {"*;q=0", ""},
		{"zstd;q=0, *", "gzip"}, {"identity, gzip;q=0.5", ""},
		{"identity;q=0.5, gzip;q=0.5", "gzip"}, {"GZIP", "gzip"}, {"br, deflate", ""},
		{"gzip;q=0.001", "gzip"}, {"gzip;q=0.0001", ""},
		{"gzip;q=x", ""}, {"gzip;q=1.001", ""}, {" gzip ; q=1.000 ", "gzip"},
	} {
		for _, lines := range []bool{false, true} {
			header, want := map[string]string{}, wantReport(1, 5)
			if tt.accept != "" {
				header["Accept-Encoding"] = tt.accept
			}
			if lines {
				header["Accept"], want = contentNDJSON, wantLines(1, 5)
			}
			a := r.fetch("", header)
			if a.err != nil || a.header.Get("Content-Encoding") != tt.coding || string(a.unpack(t)) != want {
				t.Errorf("Accept-Encoding %q: coding %q, want %q; %v", tt.accept,
					a.header.Get("Content-Encoding"), tt.coding, a.err)
			}
		}
	}
}

func TestPreferReadsWeights(t *testing.T) {
	for _, tt := range []struct {
		values []string
		want   int
	}{
		{nil, -1}, {[]string{""}, -1}, {[]string{"*/*"}, 0}, {[]string{"b/x"}, 1},
		{[]string{"b/*, a/x;q=0.9"}, 1}, {[]string{"a/x;q=0.9", "b/x"}, 1},
		{[]string{"*/*, a/x;q=0"}, 1}, {[]string{"b/*;q=0.2, b/x;q=0.8, a/*;q=0.5"}, 1},
		{[]string{"a/y, c/x"}, -1}, {[]string{"*"}, -1},
		{[]string{"a/x;q=0, */*"}, 1}, {[]string{"b/x;q=0.8, b/*;q=0.2, a/*;q=0.5"}, 1},
		{[]string{"*/*;q=0.1", "b/x"}, 1},
		{[]string{"A/X;Q=0.3, b/x;q=0.2"}, 0}, {[]string{"a/x;level=1;q=0.1, b/x;q=0.2"}, 1},
		{[]string{";;,=,q=1"}, -1},
	} {
		var h fasthttp.RequestHeader
		for _, v := range tt.values {
			h.Add("Accept", v)
		}
		if got := prefer(&h, "Accept", "a/x", "b/x"); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.values, got, tt.want)
		}
	}
}

// TestCutReportIsNoReport: after the first record an error cannot have a status, so the connection
// must end before the end of the answer.
func TestCutReportIsNoReport(t *testing.T) {
	for _, accept := range []string{contentJSON, contentNDJSON} {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			for _, at := range []int{0, 1, 2} {
				t.Run(fmt.Sprintf("%s/%s/%d", accept, coding, at), func(t *testing.T) {
					r := newRig(t)
					r.report.each = func(_ context.Context, n int) error {
						if n == at {
							return errPlanted
						}
						return nil
					}
					a := r.fetch("", map[string]string{"Accept": accept, "Accept-Encoding": coding})
					if at == 0 {
						a.want(t, 500, CodeInternal)
						return
					}
					if a.status != 200 || !errors.Is(a.err, io.ErrUnexpectedEOF) ||
						a.trailer.Get(headerReportCount) != "" {
						t.Errorf("%d %v trailer %v: %q", a.status, a.err, a.trailer, a.body)
					}
					r.get("/health", "").want(t, 200, "")
				})
			}
		}
	}
}

// TestPanickingReportIsCut, also when it has not begun.
func TestPanickingReportIsCut(t *testing.T) {
	r := newRig(t)
	for at := range 2 {
		r.report.each = func(_ context.Context, n int) error {
			if n == at {
				panic("planted")
			}
			return nil
		}
		a := r.fetch("", nil)
		if at == 0 {
			a.want(t, 500, CodeInternal)
		} else if !errors.Is(a.err, io.ErrUnexpectedEOF) {
			t.Errorf("%d %v", a.status, a.err)
		}
		if n := r.m.server.panics.Load(); n != uint64(at+1) {
			t.Errorf("%d panics", n)
		}
	}
}

func TestReportNeedsChunks(t *testing.T) {
	r := newRig(t)
	w := r.dial()
	w.send("GET /regulatory/report HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer " +
		r.token("admin") + "\r\n\r\n")
	w.receive("GET").want(t, 400, CodeBadRequest)
	if r.report.calls.Load() != 0 {
		t.Error("the report was made")
	}
}

// TestLongReportIsFlatAndWhole measures live memory in the middle of a report that is far larger.
func TestLongReportIsFlatAndWhole(t *testing.T) {
	r := newRig(t)
	r.report.head = 80_000 // records, about 190 bytes each
	alive := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, coding := range []string{"identity", "gzip", "zstd"} {
		before, middle := alive(), int64(0)
		r.report.each = func(_ context.Context, n int) error {
			if n == 30_000 {
				middle = alive()
			}
			return nil
		}
		conn, resp := r.ask("", map[string]string{"Accept-Encoding": coding})
		if n, err := io.Copy(io.Discard, resp.Body); err != nil || middle-before > 8<<20 {
			t.Errorf("%s: after %d bytes %d more are alive in the middle: %v", coding, n, middle-before, err)
		}
		if count := resp.Trailer.Get(headerReportCount); count != "80000" {
			t.Errorf("%s: count %q", coding, count)
		}
		conn.Close()
	}
}

// TestSlowReportOutlivesTheWriteTimeout: each piece has a time-out of its own.
func TestSlowReportOutlivesTheWriteTimeout(t *testing.T) {
	r := newRig(t)
	const timeout = 500 * time.Millisecond
	r.serve(func(*Deps) {}, func(m *OrderMatcher) { m.server.http.WriteTimeout = timeout })
	r.report.head = 2
	r.report.each = func(context.Context, int) error {
		<-time.After(timeout * 3 / 2)
		return nil
	}
	if a := r.fetch("", nil); a.err != nil || string(a.body) != wantReport(1, 2) {
		t.Errorf("%d %v %s", a.status, a.err, a.body)
	}
}

// TestStalledReaderIsDropped: the report ends, and so does the engine that it holds.
func TestStalledReaderIsDropped(t *testing.T) {
	r := newRig(t)
	r.serve(func(*Deps) {}, func(m *OrderMatcher) {
		m.server.http.WriteTimeout = 100 * time.Millisecond
	})
	r.report.head = 1 << 40
	conn, _ := r.ask("", nil) // and reads no further
	defer conn.Close()
	select {
	case err := <-r.report.ended:
		if !errors.Is(err, errReaderGone) && !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the report goes on")
	}
}

// TestGoneReaderEndsTheReport without waiting for a time-out.
func TestGoneReaderEndsTheReport(t *testing.T) {
	r := newRig(t)
	r.report.head = 1 << 40
	conn, _ := r.ask("", nil)
	conn.Close()
	select {
	case <-r.report.ended:
	case <-time.After(time.Minute):
		t.Fatal("the report goes on")
	}
}

// TestShutdownEndsReports: a report under way must not hold the shutdown up, and must not look
// whole.
func TestShutdownEndsReports(t *testing.T) {
	r := newRig(t)
	r.report.head = 1 << 40
	r.report.each = func(ctx context.Context, n int) error {
		if n < 2 {
			return nil
		}
		<-ctx.Done()
		return ctx.Err()
	}
	conn, resp := r.ask("", nil)
	defer conn.Close()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := r.m.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if body, err := io.ReadAll(resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v: %q", err, body)
	}
}

func TestHistoryDocuments(t *testing.T) {
	r := newRig(t)
	a := r.post("/recon/full-history/reindex", "", r.token("admin")).want(t, 200, "")
	if want := `{"indexedTrades":3,"lastSequence":9,"lastTradeSeq":3,"durationMillis":12}`; string(
		a.body) != want {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	if !r.history.life.Load() {
		t.Error("a reindex may take for ever")
	}
	entry := func(n int) string {
		return fmt.Sprintf(`{"id":"trd-%d","tradeSeq":%d,"accountId":1,"security":"AAA","side":"Sell",`+
			`"quantity":5,"price":100.25,`+
			`"execTimeMillis":1772445600000,"orderId":"ord-%d","sequence":%d}`, n, n, n, 4+n)
	}
	for _, tt := range []struct{ query, want string }{
		{"", `{"items":[` + entry(1) + "," + entry(2) + "," + entry(3) + `],"nextSinceSeq":3}`},
		{"?sinceSeq=1&limit=1", `{"items":[` + entry(2) + `],"nextSinceSeq":2}`},
		{"?sinceSeq=3", `{"items":[],"nextSinceSeq":3}`},
	} {
		if a := r.get("/recon/full-history/trades"+tt.query,
			r.token("admin")); string(a.body) != tt.want {
			t.Errorf("%s\nwant %s", a.body, tt.want)
		}
	}
}
