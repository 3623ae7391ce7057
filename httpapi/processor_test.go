package httpapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/matcher/note"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/store"
	"posttrade/sidecars/tca"
)

// The trade-processor's endpoints by what they need. trd-1 belongs to account 1.
var (
	processorAdmin = []string{"GET /recon/breaks", "POST /recon/orphan-sweep",
		"GET /recon/orphan-sweep/last"}
	processorAccount = []string{
		"GET /trades?accountId=1", "GET /trades/trd-1", "POST /trades/trd-1/settlement/force",
		"GET /tca/report/trd-1", "GET /tca/summary?accountId=1",
		"GET /settlement/calendar?accountId=1&from=2026-03-01&to=2026-03-09",
	}
	processorAny = []string{"GET /recon/status", "GET /trades", "GET /tca/summary",
		"GET /settlement/calendar?from=2026-03-01&to=2026-03-01"}
)

func processorRows() (rows []row) {
	for _, request := range processorAdmin {
		rows = append(rows, row{request, "", "", 401, CodeUnauthorized},
			row{request, "", "bad", 401, CodeUnauthorized},
			row{request, "", "one", 403, CodeAdminRequired})
	}
	rows = append(rows, row{"GET /recon/orphan-sweep/last", "", "admin", 404, CodeSweepNotFound})
	for _, request := range append(processorAdmin[:3:3], processorAny...) {
		rows = append(rows, row{request, "", "admin", 200, ""})
	}
	for _, request := range processorAccount {
		rows = append(rows, row{request, "", "", 401, CodeUnauthorized},
			row{request, "", "expired", 401, CodeUnauthorized},
			row{request, "", "two", 403, CodeNotEntitled}, row{request, "", "one", 200, ""}, row{request, "",
				"admin", 200, ""})
	}
	for _, request := range processorAny {
		rows = append(rows, row{request, "", "", 401, CodeUnauthorized}, row{request, "", "two", 200, ""},
			row{request, "", "metrics", 403, CodeNotEntitled})
	}
	for _, id := range []string{"trd-99", "trd-0", "trd-01", "trd-", "trd", "1", "TRD-1",
		"trd-18446744073709551616", "ord-1", "trd--1"} {
		for _, token := range []string{"", "two"} {
			status, code := 401, CodeUnauthorized
			if token != "" {
				status, code = 404, CodeTradeNotFound
			}
			rows = append(rows, row{"GET /trades/" + id, "", token, status, code},
				row{"POST /trades/" + id + "/settlement/force", "", token, status, code},
				row{"GET /tca/report/" + id, "", token, status, code})
		}
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "accountId=-1",
		"accountId=4294967296", "accountId=", "status=settled",
		"status=SETTLED", "settlementDate=2026-3-3", "settlementDate=2026-02-30",
		"settlementDate=20260303", "cursor=x", "cursor=AAAA",
		"nonsense=1", "limit=1&limit=1", "security=", "tradeDate=2026-02-30", "tradeDate=",
		"tradeDate=2026-03-02T10:00:00Z", "from=yesterday", "to=2026-03-02T25:00:00Z",
		"from=2026-03-02T10:00:00", "from=2026-03-02T10:00:00,5Z", "to=1772445600000",
		"from=2026-03-03&to=2026-03-02"} {
		rows = append(rows, row{"GET /trades?" + query, "", "two", 400, CodeBadRequest},
			row{"GET /trades?" + query, "", "", 401, CodeUnauthorized})
	}
	for _, query := range []string{"", "to=2026-03-01",
		"from=2026-03-02&to=2026-03-01", "from=2026-02-30&to=2026-03-01", "from=2026-03-01&to=today",
		"from=2026-03-01&to=2027-04-05",
		"from=2026-03-01&to=2026-03-01&limit=1", "from=2026-03-01&to=2026-03-01&accountId=x"} {
		rows = append(rows, row{"GET /settlement/calendar?" + query, "", "two", 400, CodeBadRequest},
			row{"GET /settlement/calendar?" + query, "", "", 401, CodeUnauthorized})
	}
	for _, query := range []string{"from=yesterday", "from=2026-13-01", "to=2026-03-02T10:00:00",
		"to=2026-03-02T10:00:00,5Z",
		"to=1772445600000", "to=1970-01-01",
		"from=1969-12-31", "from=2026-03-03&to=2026-03-02", "accountId=x", "limit=1",
		"to=2026-03-02T25:00:00Z"} {
		rows = append(rows, row{"GET /tca/summary?" + query, "", "one", 400, CodeBadRequest})
	}
	for _, query := range []string{"class=MATCHED", "class=missing_in_projection", "class=", "limit=0",
		"limit=1001", "cursor=other", "x=1"} {
		rows = append(rows, row{"GET /recon/breaks?" + query, "", "admin", 400, CodeBadRequest},
			row{"GET /recon/breaks?" + query, "", "one", 403, CodeAdminRequired})
	}
	for _, path := range []string{"/recon/orphan-sweep", "/trades/trd-1/settlement/force",
		"/trades/trd-99/settlement/force",
		"/trades/trd-3/settlement/force"} {
		rows = append(rows, row{"POST " + path, "{", "admin", 400, CodeMalformedBody},
			row{"POST " + path, `{"a":1}`, "admin", 400, CodeMalformedBody})
	}
	return append(rows,
		row{"POST /recon/orphan-sweep", "{", "one", 403, CodeAdminRequired},
		// the body comes before the account
		row{"POST /trades/trd-3/settlement/force", "{", "one", 400, CodeMalformedBody},
		row{"POST /trades/trd-3/settlement/force", "", "one", 403, CodeNotEntitled},
		row{"POST /trades/trd-2/settlement/force", "{}", "one", 200, ""}, // is settled already
		row{"GET /trades?accountId=99", "", "admin", 200, ""},
		row{"GET /trades?accountId=99&limit=0", "", "one", 400, CodeBadRequest},
		row{"GET /trades/trd-2", "", "one", 200, ""},
		row{"GET /trades/trd-6", "", "admin", 200, ""},
		row{"GET /trades/ext-A.1", "", "admin", 200, ""},
		row{"GET /trades/ext-A.1", "", "one", 403, CodeNotEntitled},
		row{"GET /trades/ext-B", "", "admin", 404, CodeTradeNotFound},
		row{"POST /trades/ext-A.1/settlement/force", "", "admin", 200, ""},
		row{"GET /tca/report/ext-A.1", "", "admin", 404, CodeTradeNotFound},
		row{"GET /tca/report/trd-2", "", "one", 200, ""},
		row{"GET /recon/breaks?cursor=page2&class=FIELD_MISMATCH&limit=1000", "", "admin", 200, ""},
		row{"GET /health", "", "", 200, ""},
		row{"GET /health", "", "bad", 200, ""},
		row{"GET /openapi.json", "", "", 200, ""},
		row{"GET /actuator/prometheus", "", "", 200, ""},
		row{"GET /actuator/prometheus", "", "bad", 200, ""},
		row{"GET /", "", "", 404, CodeNotFound},
		row{"GET /trades/", "", "admin", 404, CodeNotFound},
		row{"GET /trades/trd-1/settlement", "", "admin", 404, CodeNotFound},
		row{"GET /trades/trd-1/settlement/force/x", "", "admin", 404, CodeNotFound},
		row{"GET /tca/report/", "", "admin", 404, CodeNotFound},
		row{"GET /tca/report/trd-1/x", "", "admin", 404, CodeNotFound},
		row{"GET /trades//trd-1", "", "admin", 400, CodeBadRequest},
		row{"GET /trades/trd%2D1", "", "admin", 400, CodeBadRequest},
		row{"GET /trades/" + strings.Repeat("a", 65), "", "admin", 400, CodeBadRequest},
		row{"GET /trades/trd-1/settlement/force", "", "admin", 405, CodeMethodNotAllowed},
		row{"POST /trades", "", "admin", 405, CodeMethodNotAllowed},
		row{"PUT /recon/status", "", "admin", 405, CodeMethodNotAllowed},
		row{"GET /auth/dev-token", "", "", 405, CodeMethodNotAllowed},
		row{"POST /auth/dev-token", "{", "admin", 401, CodeUnauthorized}, // a token is no master secret
	)
}

