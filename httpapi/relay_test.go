package httpapi

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// TestWritesRunOnTheLeader over two real engines: the leader decides the follower's requests, and
// its answer comes back unchanged; reads are local.
func TestWritesRunOnTheLeader(t *testing.T) {
	one, two := newRig(t, enforced), newRig(t, enforced)
	leader := newLeader(t, "order-matcher", one.m)
	follower := newFollower(t, "order-matcher", "1", leader.address)
	follower.relay.Swap(two.m)
	token := one.token("admin")
	for _, q := range []request{
		{method: "POST", path: "/prices", body: goodPrices, token: token},
		{method: "POST", path: "/orders", body: goodOrder, token: token},
		{method: "POST", path: "/orders", body: goodOrder},
		{method: "POST", path: "/orders", body: "{", token: token},
		{method: "POST", path: "/orders", body: orderBody("9", "Buy", "1", "100", ""), token: token},
		{method: "POST", path: "/orders/batch", body: "[" + goodOrder + "," + goodOrder + "]",
			token: token},
		{method: "POST", path: "/orders/ord-1/replace", body: goodReplace, token: token},
		{method: "POST", path: "/orders/ord-1/cancel", token: token},
		{method: "POST", path: "/orders/ord-1/cancel", token: token},
		{method: "POST", path: "/orders/ord-99/cancel", token: token},
		{method: "POST", path: "/trades", body: goodTrade, token: token},
		{method: "POST", path: "/swaps", body: goodSwap, token: token},
		{method: "POST", path: "/swaptions", body: goodSwaption, token: token},
		{method: "POST", path: "/risk/control/account", body: goodAccount, token: token},
		{method: "POST", path: "/risk/extract", body: goodExtract, token: token},
		{method: "POST", path: "/orders", body: goodOrder, token: token,
			header: map[string]string{"Content-Type": "text/xml"}},
	} {
		before := one.sequence()
		a := follower.call(q).from(t, "1")
		if two.sequence() != 0 {
			t.Fatalf("%s %s ran on the follower", q.method, q.path)
		}
		if a.status < 300 && one.sequence() == before {
			t.Errorf("%s %s: %d and nothing sequenced", q.method, q.path, a.status)
		}
		if a.status >= 500 || a.status == 404 && !strings.Contains(q.path, "99") {
			t.Errorf("%s %s: %d %s", q.method, q.path, a.status, a.body)
		}
		if a.header.Get("X-Durability") != "fsync" && a.header.Get("X-Durability") != "quorum" {
			t.Errorf("%s %s: durability %v", q.method, q.path, a.header)
		}
	}
	list := func(r *relayRig, header map[string]string) int {
		a := r.call(request{method: "GET", path: "/orders", token: token, header: header}).want(t, 200,
			"")
		return len(a.json(t).(map[string]any)["items"].([]any))
	}
	confirmed := map[string]string{headerConsistency: valueConfirmed}
	if here, there := list(follower, nil), list(follower, confirmed); here != 0 || there == 0 {
		t.Errorf("the follower lists %d orders, %d confirmed", here, there)
	}
	if n := leader.cluster.asked.Load(); n != 1 {
		t.Errorf("leadership was confirmed %d times, want 1", n)
	}
}

