package httpapi

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/ring/must"
)

// TestRequestArrivesAsItCame: method, raw target, body and headers, except the headers of the
// connection.
func TestRequestArrivesAsItCame(t *testing.T) {
	leader := newScriptedLeader(t, reply(created))
	r := newFollower(t, "order-matcher", "1", leader.address,
		func(o *RelayOptions) { o.PathPrefix = "/om" })
	large := "[" + goodOrder + "]" + strings.Repeat(" ", 1<<20-2-len(goodOrder))
	for _, tt := range []struct {
		name, method, target, header, body string
		keeps                              []string // lines that arrive
		loses                              []string // headers that do not
	}{
		{"a plain one", "POST", "/orders",
			"Authorization: Bearer abc\r\nContent-Type: application/json\r\n", goodOrder,
			[]string{"Authorization: Bearer abc", "Content-Type: application/json", "Host: x.example:8080",
				headerRelayed + ": 2"},
			[]string{"Transfer-Encoding", "Connection", "User-Agent", "Accept-Encoding"}},
		{"a raw target", "POST", "/om/orders?a=%2F&&b==;\"|{}^`<>&a", "", "", nil,
			[]string{"Content-Type"}},
		{"an empty query", "POST", "/orders?", "", "x", nil, nil},
		{"two question marks", "POST", "/orders??a?b", "", "x", nil, nil},
		{"headers of the connection", "POST", "/orders",
			"Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nKeep-Alive: 1\r\nTE: " +
				"gzip\r\nProxy-Authorization: 1\r\nProxy-Connection: 1\r\n" +
				"Upgrade: h2c\r\nTrailer: A\r\nX-Kept: 1\r\n", "x",
			[]string{"X-Kept: 1"},
			[]string{"Connection", "X-Secret", "Keep-Alive", "Te", "Proxy-Authorization", "Proxy-Connection",
				"Upgrade", "Trailer"}},
		{"repeated and odd headers", "POST", "/orders",
			"X-A: 1\r\nX-A: 2\r\nX-Empty:\r\nX-Utf8: é\ttab\r\nCookie: a=b; c=d\r\n" +
				"User-Agent: me\r\nAccept: text/plain\r\nAccept: */*\r\nAccept-Encoding: " +
				"br\r\nidempotency-key: k\r\n", "x",
			[]string{"X-A: 1", "X-A: 2", "X-Empty: ", "X-Utf8: é\ttab", "Cookie: a=b; c=d", "User-Agent: me",
				"Accept: text/plain", "Accept: */*",
				"Accept-Encoding: br", "idempotency-key: k"}, nil},
		{"no body", "POST", "/orders/ord-1/cancel", "Idempotency-Key: k\r\n", "",
			[]string{"Content-Length: 0", "idempotency-key: k"}, nil},
		{"an expected body", "POST", "/orders", "Expect: 100-continue\r\n", "{}", nil,
			[]string{"Expect"}},
		{"a batch of 1 MiB", "POST", "/orders/batch", "", large,
			[]string{"Content-Length: 1048576"}, nil},
		{"a forged mark", "POST", "/orders", headerMember + ": 9\r\n", "x",
			[]string{headerRelayed + ": 2"}, nil},
		{"bytes that are no text", "POST", "/orders", "", "\x00\xff\r\n\r\nGET /", nil, nil},
		{"a confirmed read", "GET", "/orders?status=open", headerConsistency + ": confirmed\r\n", "",
			[]string{headerConsistency + ": confirmed"}, []string{"Content-Length"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(leader.requests())
			conn := must.Get(net.Dial("tcp", r.address))(t)
			defer conn.Close()
			text := tt.method + " " + tt.target + " HTTP/1.1\r\nHost: x.example:8080\r\n" + tt.header
			if tt.method == "POST" {
				text += "Content-Length: " + itoa(uint64(len(tt.body))) + "\r\n"
			}
			must.Get(io.WriteString(conn, text+"\r\n"+tt.body))(t)
			br := bufio.NewReader(conn)
			a := readAnswer(t, br, tt.method)
			if a.status == 100 {
				a = readAnswer(t, br, tt.method)
			}
			a.from(t, "1").want(t, 201, "")
			got := leader.requests()[before:]
			if len(got) != 1 || got[0].line != tt.method+" "+tt.target+" HTTP/1.1" ||
				got[0].body != tt.body {
				t.Fatalf("the leader got %d requests: %.300q", len(got), got)
			}
			for _, line := range tt.keeps {
				if !slices.Contains(got[0].header, line) {
					t.Errorf("%q is not in %q", line, got[0].header)
				}
			}
			for _, name := range tt.loses {
				if value := got[0].value(name); value != "-" {
					t.Errorf("%s: %q arrives", name, value)
				}
			}
		})
	}
}