// failingRows: every endpoint that reads a database or an index answers the same problem.
func failingRows(status int, code Code) (rows []row) {
	for _, list := range [][]string{processorAdmin, processorAccount, processorAny} {
		for _, request := range list {
			rows = append(rows, row{request, "", "admin", status, code},
				row{request, "", "", 401, CodeUnauthorized})
		}
	}
	return append(rows, row{"GET /health", "", "", 200, ""},
		row{"GET /actuator/prometheus", "", "", 200, ""},
		row{"POST /recon/repair", goodRepair, "admin", status, code},
		row{"POST /recon/repair", goodRepair, "one", 403, CodeAdminRequired},
		row{"POST /recon/statement", goodStatement, "admin", status, code},
		row{putMarksRequest, goodMarks, "admin", status, code}, row{putMarksRequest, goodMarks, "", 401,
			CodeUnauthorized})
}

// TestProcessorContract drives every endpoint of the trade-processor through every status that its
// handler can answer, and reports every status of the document that no row has met.
func TestProcessorContract(t *testing.T) {
	wrapped := func(err error) func(*processorRig) {
		return func(r *processorRig) { r.fakes.err = fmt.Errorf("store: read: %w", err) }
	}
	tests := []struct {
		name    string
		change  func(d *ProcessorDeps)
		prepare func(r *processorRig)
		rows    []row
	}{
		{"all is well", nil, nil,
			slices.Concat(processorRows(), marksRows(), repairRequests(), revokeRows())},
		{"no database", nil, wrapped(store.ErrUnavailable), failingRows(503, CodeDatabaseUnavailable)},
		{"no lock", nil, wrapped(fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrLocked)),
			failingRows(503, CodeDatabaseLocked)},
		{"another history", nil, wrapped(fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrForeign)),
			failingRows(503, CodeForeignDatabase)},
		{"too slow", nil, wrapped(context.DeadlineExceeded), failingRows(504, CodeOutcomeUnknown)},
		{"stopping", nil, wrapped(context.Canceled), failingRows(503, CodeStopping)},
		{"broken", nil, wrapped(errPlanted), failingRows(500, CodeInternal)},
		{"a sweep under way", nil, wrapped(recon.ErrBusy),
			[]row{{"POST /recon/orphan-sweep", "", "admin", 409, CodeSweepRunning}}},
		{"a repair under way", nil, wrapped(recon.ErrRepairing),
			[]row{{"POST /recon/repair", goodRepair, "admin", 409, CodeRepairRunning}}},
		{"a reindex under way", nil, wrapped(blotter.ErrReindexing),
			[]row{{"POST /recon/orphan-sweep", "", "admin", 409, CodeReindexRunning}}},
		{"no room for a revocation", nil, func(r *processorRig) {
			r.actError = note.Refused{Reason: matcher.Capacity}
		}, []row{{"POST /auth/revoke", goodRevoke, "admin", 409, CodeCapacity}}},
		{"a revocation while it stops", nil, func(r *processorRig) { r.actError = desk.ErrClosed },
			[]row{{"POST /auth/revoke", goodRevoke, "admin", 503, CodeStopping}}},
		{"a revocation that takes long", nil,
			func(r *processorRig) { r.actError = context.DeadlineExceeded },
			[]row{{"POST /auth/revoke", goodRevoke, "admin", 504, CodeOutcomeUnknown}}},
		{"the history behind", func(d *ProcessorDeps) { d.Trades = &fakes{rows: testTrades()} },
			wrapped(tca.ErrBehind), []row{
				{"GET /tca/report/trd-1", "", "one", 503, CodeNotCaughtUp},
				{"GET /tca/summary", "", "one", 503, CodeNotCaughtUp},
				{"GET /tca/report/trd-3", "", "one", 403, CodeNotEntitled}}},
		{"the history damaged", func(d *ProcessorDeps) { d.Trades = &fakes{rows: testTrades()} },
			wrapped(tca.ErrDamaged), []row{
				{"GET /tca/report/trd-1", "", "one", 503, CodeNotCaughtUp}}},
		{"the row goes", func(d *ProcessorDeps) {
			d.Record = func(context.Context, *note.Note) (uint64, error) { return 77, nil }
		}, func(r *processorRig) { r.fakes.gone = true }, []row{
			{"POST /trades/trd-1/settlement/force", "", "one", 404, CodeTradeNotFound}}},
		{"no revocation", func(d *ProcessorDeps) { d.Revocation = Revocation{} }, nil,
			[]row{{"POST /auth/revoke", goodRevoke, "admin", 404, CodeNotFound}}},
		{"bare", func(d *ProcessorDeps) { d.Metrics, d.Mint.MasterSecret, d.Marks = nil, nil, nil }, nil,
			[]row{
				{putMarksRequest, goodMarks, "", 404, CodeNotFound},
				{"GET /actuator/prometheus", "", "", 404, CodeNotFound},
				{"POST /auth/dev-token", "", "", 404, CodeNotFound}}},
	}
	met := map[string][]int{"POST /auth/dev-token": {200}} // see TestDevToken
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newProcessorRig(t, func(d *ProcessorDeps) {
				if tt.change != nil {
					tt.change(d)
				}
			})
			if tt.prepare != nil {
				tt.prepare(r)
			}
			for _, q := range tt.rows {
				a := r.row(q)
				if tt.name == "the row goes" && a.field(t, "sequence") != "77" {
					t.Errorf("the act is on record: %s", a.body)
				}
				method, path, _ := strings.Cut(q.request, " ")
				key := method + " " + templateOf(path)
				met[key] = append(met[key], a.status)
			}
		})
	}
	processorAPI.checkMet(t, met)
}

