package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/journal/acts"
	"posttrade/journal/asof"
	"posttrade/journal/audit"
	"posttrade/journal/evidence"
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
	goodOwnLimits   = `{"policyVersion":5,"limits":{"creditLimit":"4000000000.5","priceCollarBps":null}}`
	goodSwap        = `{"accountId":1,"payReceive":"Pay","notional":1000000,"fixedRate":0.0425,` +
		`"effectiveDate":"2026-03-04","maturityDate":"2031-03-04","conventions":"USD-SOFR-1Y-ACT360"}`
	goodSwaption = `{"accountId":1,"payReceive":"Receive","notional":250000,"fixedRate":-0.001,"effectiveDate":"2026-09-04",` +
		`"maturityDate":"2036-09-04","conventions":"EUR-ESTR-1Y-ACT360","expiryDate":"2026-09-02","exerciseStyle":"Bermudan"}`
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

func enforcedRows() (rows []row) {
	for _, q := range accountRequests {
		rows = append(rows,
			row{q.request, q.body, "", 401, CodeUnauthorized},
			row{q.request, q.body, "bad", 401, CodeUnauthorized},
			row{q.request, q.body, "expired", 401, CodeUnauthorized},
			row{q.request, q.body, "two", 403, CodeNotEntitled})
	}
	for _, q := range accountRequests {
		status := 200
		if strings.HasPrefix(q.request, "POST") && !strings.Contains(q.request, "ord-1") &&
			!strings.Contains(q.request, "/swap") {
			status = 201
		}
		rows = append(rows, row{q.request, q.body, "one", status, ""})
	}
	return append(rows,
		row{"GET /orders", "", "two", 200, ""},
		row{"GET /contracts", "", "two", 200, ""},
		row{"GET /contracts/SW-99", "", "two", 404, CodeContractNotFound},
		row{"POST /swaps", "{", "two", 400, CodeMalformedBody},
		row{"POST /risk/extract", "{", "one", 403, CodeAdminRequired},
		row{"GET /orders/ord-99", "", "two", 404, CodeOrderNotFound},
		row{"POST /orders/ord-99/cancel", "", "two", 404, CodeOrderNotFound},
		row{"POST /orders", goodOrder, "admin", 201, ""},
		row{"GET /book/AAA", "", "", 200, ""},
		row{"GET /health", "", "", 200, ""},
		row{"GET /openapi.json", "", "", 200, ""},
		// The order of checks: a token before the body, the body before the entitlement.
		row{"POST /orders", "{", "", 401, CodeUnauthorized},
		row{"POST /orders", "{", "two", 400, CodeMalformedBody},
		row{"POST /prices", "{", "one", 403, CodeAdminRequired},
		row{"POST /nowhere", "{", "", 404, CodeNotFound},
		row{"DELETE /orders", "", "", 405, CodeMethodNotAllowed},
		row{"POST /orders/batch", `[` + goodOrder +
			`,{"accountId":2,"security":"AAA","side":"Buy","quantity":1,"limitPrice":1}]`,
			"one", 403, CodeNotEntitled})
}