// TestChunkedBodyIsHandedOnWhole with a length.
func TestChunkedBodyIsHandedOnWhole(t *testing.T) {
	leader := newScriptedLeader(t, reply(created))
	r := newFollower(t, "order-matcher", "1", leader.address)
	got := r.rawExchange(postOrder("Connection: close\r\nTransfer-Encoding: chunked\r\n",
		"5\r\n{\"a\":\r\n2\r\n1}\r\n0\r\n\r\n"))
	if !strings.HasPrefix(string(got), "HTTP/1.1 201") {
		t.Errorf("%q", got)
	}
	if q := leader.requests()[0]; q.body != `{"a":1}` || q.value("Content-Length") != "7" ||
		q.value("Transfer-Encoding") != "-" {
		t.Errorf("%+v", q)
	}
}

// TestAnswerComesBackAsItIs: status, headers, body; the connections are the relay's own.
func TestAnswerComesBackAsItIs(t *testing.T) {
	big := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: it streams
	for _, tt := range []struct {
		name, raw string
		status    int
		header    map[string][]string
		body      string
	}{
		{"a decision", created, 201, map[string][]string{"Content-Type": {contentJSON},
			"X-Durability": {"quorum"}}, `{"orderId":"ord-1"}`},
		{"another durability", raw(200, "X-Durability: fsync\r\nX-Member: 7\r\n", "{}"), 200,
			map[string][]string{"X-Durability": {"fsync"}, "X-Member": {"7"}}, "{}"},
		{"no name", raw(200, "", "{}"), 200,
			map[string][]string{"X-Member": {"1"}, "Content-Type": nil}, "{}"},
		{"no body", raw(202, "", ""), 202, nil, ""},
		{"401", raw(401, "Www-Authenticate: Bearer\r\n", "{}"), 401,
			map[string][]string{"Www-Authenticate": {"Bearer"}}, "{}"},
		{"409", rawProblem(409, ""), 409, map[string][]string{"Content-Type": {contentProblem}}, ""},
		{"429", raw(429, "Retry-After: 7\r\n", "{}"), 429,
			map[string][]string{"Retry-After": {"7"}}, "{}"},
		{"500", rawProblem(500, ""), 500, nil, ""},
		{"503, overloaded", rawProblem(503, `,"code":"OVERLOADED","sequenced":false`), 503, nil, ""},
		{"503, outcome unknown", rawProblem(503, `,"code":"NOT_LEADER"`), 503, nil, ""},
		{"503, sequenced", rawProblem(503, `,"code":"NOT_LEADER","sequenced":true`), 503, nil, ""},
		{"503, no JSON", raw(503, "", "oops"), 503, nil, "oops"},
		{"503, an array", raw(503, "", "[]"), 503, nil, "[]"},
		{"504", rawProblem(504, `,"code":"OUTCOME_UNKNOWN"`), 504, nil, ""},
		{"headers of the connection", raw(200,
			"Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: "+
				"x\r\nUpgrade: h2\r\nX-Yours: 1\r\n", "{}"), 200,
			map[string][]string{"Keep-Alive": nil, "X-Mine": nil, "Proxy-Connection": nil, "Upgrade": nil,
				"X-Yours": {"1"}}, "{}"},
		{"repeated headers", raw(200, "X-A: 1\r\nX-A: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n", "{}"),
			200,
			map[string][]string{"X-A": {"1", "2"}, "Set-Cookie": {"a=1", "b=2"}}, "{}"},
		{"a coding that is not ours to undo", raw(200, "Content-Encoding: gzip\r\n", "no gzip"), 200,
			map[string][]string{"Content-Encoding": {"gzip"}}, "no gzip"},
		{"64 KiB", raw(200, "", big[:64<<10]), 200, nil, big[:64<<10]},
		{"64 KiB and a byte", raw(200, "", big[:64<<10+1]), 200, nil, big[:64<<10+1]},
		{"1 MiB", raw(200, "", big), 200, map[string][]string{"Content-Length": {"1048576"}}, big},
		{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 200,
			nil, "hello"},
		{"an announcement", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + created, 201, nil,
			`{"orderId":"ord-1"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leader := newScriptedLeader(t, reply(tt.raw))
			r := newFollower(t, "order-matcher", "1", leader.address)
			for n := range 2 {
				a := roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder})
				if a.status != tt.status || tt.body != "" && string(a.body) != tt.body ||
					a.header.Get("Server") != "" {
					t.Fatalf("%d %v %.200q", a.status, a.header, a.body)
				}
				for name, want := range tt.header {
					if got := a.header.Values(name); !slices.Equal(got, want) {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if asked := len(leader.requests()); asked != n+1 {
					t.Errorf("asked %d times for %d requests", asked, n+1)
				}
			}
		})
	}
}

// TestNotSequencedIsAskedOnceMore, of the leader that is known then, and not a third time.
func TestNotSequencedIsAskedOnceMore(t *testing.T) {
	deciding := newScriptedLeader(t, reply(created))
	engine := newRig(t)
	for _, tt := range []struct {
		name   string
		second func(c *fakeCluster) // what this member sees when the first leader refuses
		member string
		status int
		code   Code
		asked  [2]int
	}{
		{"another leader", func(c *fakeCluster) {
			c.leader, c.addresses = "3", map[string]string{"order-matcher": deciding.address}
		}, "1", 201, "", [2]int{1, 1}},
		{"the same leader", func(*fakeCluster) {}, "1", 503, CodeNotLeader, [2]int{2, 0}},
		{"no leader", func(c *fakeCluster) { c.leader, c.addresses = "", nil }, "2", 503, CodeNoLeader,
			[2]int{1, 0}},
		{"this member leads", func(c *fakeCluster) { c.leads, c.leader = true, "2" }, "2", 201, "",
			[2]int{1, 0}},
		{"this member is about to lead", func(c *fakeCluster) { c.leader = "2" }, "2", 503, CodeNoLeader,
			[2]int{1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRelayRig(t, "order-matcher", "2", nil, nil)
			r.relay.Swap(engine.m)
			refusing := newScriptedLeader(t, func(c net.Conn, q handed) bool {
				r.cluster.set(tt.second)
				return reply(notLeader)(c, q)
			})
			r.cluster.lead("1", map[string]string{"order-matcher": refusing.address})
			before := len(deciding.requests())
			a := roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder}).from(t,
				tt.member).want(t, tt.status, tt.code)
			if a.status == 503 && a.field(t, "sequenced") != false {
				t.Errorf("%s", a.body)
			}
			if asked := [2]int{len(refusing.requests()),
				len(deciding.requests()) - before}; asked != tt.asked {
				t.Errorf("asked %v, want %v", asked, tt.asked)
			}
		})
	}
}

// TestMembersThatTakeEachOtherForTheLeader do not send a request round in circles.
func TestMembersThatTakeEachOtherForTheLeader(t *testing.T) {
	a := newRelayRig(t, "trade-processor", "1", nil, nil)
	b := newRelayRig(t, "trade-processor", "2", nil, nil)
	a.cluster.lead("2", map[string]string{"trade-processor": b.address})
	b.cluster.lead("1", map[string]string{"trade-processor": a.address})
	looks := 0
	b.cluster.set(func(c *fakeCluster) { c.onLeader = func() { looks++ } })
	got := a.call(request{method: "GET", path: "/trades"}).from(t, "2").want(t, 503, CodeNotLeader)
	if got.field(t, "leader") != "1" || got.field(t, "sequenced") != false ||
		got.header.Get("Retry-After") != "1" {
		t.Errorf("%v %s", got.header, got.body)
	}
	if looks != 2 {
		t.Errorf("the other member was asked %d times, want 2", looks)
	}
	got = a.call(request{method: "GET", path: "/trades",
		header: map[string]string{headerRelayed: a.cluster.Member()}}).from(t, "1")
	got.want(t, 503, CodeNotLeader)
}

// certificates makes a server's TLS settings and the pool that trusts them.
func certificates(t testing.TB) (server *tls.Config, roots *x509.CertPool) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template,
		&key.PublicKey, key))(t)
	roots = x509.NewCertPool()
	roots.AddCert(must.Get(x509.ParseCertificate(der))(t))
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		NextProtos: []string{"h2", "http/1.1"}}, roots
}

// TestRelayOverTLS: the leader's services have a certificate. A leader with an untrusted one cannot
// be reached.
func TestRelayOverTLS(t *testing.T) {
	server, roots := certificates(t)
	_, strangers := certificates(t)
	engine := newRig(t)
	leader := newRelayRig(t, "order-matcher", "1", nil,
		func(ln net.Listener) net.Listener { return tls.NewListener(ln, server) })
	leader.cluster.lead("1", nil)
	leader.relay.Swap(engine.m)
	body := "[" + goodOrder + "]" + strings.Repeat(" ", 1<<20-2-len(goodOrder))
	for _, tt := range []struct {
		name   string
		config *tls.Config
		status int
		code   Code
	}{
		{"trusted", &tls.Config{RootCAs: roots, NextProtos: []string{"h2"}}, 201, ""},
		{"not trusted", &tls.Config{RootCAs: strangers}, 503, CodeNoLeader},
		{"another name", &tls.Config{RootCAs: roots, ServerName: "elsewhere"}, 503, CodeNoLeader},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newFollower(t, "order-matcher", "1", leader.address,
				func(o *RelayOptions) { o.TLS = tt.config })
			before := engine.sequence()
			for range 2 {
				r.call(request{method: "POST", path: "/orders/batch", body: body}).want(t, tt.status, tt.code)
			}
			if decided := engine.sequence() - before; decided != map[int]uint64{201: 2}[tt.status] {
				t.Errorf("%d orders decided", decided)
			}
		})
	}
	t.Run("plain to a TLS port", func(t *testing.T) {
		r := newFollower(t, "order-matcher", "1", leader.address)
		before := engine.sequence()
		a := roundTrip(t, r.address, request{method: "POST", path: "/orders", body: goodOrder})
		if a.status < 400 || engine.sequence() != before {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

// TestTypedHeaders pins what the two HTTP libraries must agree on.
func TestTypedHeaders(t *testing.T) {
	for _, name := range []string{headerMember, headerRelayed, headerConsistency} {
		if http.CanonicalHeaderKey(name) != name {
			t.Errorf("%s is not in canonical form", name)
		}
	}
}