// row makes the request of a row and checks its answer, and that nothing behind the edge was called
// when the caller was refused before that.
func (r *processorRig) row(q row) answer {
	r.t.Helper()
	method, path, _ := strings.Cut(q.request, " ")
	before := r.fakes.calls.Load()
	a := r.call(request{method: method, path: path, body: q.body,
		token: namedToken(r.now.Load(), q.token)})
	name := fmt.Sprintf("%s %.80s token=%q", q.request, q.body, q.token)
	if a.status != q.status {
		r.t.Errorf("%s: status %d, want %d: %s", name, a.status, q.status, a.body)
		return a
	}
	if q.code != "" && a.field(r.t, "code") != string(q.code) {
		r.t.Errorf("%s: code %v, want %s", name, a.field(r.t, "code"), q.code)
	}
	early := a.status == 400 && q.request != "GET /recon/breaks?cursor=other" || a.status == 401 ||
		a.status == 405 || q.code == CodeAdminRequired
	if early && r.fakes.calls.Load() != before {
		r.t.Errorf("%s: answered %d and asked behind the edge", name, a.status)
	}
	if allow := a.header.Get("Allow"); a.status == 405 && allow != "GET" && allow != "POST" &&
		allow != "PUT" {
		r.t.Errorf("%s: Allow %q", name, allow)
	}
	if a.status == 503 && a.header.Get("Retry-After") == "" {
		r.t.Errorf("%s: no Retry-After", name)
	}
	return a
}