// TestBadInputIsAnsweredWhereItCame: it never reaches the leader.
func TestBadInputIsAnsweredWhereItCame(t *testing.T) {
	leader := newScriptedLeader(t, reply(created))
	orders := newFollower(t, "order-matcher", "1", leader.address,
		func(o *RelayOptions) { o.PathPrefix = "om/" })
	stocks := newFollower(t, "reference-data", "1", leader.address)
	for _, tt := range []struct {
		rig          *relayRig
		method, path string
		status       int
		header       map[string]string
	}{
		{orders, "HEAD", "/orders", 405, nil}, {orders, "OPTIONS", "/orders", 405, nil},
		{orders, "DELETE", "/orders/ord-1", 405, nil},
		{orders, "PATCH", "/orders", 405, nil}, {orders, "PUT", "/orders", 405, nil},
		{orders, "POST", "/om/orders/ord-1", 405, nil},
		{orders, "POST", "/nowhere", 404, nil}, {orders, "POST", "/stocks", 404, nil},
		{orders, "POST", "/orders/", 404, nil},
		{orders, "POST", "/orders//cancel", 400, nil}, {orders, "POST", "/orders/%41/cancel", 400, nil},
		{orders, "POST", "/../orders", 400, nil},
		{orders, "POST", "/orders/" + strings.Repeat("a", 65) + "/cancel", 400, nil},
		{orders, "GET", "/orders", 400, map[string]string{headerConsistency: "strong"}},
		{orders, "GET", "/orders", 400, map[string]string{headerConsistency: ""}},
		{orders, "POST", "/orders", 400, map[string]string{"X-Odd": "a\x01b"}},
		{orders, "POST", "/orders", 400, map[string]string{"X-Odd": "a\x7fb"}},
		{stocks, "HEAD", "/stocks", 405, nil}, {stocks, "OPTIONS", "/stocks", 405, nil},
		{stocks, "PUT", "/stocks", 405, nil},
		{stocks, "GET", "/account/", 404, nil}, {stocks, "GET", "/stocks/A/B", 404, nil},
	} {
		a := roundTrip(t, tt.rig.address, request{method: tt.method, path: tt.path,
			header: tt.header}).from(t, "2")
		if a.status != tt.status || a.header.Get("Content-Type") != contentProblem {
			t.Errorf("%s %s %v: %d %s", tt.method, tt.path, tt.header, a.status, a.body)
		}
		if _, wrong := tt.header[headerConsistency]; wrong && a.field(t, "field") != headerConsistency {
			t.Errorf("%v: the header is not named: %s", tt.header, a.body)
		}
	}
	for _, h := range hostile {
		got := string(orders.rawExchange(h.raw))
		got = strings.TrimPrefix(got, "HTTP/1.1 100 Continue\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 "+itoa(uint64(h.status))) {
			t.Errorf("%s: %.100q", h.name, got)
		}
	}
	if got := leader.requests(); len(got) > 0 {
		t.Errorf("the leader was asked: %+v", got)
	}
}

// TestEveryOperationIsRelayed sends every documented operation to a follower. An operation that
// runs on the leader only has its problem while there is no leader, and while the leader does not
// answer.
func TestEveryOperationIsRelayed(t *testing.T) {
	leader := newScriptedLeader(t, func(net.Conn, handed) bool { return false })
	for _, service := range slices.Sorted(maps.Keys(serviceShapes)) {
		t.Run(service, func(t *testing.T) {
			r := newFollower(t, service, "", "")
			doc := must.Get(r.api.load())(t)
			for path, item := range doc.Paths.Map() {
				instance := strings.NewReplacer("{orderId}", "ord-1", "{security}", "AAA", "{tradeId}", "trd-1",
					"{accountId}", "1",
					"{inputSeq}", "1", "{ticker}", "AAA", "{contractId}", "SW-1", "{tile}", "0/000",
					"{sessionDate}", "2026-03-02", "{version}",
					"1").Replace(path)
				for method := range item.Operations() {
					q := request{method: method, path: instance, header: map[string]string{}}
					if method == "GET" {
						q.header[headerConsistency] = valueConfirmed
					}
					r.cluster.lead("", nil)
					a := r.call(q).from(t, "2")
					if instance == "/health" || instance == "/openapi.json" {
						a.want(t, 200, "")
						continue
					}
					if instance == "/log/member" { // no other member's
						a.want(t, 503, CodeNotYet)
						continue
					}
					a.want(t, 503, CodeNoLeader)
					if a.field(t, "leader") != nil || a.field(t, "sequenced") != false ||
						a.header.Get("Retry-After") != "1" {
						t.Errorf("%s %s: %v %s", method, path, a.header, a.body)
					}
					r.cluster.lead("1", map[string]string{service: leader.address})
					if a = r.call(q).from(t, "2").want(t, 504, CodeOutcomeUnknown); a.field(t,
						"sequenced") != nil {
						t.Errorf("%s %s: %s", method, path, a.body)
					}
				}
			}
		})
	}
}

