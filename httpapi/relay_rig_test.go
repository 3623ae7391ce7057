package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/ring/must"
)

// apis are the documents by the name of their service.
var apis = map[string]api{
	"order-matcher": matcherAPI, "trade-processor": processorAPI,
	"account-service": accountAPI, "reference-data": referenceAPI,
}

// relayRig is one service of one member: a relay on a real listener.
type relayRig struct {
	t       testing.TB
	relay   *Relay
	cluster *fakeCluster
	address string
	api     api
	stop    func()
}

// newRelayRig starts a member's relay of a service. The member knows of no leader
// yet. wrap, if not nil, changes the listener.
func newRelayRig(t testing.TB, service, member string, change func(o *RelayOptions),
	wrap func(net.Listener) net.Listener) *relayRig {
	t.Helper()
	r := &relayRig{t: t, cluster: &fakeCluster{member: member}, api: apis[service]}
	o := RelayOptions{Cluster: r.cluster, Durability: "quorum",
		Applied: func() uint64 { return 12 }, Durable: func() uint64 { return 11 }}
	if change != nil {
		change(&o)
	}
	r.relay = must.Get(NewRelay(service, o))(t)
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.address = ln.Addr().String()
	if wrap != nil {
		ln = wrap(ln)
	}
	var server sync.WaitGroup
	server.Go(func() {
		if err := r.relay.Serve(ln); err != nil {
			t.Error(err)
		}
	})
	r.stop = sync.OnceFunc(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := r.relay.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		server.Wait()
	})
	t.Cleanup(r.stop)
	return r
}

// follower is a member with another member as the leader, at address.
func newFollower(t testing.TB, service, leader, address string,
	change ...func(o *RelayOptions)) *relayRig {
	t.Helper()
	r := newRelayRig(t, service, "2", func(o *RelayOptions) {
		for _, c := range change {
			c(o)
		}
	}, nil)
	r.cluster.lead(leader, map[string]string{service: address})
	return r
}

// newLeader is member 1, which leads, with a service in its place.
func newLeader(t testing.TB, service string, s RelayedService) *relayRig {
	t.Helper()
	r := newRelayRig(t, service, "1", nil, nil)
	r.cluster.lead("1", map[string]string{service: r.address})
	r.relay.Swap(s)
	return r
}

// call makes one request and checks the answer against the document.
func (r *relayRig) call(q request) answer {
	r.t.Helper()
	a := roundTrip(r.t, r.address, q)
	r.api.checkAnswer(r.t, q.method, q.path, a)
	return a
}

// from checks which member answered.
func (a answer) from(t testing.TB, member string) answer {
	t.Helper()
	if got := a.header.Values(headerMember); len(got) != 1 || got[0] != member {
		t.Errorf("answer %d of member %q, want %s: %s", a.status, got, member, a.body)
	}
	return a
}

// textLog is a logger that writes lines.
func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// handed is a request as the scripted leader received it, byte for byte.
type handed struct {
	line   string
	header []string // the lines, in their order
	body   string
}

// value is the value of a header, in any case; "-" when it is not there.
func (h handed) value(name string) string {
	for _, line := range h.header {
		if key, value, _ := strings.Cut(line, ": "); strings.EqualFold(key, name) {
			return value
		}
	}
	return "-"
}

// scriptedLeader reads requests and handles each as its script says.
type scriptedLeader struct {
	t       testing.TB
	address string

	mu   sync.Mutex
	got  []handed
	more chan struct{} // a value for every request
}

// step handles one request on its connection; false ends the connection.
type step func(c net.Conn, q handed) (goesOn bool)

// reply answers with these bytes and keeps the connection.
func reply(raw string) step {
	return func(c net.Conn, _ handed) bool {
		_, err := io.WriteString(c, raw)
		return err == nil
	}
}

// newScriptedLeader listens. steps[n] handles request n, over all connections; the last step also
// handles all later ones.
func newScriptedLeader(t testing.TB, steps ...step) *scriptedLeader {
	t.Helper()
	ln := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return scriptedOn(t, ln, steps...)
}

func scriptedOn(t testing.TB, ln net.Listener, steps ...step) *scriptedLeader {
	s := &scriptedLeader{t: t, address: ln.Addr().String(), more: make(chan struct{}, 4096)}
	var all sync.WaitGroup
	var conns sync.Map
	all.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			conns.Store(c, true)
			all.Go(func() {
				defer c.Close()
				s.serve(c, steps)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		all.Wait()
	})
	return s
}

func (s *scriptedLeader) serve(c net.Conn, steps []step) {
	for br := bufio.NewReader(c); ; {
		q, ok := readHanded(br)
		if !ok {
			return
		}
		s.mu.Lock()
		n := min(len(s.got), len(steps)-1)
		s.got = append(s.got, q)
		s.mu.Unlock()
		s.more <- struct{}{}
		if !steps[n](c, q) {
			return
		}
	}
}

func readHanded(br *bufio.Reader) (q handed, ok bool) {
	length := 0
	for n := 0; ; n++ {
		line, err := br.ReadString('\n')
		if err != nil {
			return q, false
		}
		line = strings.TrimSuffix(line, "\r\n")
		if line == "" {
			break
		}
		if n == 0 {
			q.line = line
			continue
		}
		q.header = append(q.header, line)
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			length, _ = strconv.Atoi(value)
		}
	}
	body := make([]byte, length)
	_, err := io.ReadFull(br, body)
	q.body = string(body)
	return q, err == nil
}

// requests are what the leader has received so far.
func (s *scriptedLeader) requests() []handed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]handed(nil), s.got...)
}

// raw is an HTTP answer with a body of known length.
func raw(status int, header, body string) string {
	return "HTTP/1.1 " + strconv.Itoa(status) + " Some\r\n" + header + "Content-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body
}

// rawProblem is a problem document as an answer.
func rawProblem(status int, more string) string {
	return raw(status, "Content-Type: application/problem+json\r\nX-Member: 1\r\n",
		`{"type":"urn:posttrade:problem:x","title":"t","status":`+strconv.Itoa(
			status)+`,"detail":"d"`+more+`}`)
}

var (
	notLeader = rawProblem(503, `,"code":"NOT_LEADER","sequenced":false`)
	created   = raw(201, "Content-Type: application/json\r\nX-Member: 1\r\nX-Durability: quorum\r\n",
		`{"orderId":"ord-1"}`)
)

// exchange sends bytes over a connection of its own and reads until it ends.
func (r *relayRig) rawExchange(text string) []byte {
	r.t.Helper()
	conn := must.Get(net.Dial("tcp", r.address))(r.t)
	defer conn.Close()
	must.OK(r.t, conn.SetDeadline(time.Now().Add(time.Minute)))
	must.Get(io.Copy(conn, bytes.NewReader([]byte(text))))(r.t)
	got, _ := io.ReadAll(conn) // a reset is an end too
	return got
}