// TestProcessorDocuments compares whole answers.
func TestProcessorDocuments(t *testing.T) {
	r := newProcessorRig(t)
	trade := func(seq int, account, security, side, status, date, order string) string {
		return fmt.Sprintf(`{"id":"trd-%d","tradeSeq":%d,"accountId":%s,"security":"%s","side":"%s",`+
			`"quantity":%d,"price":100.25,`+
			`"status":"%s","settlementDate":"%s","timestamp":"2026-03-02T10:00:00.00%dZ","orderId":%s,`+
			`"updatedAt":"2026-03-02T10:00:00.060Z"}`,
			seq, seq, account, security, side, 10*seq, status, date, seq, order)
	}
	first := trade(1, "1", "AAA", "Buy", "Processing", "2026-03-03", `"ord-1"`)
	second := trade(2, "1", "BRK.B", "Sell", "Settled", "2026-03-04", "null")
	third := trade(3, "2", "AAA", "Buy", "Processing", "2026-03-03", `"ord-3"`)
	fourth := trade(4, "1", "BRK.B", "Sell", "Settled", "2026-03-04", "null")
	fill := `{"accountId":1,"security":"AAA","side":"Sell","quantity":5,"price":1.5,` +
		`"timestamp":"2026-03-02T10:00:00.000Z"}`
	broken := `{"accountId":2,"security":"A\"A","side":"Buy","quantity":-5,"price":-1.5,` +
		`"timestamp":"2026-03-02T10:00:00.001Z"}`
	sweep := `{"sweptAt":"2026-03-02T10:00:00.000Z","localTradeCount":6,"fullHistoryTradeCount":5,` +
		`"orphanCount":1,"orphanIds":["trd-6"],"truncated":false}`
	costs := func(n int) string {
		return fmt.Sprintf(
			`"trades":%d,"withBenchmark":0,"averageSlippageBps":null,"averageArrivalSlippageBps":null`, n)
	}
	window := `"twapWindowStart":"2026-03-02T09:55:00.000Z",` +
		`"twapWindowEnd":"2026-03-02T10:00:00.000Z",` +
		`"twapSampleCount":4,"slippageBps":null,"arrivalSlippageBps":null}`
	for _, tt := range []struct{ request, token, want string }{
		{"GET /trades", "one", `{"items":[` + first + "," + second + "," + fourth +
			`],"nextCursor":null}`},
		{"GET /trades?limit=3", "one", `{"items":[` + first + "," + second + "," + fourth +
			`],"nextCursor":null}`},
		{"GET /trades?accountId=1&status=Settled&security=BRK.B&settlementDate=2026-03-04", "one",
			`{"items":[` + second + "," + fourth + `],"nextCursor":null}`},
		{"GET /trades?security=AAA&limit=2", "admin",
			`{"items":[` + first + "," + third + `],"nextCursor":"` + cursorOf(cursorTrades, 3) + `"}`},
		{"GET /trades?limit=1&cursor=" + cursorOf(cursorTrades, 2), "admin",
			`{"items":[` + third + `],"nextCursor":"` + cursorOf(cursorTrades, 3) + `"}`},
		{"GET /trades?accountId=7", "admin", `{"items":[],"nextCursor":null}`},
		{"GET /settlement/calendar?from=2026-03-03&to=2027-04-06", "one",
			`{"items":[{"settlementDate":"2026-03-03","due":1,"settled":0,"forced":0},` +
				`{"settlementDate":"2026-03-04","due":0,"settled":1,"forced":1}]}`},
		{"GET /settlement/calendar?accountId=7&from=2026-03-03", "admin", `{"items":[]}`},
		{"GET /trades/trd-1", "one", first},
		{"POST /trades/trd-1/settlement/force", "one",
			strings.Replace(first, "Processing", "Settled", 1)},
		{"GET /recon/status", "two",
			`{"cursor":6,"matched":3,"missingInProjection":2,"fieldMismatch":1,"orphans":4,"lag":7,` +
				`"external":9,"externalUnmatched":2,` +
				`"lastSweepAt":null,"lastOrphanSweepAt":null}`},
		{"GET /recon/breaks", "admin", `{"items":[` +
			`{"class":"MISSING_IN_PROJECTION","tradeId":"trd-1","tradeSeq":1,"fields":[],"journal":` + fill +
			`,"projection":null,` +
			`"firstSeenAt":"2026-03-02T10:00:00.000Z","lastSeenAt":"2026-03-02T10:00:00.002Z"},` +
			`{"class":"FIELD_MISMATCH","tradeId":"trd-2","tradeSeq":2,"fields":["account","price"],` +
			`"journal":` + fill + `,"projection":` + broken + `,` +
			`"firstSeenAt":"1970-01-01T00:00:00.000Z","lastSeenAt":"1970-01-01T00:00:00.000Z"},` +
			`{"class":"ORPHAN_IN_PROJECTION","tradeId":"trd-9é","tradeSeq":9,"fields":[],"journal":null,` +
			`"projection":` +
			strings.TrimSuffix(broken, "}") + `,"status":"Settled","settlementDate":null,"orderId":"x",` +
			`"sequence":7,` +
			`"bookedAt":"2026-03-02T10:00:00.000Z","updatedAt":"2026-03-02T10:00:00.001Z"},` +
			`"firstSeenAt":"1970-01-01T00:00:00.000Z","lastSeenAt":"1970-01-01T00:00:00.000Z"},` +
			`{"class":"FIELD_MISMATCH","tradeId":"trd-3","tradeSeq":3,"fields":["bookedAt"],"journal":` +
			strings.TrimSuffix(fill, "}") + `,"status":null,"settlementDate":"2026-03-03","orderId":null,` +
			`"sequence":null,` +
			`"bookedAt":null,"updatedAt":null},"projection":null,` +
			`"firstSeenAt":"1970-01-01T00:00:00.000Z","lastSeenAt":"1970-01-01T00:00:00.000Z"},` +
			`{"class":"EXTERNAL","tradeId":"ext-1","tradeSeq":null,"fields":[],"journal":null,` +
			`"projection":` + fill +
			`,"statement":` + broken + `,` +
			`"firstSeenAt":"1970-01-01T00:00:00.000Z","lastSeenAt":"1970-01-01T00:00:00.000Z"}],` +
			`"nextCursor":"page2"}`},
		{"GET /recon/breaks?cursor=page2", "admin", `{"items":[],"nextCursor":null}`},
		{"POST /recon/orphan-sweep", "admin", sweep},
		{"GET /recon/orphan-sweep/last", "admin", sweep},
		{"GET /recon/status", "one",
			`{"cursor":6,"matched":3,"missingInProjection":2,"fieldMismatch":1,"orphans":4,"lag":7,` +
				`"external":9,"externalUnmatched":2,` +
				`"lastSweepAt":"2026-03-02T10:00:00.000Z","lastOrphanSweepAt":"2026-03-02T10:00:00.001Z"}`},
		{"GET /tca/report/trd-1", "one",
			`{"tradeId":"trd-1","accountId":1,"security":"AAA","side":"Buy","quantity":10,` +
				`"executionPrice":100.25,` +
				`"arrivalPrice":99,"arrivalAt":"2026-03-02T10:00:00.000Z","twap":99.5,` + window},
		{"GET /tca/report/trd-2", "one",
			`{"tradeId":"trd-2","accountId":1,"security":"BRK.B","side":"Sell","quantity":20,` +
				`"executionPrice":100.25,` +
				`"arrivalPrice":null,"arrivalAt":null,"twap":null,` + window},
		{"GET /tca/summary", "one", `{` + costs(3) + `,"bySecurity":[{"security":"AAA",` + costs(1) +
			`},{"security":"BRK.B",` + costs(2) + `}]}`},
		{"GET /health", "",
			`{"service":"trade-processor","status":"ok","role":"SINGLE","durability":"fsync","applied":12,` +
				`"durable":11,"projected":10}`},
		{"GET /openapi.json", "", string(openAPITradeProcessor)},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		a := r.call(request{method: method, path: path, token: namedToken(testStart, tt.token)})
		if a.status != 200 || string(a.body) != tt.want {
			t.Errorf("%s: %d\n%s\nwant\n%s", tt.request, a.status, a.body, tt.want)
		}
		if a.header.Get("X-Durability") != "fsync" {
			t.Errorf("%s: no X-Durability", tt.request)
		}
	}
}