// TestWhereARequestRuns is the whole decision, member by member.
func TestWhereARequestRuns(t *testing.T) {
	type at struct {
		leads  bool
		leader string // as this member sees it
		served bool   // the service stands here
	}
	read, write := request{method: "GET", path: "/book/AAA"}, request{method: "POST", path: "/orders",
		body: goodOrder}
	confirmed := request{method: "GET", path: "/book/AAA",
		header: map[string]string{headerConsistency: valueConfirmed}}
	reindex := request{method: "POST", path: "/recon/full-history/reindex"}
	health := request{method: "GET", path: "/health"}
	tree := request{method: "GET", path: "/log/member"}
	relayed := func(q request) request {
		q.header = maps.Clone(q.header)
		if q.header == nil {
			q.header = map[string]string{}
		}
		q.header[headerRelayed] = "3"
		return q
	}
	const here, there = "2", "1"
	for _, tt := range []struct {
		name   string
		at     at
		q      request
		member string // the member that answers
		status int
		code   Code
	}{
		{"the leader writes", at{true, "2", true}, write, here, 201, ""},
		{"the leader writes for another", at{true, "2", true}, relayed(write), here, 201, ""},
		{"the leader reads", at{true, "2", true}, read, here, 200, ""},
		{"the leader reads, confirmed", at{true, "2", true}, confirmed, here, 200, ""},
		{"the leader reads for another", at{true, "2", true}, relayed(confirmed), here, 200, ""},
		{"the leader without its service", at{true, "2", false}, write, here, 503, CodeNoLeader},
		{"the leader without its service, for another", at{true, "2", false}, relayed(write), here, 503,
			CodeNotLeader},
		{"a leader that has not taken over", at{false, "2", true}, write, here, 503, CodeNoLeader},
		{"a leader that has not taken over, for another", at{false, "2", true}, relayed(write), here, 503,
			CodeNotLeader},
		{"a leader that has not taken over reads", at{false, "2", true}, read, here, 200, ""},
		{"a leader that has not taken over reads, confirmed", at{false, "2", true}, confirmed, here, 503,
			CodeNoLeader},
		{"a follower writes", at{false, "1", true}, write, there, 201, ""},
		{"a follower writes for another", at{false, "1", true}, relayed(write), here, 503, CodeNotLeader},
		{"a follower reads", at{false, "1", true}, read, here, 200, ""},
		{"a follower reads for another", at{false, "1", true}, relayed(confirmed), here, 503,
			CodeNotLeader},
		{"a follower reads, confirmed", at{false, "1", true}, confirmed, there, 201, ""},
		{"a follower without its service reads", at{false, "1", false}, read, there, 201, ""},
		{"a follower indexes its own history", at{false, "1", true}, reindex, here, 401,
			CodeUnauthorized},
		{"a follower without its service indexes", at{false, "1", false}, reindex, there, 201, ""},
		{"a follower's health", at{false, "1", true}, health, here, 200, ""},
		{"a follower's health without its service", at{false, "1", false}, health, here, 200, ""},
		{"a follower shows its own tree", at{false, "1", true}, tree, here, 404, CodeNotFound},
		{"a follower without its service shows none", at{false, "1", false}, tree, here, 503, CodeNotYet},
		{"no leader", at{false, "", true}, write, here, 503, CodeNoLeader},
		{"no leader, for another", at{false, "", true}, relayed(write), here, 503, CodeNotLeader},
		{"no leader reads", at{false, "", true}, read, here, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leader := newScriptedLeader(t, reply(created))
			engine := newRig(t)
			r := newRelayRig(t, "order-matcher", here, nil, nil)
			addresses := map[string]string{"order-matcher": leader.address}
			if tt.at.leader == "" {
				addresses = nil
			}
			r.cluster.lead(tt.at.leader, addresses)
			r.cluster.set(func(c *fakeCluster) { c.leads = tt.at.leads })
			if tt.at.served {
				r.relay.Swap(engine.m)
			}
			a := roundTrip(t, r.address, tt.q).from(t, tt.member).want(t, tt.status, tt.code)
			if asked := len(leader.requests()); asked != map[bool]int{true: 1}[tt.member == there] {
				t.Errorf("the leader was asked %d times", asked)
			}
			if tt.status != 503 || tt.code == CodeNotYet {
				return
			}
			if want := any(tt.at.leader); a.field(t, "sequenced") != false ||
				a.header.Get("Retry-After") != "1" ||
				a.field(t, "leader") != want && (want != "" || a.field(t, "leader") != nil) {
				t.Errorf("%v %s", a.header, a.body)
			}
		})
	}
}

