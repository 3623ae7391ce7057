package httpapi

import (
	"regexp"
	"slices"
	"strconv"
	"testing"

	"posttrade/ring/must"
)

// parameter is a name in a path of the OpenAPI documents.
var parameter = regexp.MustCompile(`\{[a-zA-Z]+\}`)

// TestRoutesAreCountedByTheDocumentsPaths: the label of an endpoint is the path that its OpenAPI
// document has, whatever ids a request names; and each documented status has a count of its own.
func TestRoutesAreCountedByTheDocumentsPaths(t *testing.T) {
	seen := map[route]bool{routeNone: true}
	for _, d := range []api{matcherAPI, processorAPI, accountAPI, referenceAPI} {
		document := must.Get(d.load())(t)
		find := targetRoute("", d.routeOf)
		for path, item := range document.Paths.Map() {
			target := parameter.ReplaceAllString(path, "7") + "?limit=1"
			r := find([]byte(target))
			if seen[r] = true; patterns[r] != path {
				t.Errorf("%s is counted as %q, want %q", target, patterns[r], path)
			}
			for method, operation := range item.Operations() {
				for code := range operation.Responses.Map() {
					if n, err := strconv.Atoi(code); err == nil && !slices.Contains(statuses[:], n) {
						t.Errorf("%s %s: status %s is counted with others", method, path, code)
					}
				}
			}
		}
	}
	for r := range routeCount {
		if !seen[r] || patterns[r] == "" {
			t.Errorf("route %d: pattern %q, in a document: %v", r, patterns[r], seen[r])
		}
	}
}

// TestRequestsAreCountedByEndpointAndCode sends what is answered, refused and unknown, to the
// services and by way of a relay; a panic counts as the 500 that it is.
func TestRequestsAreCountedByEndpointAndCode(t *testing.T) {
	r := newRig(t, prefixed)
	r.price("AAA", "100")
	r.order("1", "Buy", "1", "100", "").want(t, 201, "")
	for range 3 {
		r.call(request{method: "GET", path: "/om/book/AAA"}).want(t, 200, "")
		r.call(request{method: "GET", path: "/om/book/AAA/7"}).want(t, 404, CodeNotFound)
	}
	r.call(request{method: "DELETE", path: "/orders"}).want(t, 405, CodeMethodNotAllowed)
	got := countedBy(r.m.Counted)
	for key, want := range map[string]uint64{"order-matcher /orders 201": 1,
		"order-matcher /book/{security} 200": 3, "order-matcher unknown 404": 3,
		"order-matcher /orders 405": 1,
		"order-matcher /prices 202": 1} {
		if got[key] != want {
			t.Errorf("%s: %d, want %d of %v", key, got[key], want, got)
		}
	}

	p := newProcessorRig(t, func(d *ProcessorDeps) { d.Recon = nil })
	p.get("/recon/status", "admin").want(t, 500, CodeInternal)
	if got := countedBy(p.p.Counted); got["trade-processor /recon/status 500"] != 1 {
		t.Errorf("a panic: %v", got)
	}

	relayed := newLeader(t, "order-matcher", newRig(t).m)
	relayed.call(request{method: "GET", path: "/book/AAA"})
	relayed.rawExchange("nonsense\r\n\r\n")
	if got := countedBy(relayed.relay.Counted); len(got) != 2 ||
		got["order-matcher unknown 400"] != 1 || got["order-matcher /book/{security} 200"] != 1 {
		t.Errorf("two requests through a relay are counted as %v", got)
	}
}

// countedBy are the requests that a service has counted.
func countedBy(counted func(Counts)) map[string]uint64 {
	got := map[string]uint64{}
	counted(Counts{
		Fault: func(string, string, uint64) {},
		Request: func(service, route, code string, n uint64) {
			got[service+" "+route+" "+code] += n
		},
	})
	return got
}