func cursorOf(list byte, last uint64) string {
	return strings.Trim(string(appendCursor(nil, list, last)), `"`)
}

// TestQueriesReachWhatIsAsked checks how the handlers pass their parameters on.
func TestQueriesReachWhatIsAsked(t *testing.T) {
	r := newProcessorRig(t)
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC).UnixMilli()
	for _, tt := range []struct {
		query, token string
		accounts     []uint32
		from, to     int64
	}{
		{"", "admin", nil, 0, 0},
		{"", "two", []uint32{2}, 0, 0},
		{"?accountId=4294967295", "admin", []uint32{farAccount}, 0, 0},
		{"?from=2026-03-02T12:00:00Z&to=2026-03-02T14:00:00.001%2B02:00", "one", []uint32{1},
			noon, noon + 1},
		{"?from=2026-03-02T12:00:00.0001Z&to=2026-03-02T12:00:00.0011Z", "one", []uint32{1},
			noon + 1, noon + 2},
		{"?from=2026-03-02&to=2026-03-03", "one", []uint32{1}, noon - 12*3600_000, noon + 12*3600_000},
		{"?from=2026-03-02&to=2026-03-02", "one", []uint32{1}, noon - 12*3600_000, noon - 12*3600_000},
	} {
		r.get("/tca/summary"+tt.query, tt.token).want(t, 200, "")
		got := r.fakes.summary
		if fmt.Sprint(got.Accounts == nil, got.Accounts, got.FromMillis,
			got.ToMillis) != fmt.Sprint(tt.accounts == nil, tt.accounts, tt.from, tt.to) {
			t.Errorf("%s as %s asks for %+v", tt.query, tt.token, got)
		}
	}
	// A token without accounts sees nothing: nil would be everything.
	none := testToken(testStart, "")
	r.call(request{method: "GET", path: "/trades", token: none}).want(t, 200, "")
	if f := r.fakes.filter; f.Accounts == nil || len(f.Accounts) != 0 || f.Limit != defaultPage+1 {
		t.Errorf("no account asks for %+v", f)
	}
	r.get("/recon/breaks?class=ORPHAN_IN_PROJECTION&limit=7&cursor=page2", "admin").want(t, 200, "")
	if r.fakes.last != (recon.BreakQuery{Class: recon.OrphanInProjection,
		AfterKey: "page2", Limit: 7}) {
		t.Errorf("breaks asked for %+v", r.fakes.last)
	}
}

