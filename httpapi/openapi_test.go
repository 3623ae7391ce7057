package httpapi

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"posttrade/ring/must"
)

// api is a service as its OpenAPI document describes it.
type api struct {
	load    func() (*openapi3.T, error) // the document, read once
	routeOf func(path []byte) (route, []byte)
	first   route // of the service's own endpoints
	last    route
}

// The documented services.
var (
	matcherAPI   = api{loaded(openAPIOrderMatcher), routeOf, routeOrders, routeFeed}
	processorAPI = api{loaded(openAPITradeProcessor), processorRouteOf, routeDevToken, routeMarks}
	accountAPI   = api{loaded(openAPIAccountService), accountRouteOf, routeAccounts,
		routeAccountSnapshot}
	referenceAPI = api{loaded(openAPIReferenceData), referenceRouteOf, routeStocks, routeStockSnapshot}
)

func loaded(text []byte) func() (*openapi3.T, error) {
	return sync.OnceValues(func() (*openapi3.T, error) {
		return openapi3.NewLoader().LoadFromData(text)
	})
}

// templateOf is the path of the document that a request's path matches.
func templateOf(path string) string {
	path, _, _ = strings.Cut(path, "?")
	path = strings.TrimPrefix(path, "/om")
	if rest, past := strings.CutPrefix(path, asOfPrefix); past {
		_, of, _ := strings.Cut(rest, "/")
		return asOfPrefix + "{inputSeq}" + templateOf("/"+of)
	}
	switch {
	case path == "/orders/batch":
		return path
	case strings.HasPrefix(path, "/orders/"):
		_, tail, _ := strings.Cut(path[len("/orders/"):], "/")
		if tail != "" {
			tail = "/" + tail
		}
		return "/orders/{orderId}" + tail
	case strings.HasPrefix(path, "/risk/control/accounts/"):
		_, tail, _ := strings.Cut(path[len("/risk/control/accounts/"):], "/")
		return "/risk/control/accounts/{accountId}/" + tail
	case strings.HasPrefix(path, "/book/"):
		return "/book/{security}"
	case strings.HasPrefix(path, "/contracts/") && strings.HasSuffix(path, "/why"):
		return "/contracts/{contractId}/why"
	case strings.HasPrefix(path, "/contracts/"):
		return "/contracts/{contractId}"
	case strings.HasPrefix(path, "/log/tile/"):
		return "/log/tile/{tile}"
	case strings.HasPrefix(path, "/eod/prices/"):
		return "/eod/prices/{sessionDate}/v{version}"
	case strings.HasPrefix(path, "/tca/report/"):
		return "/tca/report/{tradeId}"
	case strings.HasPrefix(path, "/trades/"):
		_, tail, _ := strings.Cut(path[len("/trades/"):], "/")
		if tail != "" {
			tail = "/" + tail
		}
		return "/trades/{tradeId}" + tail
	case path == "/account":
		return "/account/"
	case path == "/account/", strings.HasSuffix(path, "/control-snapshot"):
	case strings.HasPrefix(path, "/account/"):
		return "/account/{accountId}"
	case strings.HasPrefix(path, "/stocks/"):
		return "/stocks/{ticker}"
	}
	return path
}

// operationOf finds the documented operation of a request, nil if there is none.
func (d api) operationOf(t testing.TB, method, path string) *openapi3.Operation {
	t.Helper()
	item := must.Get(d.load())(t).Paths.Value(templateOf(path))
	if item == nil {
		return nil
	}
	return item.GetOperation(method)
}

// checkAnswer compares an answer with the document: the endpoint has the status and the media type,
// and the body fits the schema.
func (d api) checkAnswer(t testing.TB, method, path string, a answer) {
	t.Helper()
	op := d.operationOf(t, method, path)
	if op == nil {
		return // no such endpoint or method: a problem; other tests check its shape
	}
	if err := answerFits(op, a); err != "" {
		t.Errorf("%s %s answered %d: %s\n%s", method, path, a.status, err, a.body)
	}
}

// answerFits returns what is wrong with an answer of an operation, "" for nothing.
func answerFits(op *openapi3.Operation, a answer) string {
	response := op.Responses.Value(strconv.Itoa(a.status))
	if response == nil {
		return "the status is not documented"
	}
	for name := range response.Value.Headers {
		if a.header.Get(name) == "" && name != headerAsOf { // it is not always known
			return "the header " + name + " is missing"
		}
	}
	if a.status < 300 && a.header.Get(headerAsOf) != "" && response.Value.Headers[headerAsOf] == nil {
		return "the header " + headerAsOf + " is not documented"
	}
	media := response.Value.Content.Get(a.header.Get("Content-Type"))
	if media == nil {
		return "the content type " + a.header.Get("Content-Type") + " is not documented"
	}
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	var documents [][]byte
	switch kind {
	case contentText, contentBytes, "text/csv", "application/vnd.apache.parquet":
		return ""
	case contentNDJSON:
		documents = slices.Collect(bytes.Lines(a.body))
	default:
		documents = [][]byte{a.body}
	}
	for _, text := range documents {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return err.Error()
		}
		if err := media.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
			return err.Error()
		}
	}
	return ""
}

