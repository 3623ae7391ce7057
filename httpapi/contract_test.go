package httpapi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/journal/acts"
	"posttrade/journal/audit"
	"posttrade/journal/evidence"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

// Good bodies, for rows about something else.
const (
	goodOrder       = `{"accountId":1,"security":"AAA","side":"Buy","quantity":10,"limitPrice":100}`
	goodTrade       = `{"accountId":1,"security":"AAA","side":"Buy","quantity":10}`
	goodReplace     = `{"quantity":8,"limitPrice":101}`
	goodPrices      = `[{"security":"AAA","price":100.5}]`
	goodAccount     = `{"accountId":2,"enabled":true}`
	goodSecurity    = `{"security":"BBB","enabled":true,"halted":false}`
	goodRestriction = `{"security":"BBB","restricted":false}`
	goodPolicy      = `{"policyVersion":3,"killSwitch":false}`
	goodLimits      = `{"policyVersion":4,"limits":{"maxOrderQuantity":900000}}`
	goodOwnLimits   = `{"policyVersion":5,"limits":{"creditLimit":"4000000000.5",` +
		`"priceCollarBps":null}}`
	goodSwap = `{"accountId":1,"payReceive":"Pay","notional":1000000,"fixedRate":0.0425,` +
		`"effectiveDate":"2026-03-04","maturityDate":"2031-03-04","conventions":"USD-SOFR-1Y-ACT360"}`
	goodSwaption = `{"accountId":1,"payReceive":"Receive","notional":250000,"fixedRate":-0.001,` +
		`"effectiveDate":"2026-09-04",` +
		`"maturityDate":"2036-09-04","conventions":"EUR-ESTR-1Y-ACT360","expiryDate":"2026-09-02",` +
		`"exerciseStyle":"Bermudan"}`
	goodExtract = `{"sessionDate":"2026-03-02"}`
)

// row is one request and the answer that the contract requires. token: "" none, "admin", "one"
// entitled to account 1, "two" to account 2, "bad", "expired".
type row struct {
	request string // METHOD path
	body    string
	token   string
	status  int
	code    Code
}

// The endpoints that always need an admin token, with a good body.
var adminRequests = []struct{ request, body string }{
	{"POST /prices", goodPrices},
	{"GET /recon/trades/blotter", ""},
	{"POST /risk/control/account", goodAccount},
	{"POST /risk/control/security", goodSecurity},
	{"POST /risk/control/restriction", goodRestriction},
	{"POST /risk/control/policy", goodPolicy},
	{"POST /risk/control/limits", goodLimits},
	{"POST /risk/control/accounts/1/limits", goodOwnLimits},
	{"GET /risk/control/snapshot", ""},
	{"POST /risk/extract", goodExtract},
}

// The endpoints of accounts, which need a token where entitlements are enforced. Those of ord-1 and
// SW-5 concern account 1.
var accountRequests = []struct{ request, body string }{
	{"POST /orders", goodOrder},
	{"POST /orders/batch", "[" + goodOrder + "]"},
	{"POST /trades", goodTrade},
	{"GET /orders?accountId=1", ""},
	{"GET /positions?accountId=1", ""},
	{"POST /swaps", goodSwap},
	{"POST /swaptions", goodSwaption},
	{"GET /contracts?accountId=1", ""},
	{"GET /contracts/SW-5", ""},
	{"GET /orders/ord-1", ""},
	{"POST /orders/ord-1/replace", goodReplace},
	{"POST /orders/ord-1/cancel", ""},
}

// historyRequests always need an admin token and read the history instead of the engine, so the
// engine's state has no effect on them.
var historyRequests = []string{
	"GET /regulatory/report", "POST /recon/full-history/reindex", "GET /recon/full-history/trades",
}

// bodied are the endpoints that read a body, with a sufficient token.
var bodied = []string{
	"/orders", "/orders/batch", "/trades", "/orders/ord-1/replace", "/orders/ord-1/cancel", "/prices",
	"/risk/control/account", "/risk/control/security", "/risk/control/restriction",
	"/risk/control/policy", "/risk/control/limits", "/risk/control/accounts/1/limits",
	"/swaps", "/swaptions", "/risk/extract",
}