// TestForceOfALockedTradeSaysWhatItWaitedFor in its detail, and when to try again.
func TestForceOfALockedTradeSaysWhatItWaitedFor(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades = &fakes{rows: testTrades()} })
	const what = `the lock on row trd-1 of table trades, held by database session 7 of "psql"`
	r.fakes.err = fmt.Errorf("settlement: %w", &store.LockedError{What: what,
		Cause: fmt.Errorf("%w: %w", store.ErrUnavailable, store.ErrLocked)})
	a := r.post("/trades/trd-1/settlement/force", "", "one").want(t, 503, CodeDatabaseLocked)
	if got := a.field(t, "detail"); got != "waited for "+what || a.header.Get("Retry-After") != "1" {
		t.Errorf("%q, %v", got, a.header)
	}
}

// TestAWriteAheadOfRestoredRowsSaysWhereToLook in its detail.
func TestAWriteAheadOfRestoredRowsSaysWhereToLook(t *testing.T) {
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades = &fakes{rows: testTrades()} })
	r.fakes.err = fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrNotRestored, store.ErrKept)
	a := r.post("/trades/trd-1/settlement/force", "", "one").want(t, 503, CodeDatabaseUnavailable)
	if detail, _ := a.field(t, "detail").(string); !strings.Contains(detail, `part "restored"`) {
		t.Errorf("%q", detail)
	}
}

// TestDateThatIsNoneIsNotShown: the row was edited by hand.
func TestDateThatIsNoneIsNotShown(t *testing.T) {
	rows := testTrades()
	rows[0].SettlementDate = store.NoDate
	r := newProcessorRig(t, func(d *ProcessorDeps) { d.Trades = &fakes{rows: rows} })
	a := r.get("/trades/trd-1", "one").want(t, 200, "")
	if got := a.field(t, "settlementDate"); got != nil {
		t.Errorf("settlementDate %v", got)
	}
	if a := r.get("/trades", "admin").want(t, 200, ""); strings.Contains(string(a.body), "no date") {
		t.Errorf("%s", a.body)
	}
}