// checkMet reports the statuses of the document that no row has met. met is by method and templated
// path.
func (d api) checkMet(t *testing.T, met map[string][]int) {
	t.Helper()
	doc := must.Get(d.load())(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				code, err := strconv.Atoi(status)
				if err != nil {
					t.Errorf("%s %s: %v", method, path, err)
				}
				if !slices.Contains(met[method+" "+path], code) && !slices.Contains(transportStatuses, code) &&
					!slices.Contains(relayStatuses[method+" "+path], code) &&
					!slices.Contains(streamStatuses[method+" "+path], code) &&
					!(code == stoppingStatus && slices.Contains(alwaysAnswered, path)) {
					t.Errorf("%s %s documents %d, and no row meets it", method, path, code)
				}
			}
		}
	}
}

// alwaysAnswered are the endpoints that answer as long as a server admits requests. When it stops
// they have stoppingStatus, as all endpoints have: TestRequestsAreRefusedWhenTheServerStops.
var alwaysAnswered = []string{"/health", "/openapi.json"}

const stoppingStatus = 503

// relayStatuses are answered only by a member's relay; TestEveryOperationIsRelayed meets them for
// every operation.
var relayStatuses = map[string][]int{
	"GET /regulatory/report":         {504},
	"GET /recon/full-history/trades": {504},
	"GET /actuator/prometheus":       {503, 504},
	"POST /auth/dev-token":           {503, 504},
}

// streamStatuses are those of a stream without an end, which needs a journal: the tests of the feed
// in app/installation meet them over a whole installation.
var streamStatuses = map[string][]int{"GET /feed": {200, 401, 403, 404, 503, 504}}

func TestOpenAPIDocumentsAreValid(t *testing.T) {
	for _, d := range []api{matcherAPI, processorAPI, accountAPI, referenceAPI} {
		doc := must.Get(d.load())(t)
		must.OK(t, doc.Validate(t.Context()))
		if doc.OpenAPI != "3.1.0" {
			t.Errorf("version %s, want 3.1.0", doc.OpenAPI)
		}
	}
}

// instances makes a path of a document one of a request.
var instances = strings.NewReplacer("{orderId}", "ord-1", "{security}", "AAA", "{tradeId}", "trd-1",
	"{accountId}", "1", "{ticker}", "AAA", "{contractId}", "SW-1", "{sessionDate}", "2026-03-02",
	"{version}", "1", "{inputSeq}", "5", "{tile}", "0/000")

// TestEveryRouteIsDocumented compares the routers with the documents, both ways.
func TestEveryRouteIsDocumented(t *testing.T) {
	for _, d := range []api{matcherAPI, processorAPI, accountAPI, referenceAPI} {
		doc := must.Get(d.load())(t)
		var documented []string
		for path, item := range doc.Paths.Map() {
			r, _ := d.routeOf([]byte(instances.Replace(path)))
			for method := range item.Operations() {
				documented = append(documented, method+" "+path)
				if allowed[r]&methodOf([]byte(method)) == 0 {
					t.Errorf("%s %s is documented and not routed", method, path)
				}
			}
		}
		routed := 0
		for r := routeNone + 1; r < routeCount; r++ {
			if r >= d.first && r <= d.last || r < routeOrders {
				routed += bits.OnesCount8(uint8(allowed[r]))
			}
		}
		if routed != len(documented) {
			slices.Sort(documented)
			t.Errorf("%d operations are routed, %d documented: %v", routed, len(documented), documented)
		}
	}
}

// TestSchemasCanFail plants wrong answers and expects the check to report them.
func TestSchemasCanFail(t *testing.T) {
	r := newRig(t)
	good := r.order("1", "Buy", "10", "100", "").want(t, 201, "")
	op := matcherAPI.operationOf(t, "POST", "/orders")
	if err := answerFits(op, good); err != "" {
		t.Fatalf("a good answer does not fit: %s", err)
	}
	plant := func(name string, change func(a *answer)) {
		a := good
		a.body = slices.Clone(good.body)
		a.header = good.header.Clone()
		change(&a)
		if answerFits(op, a) == "" {
			t.Errorf("%s passes the check", name)
		}
	}
	replace := func(old, new string) func(a *answer) {
		return func(a *answer) {
			if !bytes.Contains(a.body, []byte(old)) {
				t.Fatalf("%q is not in %s", old, a.body)
			}
			a.body = bytes.Replace(a.body, []byte(old), []byte(new), 1)
		}
	}
	plant("an undocumented status", func(a *answer) { a.status = 299 })
	plant("an unknown member", replace(`{"orderId"`, `{"extra":1,"orderId"`))
	plant("a missing member", replace(`"quantity":10,`, ``))
	plant("a quantity as text", replace(`"quantity":10`, `"quantity":"10"`))
	plant("an unknown state", replace(`"NEW"`, `"OPEN"`))
	plant("a null side", replace(`"Buy"`, `null`))
	plant("a missing header", func(a *answer) { a.header.Del("X-Durability") })
	plant("another media type", func(a *answer) { a.header.Set("Content-Type", "text/plain") })
}