// seed gives a rig an open order ord-1 (account 1, Sell 10 AAA at 101), a filled
// ord-2 and ord-3 of account 2 and 1, a price of AAA, and a swap SW-5 of account 1.
func seed(r *rig) {
	r.t.Helper()
	r.tick(100, 0)
	r.order("1", "Sell", "10", "101", `,"clientOrderId":"seed-1"`).want(r.t, 201, "")
	r.post("/orders", orderBody("2", "Sell", "5", "100", ""), "").want(r.t, 201, "")
	r.order("1", "Buy", "5", "100", "").want(r.t, 201, "")
	r.post("/swaps", keyed(goodSwap, "seed-1"), "").want(r.t, 200, "")
}

// keyed is a body with a clientOrderId.
func keyed(body, id string) string { return `{"clientOrderId":"` + id + `",` + body[1:] }

// TestContract drives every endpoint through every status that its handler can answer. It checks
// each answer against the OpenAPI document (in rig.call), and then reports every status of the
// document that no row has met.
func TestContract(t *testing.T) {
	tests := []struct {
		name    string
		options []option
		prepare func(r *rig)
		rows    []row
	}{
		{"open", nil, func(*rig) {}, append(openRows(), contractRows()...)},
		{"enforced", nil, func(r *rig) { r.serve(func(d *Deps) { d.Enforced = true }) }, enforcedRows()},
		{"not ready", nil, notReady, []row{
			{"POST /orders", goodOrder, "", 503, CodeNotReady},
			{"POST /orders/batch", "[" + goodOrder + "]", "", 503, CodeNotReady},
			{"POST /trades", goodTrade, "", 503, CodeNotReady},
			{"POST /orders/ord-1/replace", goodReplace, "", 503, CodeNotReady},
			{"POST /orders/ord-1/cancel", "", "", 200, ""},
			{"POST /risk/control/policy", goodPolicy, "admin", 200, ""},
			{"POST /risk/control/policy", goodPolicy, "admin", 409, CodeStaleVersion},
			{"POST /risk/control/limits", goodLimits, "admin", 200, ""},
			{"POST /risk/control/limits", goodLimits, "admin", 409, CodeStaleVersion},
			{"POST /risk/control/accounts/1/limits", goodOwnLimits, "admin", 200, ""},
			{"POST /risk/control/accounts/1/limits", goodOwnLimits, "admin", 409, CodeStaleVersion},
			{"POST /prices", goodPrices, "admin", 202, ""},
			{"POST /swaps", goodSwap, "", 503, CodeNotReady},
			{"POST /swaptions", goodSwaption, "", 503, CodeNotReady},
			{"POST /swaps", keyed(goodSwap, "seed-1"), "", 200, ""},
			{"GET /contracts/SW-5", "", "", 200, ""},
			{"POST /risk/extract", goodExtract, "admin", 202, ""},
			{"POST /orders", orderBody("1", "Sell", "10", "101", `,"clientOrderId":"seed-1"`), "", 201, ""},
			{"GET /health", "", "", 200, ""},
		}},
		{"the past", nil, func(r *rig) { r.serve(func(d *Deps) { d.AsOf = newPast(r.t) }) }, pastRows()},
		{"why, enforced", nil, func(r *rig) {
			r.serve(func(d *Deps) { d.AsOf, d.Enforced = newPast(r.t), true })
		}, whyRows()},
		{"no past", nil, func(*rig) {}, pastStatus(404, CodeNotFound)},
		{"too many look at the past", nil, func(r *rig) {
			past := newPast(r.t)
			for at := range uint64(2) {
				m := must.Get(past.At(r.t.Context(), at))(r.t)
				r.t.Cleanup(m.Release)
			}
			r.serve(func(d *Deps) { d.AsOf = past })
		}, pastStatus(503, CodeBusy)},
		{"storage full", nil, func(r *rig) { r.full.Store(true) }, storageRows(503, CodeStorageFull)},
		{"another history", nil, func(r *rig) { r.held.Store(true) }, storageRows(503, CodeHistoryAhead)},
		{"tickets out", []option{slots(1)}, takeTicket, storageRows(429, CodeTooManyRequests)},
		{"acts", nil, withActs(nil), []row{
			{"GET /audit?limit=2&fromSeq=1&kind=halt&subject=a&accountId=1&orderId=ord-1", "", "admin", 200,
				""},
			{"GET /audit", "", "", 401, CodeUnauthorized}, {"GET /audit", "", "one", 403, CodeAdminRequired},
			{"GET /audit?subject=J%C3%B6rg%20" + strings.Repeat("%e2%82%ac", 400), "", "admin", 200, ""},
			{"GET /audit?subject=%ff", "", "admin", 400, CodeBadRequest},
			{"GET /audit?subject=a%7f", "", "admin", 400, CodeBadRequest},
			{"GET /audit?subject=%0a", "", "admin", 400, CodeBadRequest},
			{"GET /audit?orderId=ord-%C3%B6", "", "admin", 400, CodeBadRequest},
			{"GET /audit?kind=x", "", "admin", 400, CodeBadRequest},
			{"GET /audit?orderId=5", "", "admin", 400, CodeBadRequest},
			{"GET /audit?limit=1001", "", "admin", 400, CodeBadRequest}}},
		{"no acts", nil, func(*rig) {}, []row{{"GET /audit", "", "admin", 404, CodeNotFound}}},
		{"acts are read", nil, withActs(acts.ErrBusy),
			[]row{{"GET /audit", "", "admin", 429, CodeTooManyRequests}}},
		{"acts and a disk", nil, withActs(errors.New("disk")),
			[]row{{"GET /audit", "", "admin", 500, CodeInternal}}},
		{"acts at a stop", nil, withActs(context.Canceled),
			[]row{{"GET /audit", "", "admin", 503, CodeStopping}}},
		{"no history", nil, func(r *rig) { r.serve(func(d *Deps) { d.Report, d.History = nil, nil }) },
			historyRows(404, CodeNotFound, 404, CodeNotFound, 404, CodeNotFound)},
		{"nothing indexed, a reindex under way", nil, func(r *rig) {
			r.history.missing, r.history.err = true, fmt.Errorf("blotter: %w", blotter.ErrReindexing)
			r.report.early = fmt.Errorf("audit: %w", audit.ErrBusy)
		}, historyRows(429, CodeTooManyRequests, 409, CodeReindexRunning, 503, CodeNotIndexed)},
		{"history too slow", nil, func(r *rig) {
			r.history.err, r.report.early = context.DeadlineExceeded, context.Canceled
		},
			historyRows(503, CodeStopping, 504, CodeOutcomeUnknown, 200, "")},
		{"stopping", nil, func(r *rig) {
			r.history.err, r.report.early = context.Canceled,
				errors.New("disk")
		},
			historyRows(500, CodeInternal, 503, CodeStopping, 200, "")},
		{"a log", nil, withLog(&fakeEvidence{note: []byte("a note\n")}), evidenceRows()},
		{"a log, open", nil, func(r *rig) {
			r.serve(func(d *Deps) { d.Evidence = &fakeEvidence{} })
		}, openEvidenceRows()},
		{"a log without a head", nil, withLog(&fakeEvidence{fail: evidence.ErrNotYet}), []row{
			{"GET /log/checkpoint", "", "", 503, CodeNotYet},
			{"GET /log/member", "", "", 503, CodeNotYet},
			{"GET /evidence/proof?tradeId=trd-1", "", "admin", 503, CodeNotYet}}},
		{"a busy log", nil, withLog(&fakeEvidence{fail: evidence.ErrBusy}), []row{
			{"GET /evidence/proof?tradeId=trd-1", "", "admin", 503, CodeBusy}}},
		{"a log that has stopped", nil, withLog(&fakeEvidence{fail: evidence.ErrContradiction}), []row{
			{"GET /evidence/proof?tradeId=trd-1", "", "admin", 500, CodeInternal}}},
		{"no log", nil, func(*rig) {}, []row{
			{"GET /log/checkpoint", "", "", 404, CodeNotFound},
			{"GET /log/member", "", "", 404, CodeNotFound},
			{"GET /log/tile/0/000", "", "", 404, CodeNotFound},
			{"GET /evidence/proof?inputSeq=1", "", "", 404, CodeNotFound}}},
		{"journal slow", nil, holdBack, unsafeRows(504, CodeOutcomeUnknown, 503, CodeSlowDisk)},
		{"journal failed", nil, failBehind, unsafeRows(503, CodeJournalFailed, 503, CodeJournalFailed)},
	}
	met := map[string][]int{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.options...)
			seed(r)
			tt.prepare(r)
			for _, q := range tt.rows {
				a := r.row(q)
				method, path, _ := strings.Cut(q.request, " ")
				key := method + " " + templateOf(path)
				met[key] = append(met[key], a.status)
			}
		})
	}
	for key := range met {
		// of a relay with a silent leader: TestEveryOperationIsRelayed
		if strings.HasPrefix(key, "GET ") {
			met[key] = append(met[key], 504)
		}
	}
	matcherAPI.checkMet(t, met)
}

