package httpapi

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"posttrade/ring/must"
)

// wire is a raw connection to a rig's server.
type wire struct {
	t    testing.TB
	conn net.Conn
	br   *bufio.Reader
}

func (r *rig) dial() *wire {
	r.t.Helper()
	conn := must.Get(net.Dial("tcp", r.address))(r.t)
	r.t.Cleanup(func() { conn.Close() })
	must.OK(r.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	return &wire{t: r.t, conn: conn, br: bufio.NewReaderSize(conn, 1<<16)}
}

func (w *wire) send(text string) {
	w.t.Helper()
	must.Get(io.WriteString(w.conn, text))(w.t)
}

func (w *wire) receive(method string) answer {
	w.t.Helper()
	return readAnswer(w.t, w.br, method)
}

// closed checks that the server has closed the connection and sent nothing more.
func (w *wire) closed() {
	w.t.Helper()
	rest, err := io.ReadAll(w.br)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		w.t.Fatalf("waiting for the close: %v", err)
	}
	if len(rest) > 0 {
		w.t.Fatalf("%d more bytes behind the last answer: %.200q", len(rest), rest)
	}
}

const healthy = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n"

func postOrder(headers, body string) string {
	return "POST /orders HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body
}

// hostile are requests that are answered with 400 (or the status before them) and a closed
// connection, whatever follows them.
var hostile = []struct {
	name   string
	status int
	raw    string
}{
	{"length and chunked", 400, postOrder("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
		"0\r\n\r\n")},
	{"chunked and length", 400, postOrder("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
		"0\r\n\r\n")},
	{"two equal lengths", 400, postOrder("Content-Length: 2\r\nContent-Length: 2\r\n", "{}")},
	{"two different lengths", 400, postOrder("Content-Length: 2\r\nContent-Length: 3\r\n", "{} ")},
	{"a list of lengths", 400, postOrder("Content-Length: 2, 2\r\n", "{}")},
	{"a signed length", 400, postOrder("Content-Length: +2\r\n", "{}")},
	{"a negative length", 400, postOrder("Content-Length: -2\r\n", "{}")},
	{"a hexadecimal length", 400, postOrder("Content-Length: 0x2\r\n", "{}")},
	{"an empty length", 400, postOrder("Content-Length:\r\n", "{}")},
	{"a length beyond 64 bits", 400, postOrder("Content-Length: 99999999999999999999\r\n", "{}")},
	{"a space before the colon", 400, postOrder("Content-Length : 2\r\n", "{}")},
	{"an unknown coding", 400, postOrder("Transfer-Encoding: gzip\r\n", "")},
	{"two codings", 400, postOrder("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n")},
	{"identity", 400, postOrder("Transfer-Encoding: identity\r\n", "")},
	{"chunked twice", 400, postOrder("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
		"0\r\n\r\n")},
	{"xchunked", 400, postOrder("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n")},
	{"a vertical tab in the coding", 400,
		postOrder("Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n")},
	{"chunked in HTTP/1.0", 400,
		"POST /orders HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
	{"a bare LF behind the request line", 400, "GET /health HTTP/1.1\nHost: x\r\n\r\n"},
	{"a bare LF behind a header", 400, "GET /health HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
	{"a bare LF at the end", 400, "GET /health HTTP/1.1\r\nHost: x\r\n\n"},
	{"bare LFs alone", 400, "GET /health HTTP/1.1\nHost: x\n\n"},
	{"a bare CR in a header", 400, "GET /health HTTP/1.1\r\nHost: x\rA: b\r\n\r\n"},
	{"a folded header", 400, "GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"},
	{"a header folded by a tab", 400, "GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n"},
	{"a space before the first header", 400, "GET /health HTTP/1.1\r\n Host: x\r\n\r\n"},
	{"a header without a colon", 400, "GET /health HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n"},
	{"a header without a name", 400, "GET /health HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"},
	{"a NUL in a name", 400, "GET /health HTTP/1.1\r\nHost: x\r\nA\x00: b\r\n\r\n"},
	{"a NUL in a value", 400, "GET /health HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n"},
	{"no host", 400, "GET /health HTTP/1.1\r\n\r\n"},
	{"two hosts", 400, "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"},
	{"two tokens", 400,
		"GET /health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n"},
	{"two content types", 400, postOrder(
		"Content-Type: application/json\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n", "")},
	{"HTTP/0.9", 400, "GET /health\r\n\r\n"},
	{"HTTP/1.2", 400, "GET /health HTTP/1.2\r\nHost: x\r\n\r\n"},
	{"HTTP/2.0", 400, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	{"HTTP/9.9", 400, "GET /health HTTP/9.9\r\nHost: x\r\n\r\n"},
	{"a lower-case version", 400, "GET /health http/1.1\r\nHost: x\r\n\r\n"},
	{"a space behind the version", 400, "GET /health HTTP/1.1 \r\nHost: x\r\n\r\n"},
	{"two spaces", 400, "GET  /health HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a tab", 400, "GET\t/health HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"an absolute target", 400, "GET http://y/health HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"an asterisk", 400, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"an authority", 400, "CONNECT y:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a byte above ASCII", 400, "GET /h\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"TLS", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n"},
	{"empty lines", 400, "\r\n\r\n" + healthy},
	{"a chunk size with a sign", 400, postOrder("Transfer-Encoding: chunked\r\n",
		"+2\r\n{}\r\n0\r\n\r\n")},
	{"a chunk extension without a size", 400,
		postOrder("Transfer-Encoding: chunked\r\n", ";a=b\r\n{}\r\n0\r\n\r\n")},
	{"a NUL in a chunk extension", 400,
		postOrder("Transfer-Encoding: chunked\r\n", "2;a=\x00\r\n{}\r\n0\r\n\r\n")},
	{"a chunk extension ended by LF", 400,
		postOrder("Transfer-Encoding: chunked\r\n", "2;a\n{}\r\n0\r\n\r\n")},
	{"a chunk extension with a CR", 400,
		postOrder("Transfer-Encoding: chunked\r\n", "2;a\rb\r\n{}\r\n0\r\n\r\n")},
	{"a long chunk extension", 400, postOrder("Transfer-Encoding: chunked\r\n",
		"2;"+strings.Repeat("a", 300)+"\r\n{}\r\n0\r\n\r\n")},
	{"many chunk extensions", 400, postOrder("Transfer-Encoding: chunked\r\n",
		strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\n \r\n", 50))},
	{"a chunk size ended by LF", 400, postOrder("Transfer-Encoding: chunked\r\n",
		"2\n{}\r\n0\r\n\r\n")},
	{"a chunk size of nine digits", 400,
		postOrder("Transfer-Encoding: chunked\r\n", "100000002\r\n{}\r\n0\r\n\r\n")},
	{"an empty chunk size", 400, postOrder("Transfer-Encoding: chunked\r\n", "\r\n{}\r\n0\r\n\r\n")},
	{"a long chunk size line", 400, postOrder("Transfer-Encoding: chunked\r\n",
		strings.Repeat("0", 20))},
	{"a chunk without CRLF", 400, postOrder("Transfer-Encoding: chunked\r\n", "2\r\n{}0\r\n\r\n")},
	{"a chunk ended by LF", 400, postOrder("Transfer-Encoding: chunked\r\n", "2\r\n{}\n0\r\n\r\n")},
	{"a trailer", 400, postOrder("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\nA: b\r\n\r\n")},
	{"a URI of 4097 bytes", 414, "GET /" + strings.Repeat("a", 4096) + " HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a URI without an end", 414, "GET /" + strings.Repeat("a", 9000)},
	{"a method without an end", 400, strings.Repeat("A", 9000)},
	{"a header block of more than 8192 bytes", 431,
		"GET /health HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 8192) + "\r\n\r\n"},
	{"many small headers", 431, "GET /health HTTP/1.1\r\nHost: x\r\n" +
		strings.Repeat("A: b\r\n", 1500) + "\r\n"},
	{"a header without an end", 431, "GET /health HTTP/1.1\r\nHost: x\r\nA: " +
		strings.Repeat("a", 20000)},
	{"a body over 64 KiB", 413, postOrder("Content-Length: 65537\r\n", strings.Repeat(" ", 65537))},
	{"a body of a terabyte", 413, postOrder("Content-Length: 1099511627776\r\n", "")},
	{"chunks over 64 KiB", 413, postOrder("Transfer-Encoding: chunked\r\n",
		"10001\r\n"+strings.Repeat(" ", 65537)+"\r\n0\r\n\r\n")},
	{"a batch over 1 MiB", 413,
		"POST /orders/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n" +
			strings.Repeat(" ", 1048577)},
	{"a body over the limit, expected", 413,
		postOrder("Content-Length: 65537\r\nExpect: 100-continue\r\n", "")},
	{"a body over the limit, expected before its length", 413,
		postOrder("expect: 100-Continue\r\nContent-Length: 65537\r\n", "")},
	{"a batch over the limit, expected", 413,
		"POST /orders/batch HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: " +
			"1048577\r\n\r\n"},
}

// TestHostileFramingIsRefusedAndClosed sends each request alone, after a good pipelined one, and
// byte by byte; a second, good request after it is never answered.
func TestHostileFramingIsRefusedAndClosed(t *testing.T) {
	r := newRig(t)
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			for _, mode := range []string{"alone", "pipelined", "trickled"} {
				if mode == "trickled" && len(tt.raw) > 300 {
					continue
				}
				before := r.sequence()
				w := r.dial()
				switch mode {
				case "alone":
					w.send(tt.raw + healthy)
				case "pipelined":
					w.send(healthy + healthy + tt.raw + healthy)
					w.receive("GET").want(t, 200, "")
					w.receive("GET").want(t, 200, "")
				case "trickled":
					for i := range len(tt.raw) {
						if _, err := io.WriteString(w.conn, tt.raw[i:i+1]); err != nil {
							break // it was refused before its end
						}
					}
				}
				a := w.receive("POST")
				// No body of these is ever asked for: a 100 would be the wrong status.
				if a.status != tt.status {
					t.Errorf("%s: status %d, want %d: %s", mode, a.status, tt.status, a.body)
				}
				if a.header.Get("Content-Type") != contentProblem || a.field(t, "title") == "" {
					t.Errorf("%s: no problem document: %v %s", mode, a.header, a.body)
				}
				if !a.closes {
					t.Errorf("%s: the answer does not say that it is the last", mode)
				}
				w.closed()
				if r.sequence() != before {
					t.Errorf("%s: sequenced something", mode)
				}
			}
		})
	}
	r.t = t
	r.get("/health", "").want(t, 200, "")
}

// tolerated are unusual requests that are accepted.
var tolerated = []struct {
	name   string
	status int
	raw    string
}{
	{"an empty line in front", 200, "\r\n" + healthy},
	{"HTTP/1.0", 200, "GET /health HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\n\r\n"},
	{"an empty header value", 200, "GET /health HTTP/1.1\r\nHost: x\r\nA:\r\n\r\n"},
	{"chunks", 201, postOrder("Transfer-Encoding: chunked\r\n",
		"5\r\n"+goodOrder[:5]+"\r\n"+hexLen(goodOrder[5:])+"\r\n"+goodOrder[5:]+"\r\n0\r\n\r\n")},
	{"chunk extensions", 201, postOrder("Transfer-Encoding: chunked\r\n",
		hexLen(goodOrder)+";a;b=c;d=\"e;f\"\r\n"+goodOrder+"\r\n0;last\r\n\r\n")},
	{"Chunked in capitals", 201, postOrder("TRANSFER-ENCODING: Chunked\r\n",
		hexLen(goodOrder)+"\r\n"+goodOrder+"\r\n0\r\n\r\n")},
	{"a body in a GET", 200, "GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"},
	{"a URI of 4096 bytes", 200, "GET /health?" + strings.Repeat("a", 4096-8) +
		" HTTP/1.1\r\nHost: x\r\n\r\n"},
	{"a header block of 8192 bytes", 200,
		"GET /health HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 8192-9-5-2) + "\r\n\r\n"},
	{"a body of 64 KiB", 201, postOrder("Content-Length: 65536\r\n",
		goodOrder+strings.Repeat(" ", 65536-len(goodOrder)))},
	{"the batch beside its own size", 201,
		"POST /orders/batch HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n[" + goodOrder + "]" +
			strings.Repeat(" ", 1048576-2-len(goodOrder))},
	{"no content type", 201, postOrder(
		"Content-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder)},
	{"a content type with charset", 201,
		postOrder("Content-Type: Application/JSON; charset=UTF-8\r\nContent-Length: "+itoa(
			uint64(len(goodOrder)))+"\r\n", goodOrder)},
	{"another content type", 415, postOrder(
		"Content-Type: text/plain\r\nContent-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder)},
	{"another charset", 415, postOrder(
		"Content-Type: application/json; charset=latin1\r\nContent-Length: "+itoa(
			uint64(len(goodOrder)))+"\r\n", goodOrder)},
	{"a compressed body", 415, postOrder(
		"Content-Encoding: gzip\r\nContent-Length: "+itoa(uint64(len(goodOrder)))+"\r\n", goodOrder)},
}

func hexLen(s string) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[len(s)>>8&15], digits[len(s)>>4&15], digits[len(s)&15]})
}

// TestUnusualFramingKeepsItsBounds pipelines each request twice and a third one after them: all are
// answered, in order, so every body ended where it should.
func TestUnusualFramingKeepsItsBounds(t *testing.T) {
	r := newRig(t)
	for _, tt := range tolerated {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			w := r.dial()
			go func() { io.WriteString(w.conn, tt.raw+tt.raw+healthy) }()
			for range 2 {
				w.receive("POST").want(t, tt.status, "")
			}
			if a := w.receive("GET").want(t, 200, ""); a.field(t, "service") != "order-matcher" {
				t.Errorf("the request behind it is answered %s", a.body)
			}
		})
	}
}

// TestTransportAnswers meets the statuses that are answered before any handler.
func TestTransportAnswers(t *testing.T) {
	r := newRig(t)
	for _, path := range bodied {
		r.call(request{method: "POST", path: path, body: "{}", token: r.token("admin"),
			header: map[string]string{"Content-Type": "text/xml"}}).want(t, 415, CodeUnsupportedMediaType)
	}
	a := r.call(request{method: "PATCH", path: "/orders"}).want(t, 405, CodeMethodNotAllowed)
	if allow := a.header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow: %q", allow)
	}
	if a := r.call(request{method: "GET", path: "/trades"}).want(t, 405,
		""); a.header.Get("Allow") != "POST" {
		t.Errorf("Allow: %q", a.header.Get("Allow"))
	}
}

// FuzzRawRequest feeds a connection any bytes. The server survives, net/http reads every request
// that the server accepts as the same request, and all other input gets a 4xx.
func FuzzRawRequest(f *testing.F) {
	for _, tt := range hostile {
		if len(tt.raw) < 400 {
			f.Add([]byte(tt.raw), uint8(7))
		}
	}
	for _, tt := range tolerated {
		if len(tt.raw) < 400 {
			f.Add([]byte(tt.raw+healthy), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, step uint8) {
		var seen []string
		s := newServer(serverConfig{
			handler: func(ctx *fasthttp.RequestCtx) {
				seen = append(seen, string(ctx.Method())+" "+string(ctx.Request.Header.RequestURI())+" "+string(
					ctx.Request.Body()))
			},
			bodyLimit: func([]byte) int { return maxBodyBytes },
		})
		conn := &scriptedConn{input: raw, step: int(step) + 1}
		if err := s.http.ServeConn(newFramedConn(conn)); err != nil && s.refused.Load() == 0 {
			t.Errorf("served with %v and no refusal counted", err)
		}
		if n := s.panics.Load(); n != 0 {
			t.Fatalf("%d panics", n)
		}
		br := bufio.NewReader(strings.NewReader(string(raw)))
		for _, got := range seen {
			if lead, _ := br.Peek(2); string(lead) == "\r\n" {
				br.Discard(2) // RFC 9112 section 2.2, which net/http does not implement
			}
			req, err := http.ReadRequest(br)
			if err != nil {
				t.Fatalf("let through %q, net/http says %v", got, err)
			}
			body, err := io.ReadAll(req.Body)
			if err != nil {
				t.Fatalf("let through %q, net/http says of its body %v", got, err)
			}
			if want := req.Method + " " + req.RequestURI + " " + string(body); got != want {
				t.Fatalf("read %q, net/http reads %q", got, want)
			}
		}
	})
}

// scriptedConn is a connection that brings its input in steps and then ends.
type scriptedConn struct {
	net.Conn
	input  []byte
	step   int
	output []byte
}

func (c *scriptedConn) Read(p []byte) (int, error) {
	if len(c.input) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.input[:min(len(c.input), c.step)])
	c.input = c.input[n:]
	return n, nil
}

func (c *scriptedConn) Write(p []byte) (int, error) {
	c.output = append(c.output, p...)
	return len(p), nil
}

func (c *scriptedConn) Close() error                     { return nil }
func (c *scriptedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *scriptedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *scriptedConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptedConn) SetWriteDeadline(time.Time) error { return nil }