// TestLeaderOnlyServices: reads of these services go to the leader too.
func TestLeaderOnlyServices(t *testing.T) {
	p := newProcessorRig(t)
	leader := newLeader(t, "trade-processor", p.p)
	r := newFollower(t, "trade-processor", "1", leader.address, func(o *RelayOptions) {
		o.State, o.Projected = func() string { return "degraded" }, func() uint64 { return 10 }
	})
	admin := testToken(testStart, "admin")
	for _, path := range []string{"/trades?limit=2", "/trades/trd-1", "/recon/status", "/tca/summary",
		"/actuator/prometheus", "/trades/trd-99"} {
		direct := leader.call(request{method: "GET", path: path, token: admin}).from(t, "1")
		a := r.call(request{method: "GET", path: path, token: admin}).from(t, "1")
		if a.status != direct.status || path != "/actuator/prometheus" &&
			string(a.body) != string(direct.body) {
			t.Errorf("%s: %d %s\nof the leader: %d %s", path, a.status, a.body, direct.status, direct.body)
		}
	}
	r.call(request{method: "POST", path: "/trades/trd-1/settlement/force", token: admin}).from(t,
		"1").want(t, 200, "")
	r.call(request{method: "POST", path: "/recon/orphan-sweep", token: admin}).from(t,
		"1").want(t, 200, "")
	a := r.call(request{method: "GET", path: "/health"}).from(t, "2").want(t, 200, "")
	if want := `{"service":"trade-processor","status":"degraded","role":"FOLLOWER","member":"2",` +
		`"leader":"1","durability":"quorum",` +
		`"applied":12,"durable":11,"projected":10}`; string(a.body) != want {
		t.Errorf("%s\nwant %s", a.body, want)
	}
	// a former leader keeps its service for a moment: no request may read from it
	r.relay.Swap(newProcessorRig(t).p)
	r.call(request{method: "GET", path: "/trades", token: admin}).from(t, "1").want(t, 200, "")
	<-r.relay.Swap(nil)
	r.cluster.lead("", nil)
	if a := r.call(request{method: "GET", path: "/health"}); a.field(t, "leader") != nil ||
		a.field(t, "role") != "FOLLOWER" {
		t.Errorf("%s", a.body)
	}
	if a := r.call(request{method: "GET", path: "/openapi.json"}).from(t,
		"2"); string(a.body) != string(openAPITradeProcessor) {
		t.Error("another document")
	}
	r.call(request{method: "GET", path: "/trades", token: admin}).from(t, "2").want(t, 503,
		CodeNoLeader)
	if a := leader.call(request{method: "GET", path: "/health"}).from(t, "1"); a.field(t,
		"service") != "trade-processor" {
		t.Errorf("%s", a.body)
	}
}

// TestConfirmedReadsNeedAMajority on the leader, asked directly or through another.
func TestConfirmedReadsNeedAMajority(t *testing.T) {
	engine := newRig(t)
	leader := newLeader(t, "order-matcher", engine.m)
	follower := newFollower(t, "order-matcher", "1", leader.address)
	q := request{method: "GET", path: "/positions",
		header: map[string]string{headerConsistency: valueConfirmed}}
	for i, r := range []*relayRig{leader, follower} {
		r.call(q).from(t, "1").want(t, 200, "")
		if n := leader.cluster.asked.Load(); n != int64(i+1) {
			t.Errorf("confirmed %d times, want %d", n, i+1)
		}
	}
	leader.cluster.set(func(c *fakeCluster) { c.doubt = errors.New("planted") })
	for _, r := range []*relayRig{leader, follower} {
		a := r.call(q).from(t, "1").want(t, 503, CodeNoLeader)
		if a.field(t, "sequenced") != false || a.field(t, "leader") != nil {
			t.Errorf("%s", a.body)
		}
	}
	asked := leader.cluster.asked.Load()
	for _, q := range []request{
		{method: "GET", path: "/positions"}, {method: "GET", path: "/health", header: q.header},
		{method: "GET", path: "/openapi.json", header: q.header},
		{method: "POST", path: "/orders", body: goodOrder, header: q.header},
	} {
		if a := leader.call(q); a.status >= 300 {
			t.Errorf("%s %s: %d %s", q.method, q.path, a.status, a.body)
		}
	}
	if n := leader.cluster.asked.Load(); n != asked {
		t.Errorf("confirmed %d times for what does not ask for it", n-asked)
	}
	engine.call(q).want(t, http.StatusOK, "") // without a cluster there is nothing to confirm
}

func TestRelayOfNoService(t *testing.T) {
	if _, err := NewRelay("admin", RelayOptions{Cluster: leading("1")}); !errors.Is(err,
		errServiceName) {
		t.Errorf("%v", err)
	}
	r := newRelayRig(t, "reference-data", "1", nil, nil)
	defer func() {
		if recover() == nil {
			t.Error("a trade-processor in the place of the reference-data service")
		}
	}()
	r.relay.Swap(newProcessorRig(t).p)
}