// transportStatuses are answered before a handler runs, the same way for every
// endpoint; TestTransportAnswers meets them.
var transportStatuses = []int{400, 405, 408, 413, 414, 415, 429, 431, 500}

// row makes the request of a row and checks its answer, and that a 4xx other
// than 422 has sequenced nothing.
func (r *rig) row(q row) answer {
	r.t.Helper()
	method, path, _ := strings.Cut(q.request, " ")
	before := r.sequence()
	a := r.call(request{method: method, path: path, body: q.body, token: r.named(q.token)})
	name := fmt.Sprintf("%s %.80s token=%q", q.request, q.body, q.token)
	if a.status != q.status {
		r.t.Errorf("%s: status %d, want %d: %s", name, a.status, q.status, a.body)
		return a
	}
	if q.code != "" && a.field(r.t, "code") != string(q.code) {
		r.t.Errorf("%s: code %v, want %s", name, a.field(r.t, "code"), q.code)
	}
	if a.status >= 400 && a.status < 500 && a.status != 422 && r.sequence() != before {
		r.t.Errorf("%s: answered %d and sequenced %d", name, a.status, r.sequence())
	}
	return a
}

func (r *rig) named(name string) string { return namedToken(r.now.Load(), name) }

// namedToken is the token of a row.
func namedToken(nowMillis int64, name string) string {
	switch name {
	case "admin":
		return testToken(nowMillis, "admin")
	case "one":
		return testToken(nowMillis, "", 1)
	case "two":
		return testToken(nowMillis, "", 2)
	case "expired":
		return testToken(nowMillis, "expired", 1)
	case "metrics":
		return gate.Mint(testSecret, gate.Claims{Subject: "scraper", Metrics: true}, "", time.Hour,
			time.UnixMilli(nowMillis))
	case "bad":
		good := testToken(nowMillis, "admin")
		return good[:len(good)-2] + "xx"
	}
	return ""
}

func notReady(r *rig) {
	must.OK(r.t, r.gate.SetSource("account", 3, 1, 1, 1, "gap"))
}

func takeTicket(r *rig) {
	ticket := must.Get(r.desk.Acquire(1))(r.t)
	r.t.Cleanup(ticket.Release)
}

// holdBack leaves a decided fill that is not durable.
func holdBack(r *rig) {
	r.recorder.hold()
	r.serve(func(d *Deps) { d.AnswerTimeout = 20 * time.Millisecond })
	last := r.sequence()
	r.order("2", "Buy", "1", "101", "").want(r.t, 504, CodeOutcomeUnknown)
	r.recorder.waitApplied(last + 1)
}

// failBehind fails the journal with a decided fill that is not durable.
func failBehind(r *rig) {
	holdBack(r)
	r.fail(errors.New("no space left on device"))
}