func openRows() (rows []row) {
	for _, q := range adminRequests {
		rows = append(rows,
			row{q.request, q.body, "", 401, CodeUnauthorized},
			row{q.request, q.body, "bad", 401, CodeUnauthorized},
			row{q.request, q.body, "one", 403, CodeAdminRequired})
		status := 200
		if q.request == "POST /prices" || q.request == "POST /risk/extract" {
			status = 202
		}
		rows = append(rows, row{q.request, q.body, "admin", status, ""})
	}
	for _, path := range bodied {
		rows = append(rows,
			row{"POST " + path, "{", "admin", 400, CodeMalformedBody},
			row{"POST " + path, `{"nonsense":1}`, "admin", 400, CodeMalformedBody})
	}
	for _, request := range historyRequests {
		rows = append(rows,
			row{request, "", "", 401, CodeUnauthorized},
			row{request, "", "bad", 401, CodeUnauthorized},
			row{request, "", "one", 403, CodeAdminRequired},
			row{request, "", "admin", 200, ""},
			row{request + "?fromSeq=0", "", "one", 403, CodeAdminRequired})
	}
	for _, query := range []string{"fromSeq=0", "toSeq=0", "fromSeq=-1", "fromSeq=x", "fromSeq=1.0",
		"fromSeq=", "fromSeq=3&toSeq=2",
		"fromSeq=9223372036854775808", "toSeq=1&toSeq=1", "from=1", "fromSeq=01", "fromSeq=%2B1"} {
		rows = append(rows, row{"GET /regulatory/report?" + query, "", "admin", 400, CodeBadRequest})
	}
	for _, query := range []string{"sinceSeq=-1", "sinceSeq=x", "limit=0", "limit=1001", "cursor=x"} {
		rows = append(rows, row{"GET /recon/full-history/trades?" + query, "", "admin", 400,
			CodeBadRequest})
	}
	return append(rows,
		row{"POST /recon/full-history/reindex", `{"a":1}`, "admin", 400, CodeMalformedBody},
		row{"POST /recon/full-history/reindex", `{}`, "admin", 200, ""},
		row{"GET /recon/full-history/trades?sinceSeq=1&limit=1", "", "admin", 200, ""},
		row{"GET /regulatory/report?fromSeq=2&toSeq=3", "", "admin", 200, ""},
		row{"GET /regulatory/report?fromSeq=1000&toSeq=9223372036854775807", "", "admin", 400,
			CodeBadRequest},
		row{"POST /orders", goodOrder, "", 201, ""},
		row{"POST /orders", goodOrder, "bad", 201, ""}, // ignored while entitlements are off
		row{"POST /orders", orderBody("1", "Buy", "10", "100", `,"clientOrderId":"c-1"`), "", 201, ""},
		row{"POST /orders", orderBody("1", "Buy", "11", "100", `,"clientOrderId":"c-1"`), "", 409,
			CodeTermsDiffer},
		row{"POST /orders", orderBody("9", "Buy", "10", "100", ""), "", 422, CodeRiskRefused},
		row{"POST /orders/batch", "[" + goodOrder + "," + orderBody("9", "Buy", "1", "1", "") + "]",
			"", 201, ""},
		row{"POST /orders/batch", "[" + orderBody("1", "Buy", "12", "100", `,"clientOrderId":"c-1"`) +
			"]", "", 201, ""},
		row{"POST /orders/batch", "[]", "", 400, CodeMalformedBody},
		row{"POST /trades", goodTrade, "", 201, ""},
		row{"POST /trades", `{"accountId":1,"security":"BBB","side":"Buy","quantity":1}`, "", 422,
			CodeRiskRefused},
		row{"POST /trades",
			`{"clientOrderId":"c-1","accountId":1,"security":"AAA","side":"Buy","quantity":1}`, "", 409,
			CodeTermsDiffer},
		row{"GET /orders", "", "", 200, ""},
		row{"GET /orders?status=open&limit=1", "", "", 200, ""},
		row{"GET /orders?status=FILLED&security=AAA&accountId=1", "", "", 200, ""},
		row{"GET /orders?security=NONE", "", "", 200, ""},
		row{"GET /orders?status=OPEN", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=0", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=1001", "", "", 400, CodeBadRequest},
		row{"GET /orders?limit=1&limit=1", "", "", 400, CodeBadRequest},
		row{"GET /orders?accountId=-1", "", "", 400, CodeBadRequest},
		row{"GET /orders?accountId=4294967296", "", "", 400, CodeBadRequest},
		row{"GET /orders?cursor=AAAA", "", "", 400, CodeBadRequest},
		row{"GET /orders?nonsense=1", "", "", 400, CodeBadRequest},
		row{"GET /orders?security=%4", "", "", 400, CodeBadRequest},
		row{"GET /orders?security=", "", "", 400, CodeBadRequest},
		row{"GET /orders?a=1&b=1&c=1&d=1&e=1&f=1&g=1&h=1&i=1", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord-1", "", "", 200, ""},
		row{"GET /orders/ord-99", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-01", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-4294967297", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/ord-99999999999999999999", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/x", "", "", 404, CodeOrderNotFound},
		row{"GET /orders/" + strings.Repeat("a", 65), "", "", 400, CodeBadRequest},
		row{"POST /orders/ord-99/cancel", "", "", 404, CodeOrderNotFound},
		row{"POST /orders/ord-2/cancel", "", "", 409, CodeOrderTerminal},
		row{"POST /orders/ord-99/replace", goodReplace, "", 404, CodeOrderNotFound},
		row{"POST /orders/ord-2/replace", goodReplace, "", 409, CodeOrderTerminal},
		row{"POST /orders/ord-1/replace", `{"quantity":8,"limitPrice":101.0005}`, "", 422,
			CodeRiskRefused},
		row{"POST /orders/ord-1/replace", goodReplace, "", 200, ""},
		row{"POST /orders/ord-1/cancel", "{}", "", 200, ""},
		row{"POST /orders/ord-1/cancel", "", "", 409, CodeOrderTerminal},
		row{"GET /positions", "", "", 200, ""},
		row{"GET /positions?accountId=1&limit=1", "", "", 200, ""},
		row{"GET /positions?accountId=99", "", "", 200, ""},
		row{"GET /positions?cursor=x", "", "", 400, CodeBadRequest},
		row{"GET /book/AAA", "", "", 200, ""},
		row{"GET /book/BRK.B?depth=1", "", "", 200, ""},
		row{"GET /book/NONE", "", "", 404, CodeSecurityNotFound},
		row{"GET /book/AAA?depth=0", "", "", 400, CodeBadRequest},
		row{"GET /recon/trades/blotter?sinceSeq=1&limit=1", "", "admin", 200, ""},
		row{"GET /recon/trades/blotter?sinceSeq=-1", "", "admin", 400, CodeBadRequest},
		row{"POST /prices", `[{"security":"AAA","price":1},{"security":"NONE","price":1}]`, "admin", 404,
			CodeSecurityNotFound},
		row{"POST /prices", `[]`, "admin", 400, CodeMalformedBody},
		row{"POST /risk/control/account", `{"accountId":99,"enabled":true}`, "admin", 404,
			CodeAccountNotFound},
		row{"POST /risk/control/security", `{"security":"NONE","enabled":true,"halted":false}`, "admin",
			404, CodeSecurityNotFound},
		row{"POST /risk/control/restriction", `{"security":"NONE","restricted":true}`, "admin", 404,
			CodeSecurityNotFound},
		row{"POST /risk/control/policy", `{"policyVersion":0,"killSwitch":false}`, "admin", 400,
			CodeMalformedBody},
		row{"POST /risk/control/limits", `{"policyVersion":1,"limits":{}}`, "admin", 400,
			CodeMalformedBody},
		row{"POST /risk/control/accounts/99/limits", goodOwnLimits, "admin", 404, CodeAccountNotFound},
		row{"POST /risk/control/accounts/one/limits", goodOwnLimits, "admin", 400, CodeBadRequest},
		row{"POST /risk/control/accounts/1", goodOwnLimits, "admin", 404, CodeNotFound},
		row{"GET /risk/control/accounts/1/limits", "", "admin", 405, CodeMethodNotAllowed},
		row{"GET /health", "", "", 200, ""},
		row{"GET /openapi.json", "", "", 200, ""},
		row{"GET /", "", "", 404, CodeNotFound},
		row{"GET /orders/", "", "", 404, CodeNotFound},
		row{"GET /orders/ord-1/nothing", "", "", 404, CodeNotFound},
		row{"GET /orders//ord-1", "", "", 400, CodeBadRequest},
		row{"GET //orders", "", "", 400, CodeBadRequest},
		row{"GET /orders/./ord-1", "", "", 400, CodeBadRequest},
		row{"GET /orders/../health", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord%2D1", "", "", 400, CodeBadRequest},
		row{"GET /orders/ord-1;a=b", "", "", 400, CodeBadRequest},
		row{"GET /orders/batch", "", "", 405, CodeMethodNotAllowed},
		row{"PUT /orders/ord-1", "", "", 405, CodeMethodNotAllowed},
		row{"HEAD /health", "", "", 405, ""},
	)
}

// unsafeRows are the answers to writes and to reads while the last decision is not durable.
func unsafeRows(status int, code Code, readStatus int, readCode Code) (rows []row) {
	for _, q := range append(slices.Clone(accountRequests), adminRequests...) {
		if strings.HasPrefix(q.request, "GET") {
			rows = append(rows, row{q.request, q.body, "admin", readStatus, readCode})
		} else {
			rows = append(rows, row{q.request, q.body, "admin", status, code})
		}
	}
	return append(rows, row{"GET /book/AAA", "", "", readStatus, readCode})
}

// historyRows are the answers to historyRequests, in their order.
func historyRows(answers ...any) (rows []row) {
	for i, request := range historyRequests {
		rows = append(rows, row{request, "", "admin", answers[2*i].(int),
			Code(fmt.Sprint(answers[2*i+1]))})
	}
	return rows
}

// storageRows: admissions stop, reads go on.
func storageRows(status int, code Code) (rows []row) {
	for _, q := range append(slices.Clone(accountRequests), adminRequests...) {
		if strings.HasPrefix(q.request, "GET") {
			rows = append(rows, row{q.request, q.body, "admin", 200, ""})
		} else {
			rows = append(rows, row{q.request, q.body, "admin", status, code})
		}
	}
	return rows
}

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
				m := must[*asof.Moment](r.t)(past.At(r.t.Context(), at))
				r.t.Cleanup(m.Release)
			}
			r.serve(func(d *Deps) { d.AsOf = past })
		}, pastStatus(503, CodeBusy)},
		{"storage full", nil, func(r *rig) { r.full.Store(true) }, storageRows(503, CodeStorageFull)},
		{"another history", nil, func(r *rig) { r.held.Store(true) }, storageRows(503, CodeHistoryAhead)},
		{"tickets out", []option{slots(1)}, takeTicket, storageRows(429, CodeTooManyRequests)},
		{"acts", nil, withActs(nil), []row{
			{"GET /audit?limit=2&fromSeq=1&kind=halt&subject=a&accountId=1&orderId=ord-1", "", "admin", 200, ""},
			{"GET /audit", "", "", 401, CodeUnauthorized}, {"GET /audit", "", "one", 403, CodeAdminRequired},
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
	case "bad":
		good := testToken(nowMillis, "admin")
		return good[:len(good)-2] + "xx"
	}
	return ""
}

func notReady(r *rig) {
	if err := r.gate.SetSource("account", 3, 1, 1, 1, "gap"); err != nil {
		r.t.Fatal(err)
	}
}

func takeTicket(r *rig) {
	ticket, err := r.desk.Acquire(1)
	if err != nil {
		r.t.Fatal(err)
	}
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
