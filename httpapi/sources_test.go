package httpapi

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"posttrade/ring/must"
	"posttrade/sidecars/accounts"
	"posttrade/sidecars/control"
	"posttrade/sidecars/securities"
	"posttrade/sidecars/store"
	"posttrade/sidecars/store/storetest"
)

// The writes of the sources and good bodies for them.
var (
	accountWrites = []string{"POST /account/", "PUT /account/", "POST /account", "PUT /account"}
	stockWrites   = []string{"POST /stocks"}
)

const (
	goodAccountRow = `{"id":7,"displayName":"Seven"}`
	goodStockRow   = `{"ticker":"AAA","companyName":"Triple A"}`
)

// badNames are invalid names, as JSON.
var badNames = []string{
	`""`, `"   "`, `"\u0020\u2003"`, `"` + strings.Repeat("n", 257) + `"`,
	`"` + strings.Repeat("é", 129) + `"`, `"a\u0000b"`, `"a\nb"`,
	`"a\u007fb"`, `"a\u0085b"`, `null`, `7`, `true`, `["a"]`, `{"a":1}`, `"\ud800"`, "\"\xff\"",
	`"a`, "\"a\tb\"",
}

func badBodies(good, name string) (bodies []string) {
	for _, bad := range badNames {
		bodies = append(bodies, strings.Replace(good, name, bad, 1))
	}
	for _, bad := range []string{"null", "1", `"true"`, `"yes"`, "{}"} {
		bodies = append(bodies, strings.Replace(good, "}", `,"enabled":`+bad+"}", 1))
	}
	return append(bodies, "", "null", "[]", "["+good+"]", "7", `"x"`, "{", "{}", good+"x", good+good,
		"\ufeff"+good,
		strings.Replace(good, "}", `,"version":1}`, 1), strings.Replace(good, "}", `,"Enabled":true}`, 1),
		strings.Replace(good, "}", `,"enabled":true,"enabled":true}`, 1),
		strings.Replace(good, "}", ",}", 1),
		strings.Replace(good, "{", `{"displayName":"again",`, 1), strings.Replace(good, "{",
			`{"companyName":"again",`, 1))
}

// badAccounts are bodies of invalid accounts.
func badAccounts() []string {
	bodies := append(badBodies(goodAccountRow, `"Seven"`), `{"displayName":"Seven"}`, `{"id":7}`,
		strings.Replace(goodAccountRow, "}", `,"halted":false}`, 1))
	for _, id := range []string{"0", "-1", "4294967296", "4294967303", "99999999999999999999", "7.0",
		"7e0", `"7"`, "null", "true", "07", "+7", "[7]"} {
		bodies = append(bodies, strings.Replace(goodAccountRow, "7", id, 1))
	}
	return bodies
}

// badStocks are bodies of invalid stocks.
func badStocks() []string {
	bodies := append(badBodies(goodStockRow, `"Triple A"`), `{"companyName":"Triple A"}`,
		`{"ticker":"AAA"}`)
	for _, halted := range []string{"null", "0", `"false"`} {
		bodies = append(bodies, strings.Replace(goodStockRow, "}", `,"halted":`+halted+"}", 1))
	}
	for _, ticker := range []string{`""`, `"  "`, `"A B"`, `"A_B"`, `"A/B"`, `"ABCDEFGHIJKLMNOPQ"`,
		`"é"`, `"ı"`, `"ſ"`, `"A\n"`, `"\tA"`, `"A\u0000"`,
		`"A*"`, `"."`, `".."`, `7`, `null`, `["AAA"]`, `"` + strings.Repeat(" A", 2000) + `"`} {
		bodies = append(bodies, strings.Replace(goodStockRow, `"AAA"`, ticker, 1))
	}
	return bodies
}

// accountRows are the rows of an account-service that requires no tokens.
func accountRows() (rows []row) {
	for _, token := range []string{"", "bad", "expired", "two", "admin"} {
		for _, write := range accountWrites {
			rows = append(rows, row{write, goodAccountRow, token, 200, ""},
				row{write, "{", token, 400, CodeMalformedBody})
		}
		for _, read := range []string{"GET /account/", "GET /account", "GET /account/7",
			"GET /account/control-snapshot", "GET /health", "GET /openapi.json"} {
			rows = append(rows, row{read, "", token, 200, ""})
		}
	}
	for _, id := range []string{"0", "-7", "07", "4294967296", "4294967303", "18446744073709551616",
		"7.0", "x", "ctrl", "control-snapshots", "Control-Snapshot", "7-"} {
		rows = append(rows, row{"GET /account/" + id, "", "", 400, CodeBadRequest})
	}
	for _, id := range []string{"1", "8", "4294967295"} {
		rows = append(rows, row{"GET /account/" + id, "", "", 404, CodeAccountNotFound})
	}
	for _, body := range badAccounts() {
		rows = append(rows, row{"POST /account/", body, "", 400, CodeMalformedBody},
			row{"PUT /account", body, "", 400, CodeMalformedBody})
	}
	return append(rows,
		row{"GET /account//", "", "", 400, CodeBadRequest},
		row{"GET //account/", "", "", 400, CodeBadRequest},
		row{"GET /account/%37", "", "", 400, CodeBadRequest},
		row{"GET /account/" + strings.Repeat("7", 65), "", "", 400, CodeBadRequest},
		row{"GET /", "", "", 404, CodeNotFound},
		row{"GET /accounts", "", "", 404, CodeNotFound},
		row{"GET /account/7/", "", "", 404, CodeNotFound},
		row{"GET /account/7/orders", "", "", 404, CodeNotFound},
		row{"GET /account/control-snapshot/", "", "", 404, CodeNotFound},
		row{"GET /stocks", "", "", 404, CodeNotFound},
		row{"DELETE /account/7", "", "", 405, CodeMethodNotAllowed},
		row{"PUT /account/7", goodAccountRow, "", 405, CodeMethodNotAllowed},
		row{"POST /account/control-snapshot", goodAccountRow, "", 405, CodeMethodNotAllowed},
		row{"PATCH /account/", goodAccountRow, "", 405, CodeMethodNotAllowed},
		row{"PUT /health", "", "", 405, CodeMethodNotAllowed},
	)
}

// stockRows are those of a reference-data service.
func stockRows() (rows []row) {
	for _, token := range []string{"", "bad", "expired", "two", "admin"} {
		rows = append(rows, row{"POST /stocks", goodStockRow, token, 200, ""},
			row{"POST /stocks", "{", token, 400, CodeMalformedBody},
			row{"POST /stocks", fmt.Sprintf(`{"ticker":"NEW%d","companyName":"New"}`, len(rows)),
				token, 201, ""})
		for _, read := range []string{"GET /stocks", "GET /stocks/AAA", "GET /stocks/control-snapshot",
			"GET /health", "GET /openapi.json"} {
			rows = append(rows, row{read, "", token, 200, ""})
		}
	}
	for _, ticker := range []string{"B", "aaa", "AAA.", "CONTROL-SNAPSHOT", "Control-Snapshot", "A_A",
		strings.Repeat("A", 17), strings.Repeat("A", 64)} {
		rows = append(rows, row{"GET /stocks/" + ticker, "", "", 404, CodeSecurityNotFound})
	}
	for _, body := range badStocks() {
		rows = append(rows, row{"POST /stocks", body, "", 400, CodeMalformedBody})
	}
	return append(rows,
		row{"GET /stocks//AAA", "", "", 400, CodeBadRequest},
		row{"GET /stocks/A%41A", "", "", 400, CodeBadRequest},
		row{"GET /stocks/..", "", "", 400, CodeBadRequest},
		row{"GET /stocks/" + strings.Repeat("A", 65), "", "", 400, CodeBadRequest},
		row{"GET /stocks/", "", "", 404, CodeNotFound},
		row{"GET /stocks/AAA/", "", "", 404, CodeNotFound},
		row{"GET /stocks/AAA/book", "", "", 404, CodeNotFound},
		row{"GET /stock", "", "", 404, CodeNotFound},
		row{"GET /account/", "", "", 404, CodeNotFound},
		row{"PUT /stocks", goodStockRow, "", 405, CodeMethodNotAllowed},
		row{"DELETE /stocks/AAA", "", "", 405, CodeMethodNotAllowed},
		row{"POST /stocks/AAA", goodStockRow, "", 405, CodeMethodNotAllowed},
		row{"POST /stocks/control-snapshot", "", "", 405, CodeMethodNotAllowed},
	)
}

// guardedRows are the rows of a source that requires tokens, except those of its reads.
func guardedRows(writes []string, good, snapshot string) (rows []row) {
	for _, token := range []string{"", "bad", "expired"} {
		for _, write := range writes {
			rows = append(rows, row{write, good, token, 401, CodeUnauthorized},
				row{write, "{", token, 401, CodeUnauthorized})
		}
		rows = append(rows, row{snapshot, "", token, 401, CodeUnauthorized})
	}
	for _, write := range writes {
		rows = append(rows, row{write, good, "one", 403, CodeAdminRequired},
			row{write, "{", "one", 403, CodeAdminRequired},
			row{write, "{", "admin", 400, CodeMalformedBody}, row{write, good, "admin", 200, ""})
	}
	return append(rows, row{snapshot, "", "one", 403, CodeAdminRequired},
		row{snapshot, "", "admin", 200, ""})
}

// brokenRows: every endpoint that reads the database answers the same problem. The outcome of a
// write is then unknown, never "sequenced":false.
func brokenRows(requests, writes []string, good string, status int, code Code) (rows []row) {
	for _, request := range requests {
		rows = append(rows, row{request, "", "", status, code})
	}
	for _, write := range writes {
		rows = append(rows, row{write, good, "", status, code},
			row{write, "{", "", 400, CodeMalformedBody})
	}
	return append(rows, row{"GET /health", "", "", 200, ""})
}

// TestSourceContract drives every endpoint of the account-service and of the reference-data service
// through every status that its handler can answer, and reports every status of the documents that
// no row has met.
func TestSourceContract(t *testing.T) {
	for _, s := range []struct {
		api           api
		rig           func(t testing.TB, a auth) *sourceRig
		rows          []row
		reads, writes []string
		good          string
		refused       error // the service's error about an invalid record
	}{
		{accountAPI, newAccountRig, accountRows(),
			[]string{"GET /account/", "GET /account/7", "GET /account/control-snapshot"},
			accountWrites, goodAccountRow, accounts.ErrAccount},
		{referenceAPI, newReferenceRig, stockRows(),
			[]string{"GET /stocks", "GET /stocks/AAA", "GET /stocks/control-snapshot"},
			stockWrites, goodStockRow, securities.ErrStock},
	} {
		var refusedRows, fullRows []row
		for _, write := range s.writes {
			fullRows = append(fullRows, row{write, s.good, "", 409, CodeCapacity})
			refusedRows = append(refusedRows, row{write, s.good, "", 400, CodeMalformedBody})
		}
		met := map[string][]int{}
		for _, tt := range []struct {
			name string
			auth auth
			err  error
			rows []row
		}{
			{"open", auth{}, nil, s.rows},
			{"guarded", auth{write: true, snapshot: true}, nil, guardedRows(s.writes, s.good, s.reads[2])},
			{"no database", auth{}, store.ErrUnavailable,
				brokenRows(s.reads, s.writes, s.good, 503, CodeDatabaseUnavailable)},
			{"too slow", auth{}, context.DeadlineExceeded,
				brokenRows(s.reads, s.writes, s.good, 504, CodeOutcomeUnknown)},
			{"stopping", auth{}, context.Canceled, brokenRows(s.reads, s.writes, s.good, 503, CodeStopping)},
			{"broken", auth{}, errPlanted, brokenRows(s.reads, s.writes, s.good, 500, CodeInternal)},
			{"refused behind the edge", auth{}, s.refused, refusedRows},
			{"no room", auth{}, control.ErrCapacity, fullRows},
		} {
			t.Run(s.reads[0]+", "+tt.name, func(t *testing.T) {
				r := s.rig(t, tt.auth)
				if tt.err != nil {
					r.fail(fmt.Errorf("store: write: %w", tt.err))
				}
				for _, q := range tt.rows {
					a := r.row(q)
					method, path, _ := strings.Cut(q.request, " ")
					key := method + " " + templateOf(path)
					met[key] = append(met[key], a.status)
				}
			})
		}
		s.api.checkMet(t, met)
	}
}

// row makes the request of a row and checks its answer, that a refusal has changed nothing, and
// that an early refusal has called nothing behind the edge.
func (r *sourceRig) row(q row) answer {
	r.t.Helper()
	calls, version := r.tally.calls.Load(), r.version()
	a := r.send(q.request, q.body, q.token)
	name := fmt.Sprintf("%s %.80q token=%q", q.request, q.body, q.token)
	if a.status != q.status {
		r.t.Errorf("%s: status %d, want %d: %s", name, a.status, q.status, a.body)
		return a
	}
	if q.code != "" && a.field(r.t, "code") != string(q.code) {
		r.t.Errorf("%s: code %v, want %s", name, a.field(r.t, "code"), q.code)
	}
	wrote := uint64(0)
	if a.status < 300 && !strings.HasPrefix(q.request, "GET ") {
		wrote = 1
	}
	if n := r.version() - version; n != wrote {
		r.t.Errorf("%s: answered %d and made %d changes", name, a.status, n)
	}
	// The service decides which tickers are invalid.
	ticker := a.status == 400 && strings.Contains(string(a.body), "field ticker: "+errTicker.Error())
	behind := r.tally.err.Load() != nil && q.code == CodeMalformedBody && q.body != "{"
	early := a.status >= 400 && a.status < 500 && a.status != 404 && a.status != 409 &&
		!ticker && !behind
	if early && r.tally.calls.Load() != calls {
		r.t.Errorf("%s: answered %d and asked behind the edge", name, a.status)
	}
	if read := strings.HasPrefix(q.request, "GET "); a.status == 503 &&
		(a.header.Get("Retry-After") == "" ||
			read != strings.Contains(string(a.body), `"sequenced":false`)) {
		r.t.Errorf("%s: %v %s", name, a.header, a.body)
	}
	if a.status == 405 && a.header.Get("Allow") == "" {
		r.t.Errorf("%s: no Allow", name)
	}
	return a
}

// TestSourceDocuments compares whole answers, one after the other.
func TestSourceDocuments(t *testing.T) {
	r := newAccountRig(t, auth{})
	long := strings.Repeat("é", 128)
	for _, tt := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"GET /account/", "", 200, `[{"id":7,"displayName":"Seven"}]`},
		{"POST /account/", `{"displayName":"Größte \"Bank\" \\ 😀","id":4294967295,"enabled":false}`, 200,
			`{"id":4294967295,"displayName":"Größte \"Bank\" \\ 😀"}`},
		{"PUT /account", `{"id":1,"displayName":"` + long + `","enabled":true}`, 200,
			`{"id":1,"displayName":"` + long + `"}`},
		{"PUT /account/", `{"id":7,"displayName":" 7th "}`, 200, `{"id":7,"displayName":" 7th "}`},
		{"GET /account/1", "", 200, `{"id":1,"displayName":"` + long + `"}`},
		{"GET /account/4294967295", "", 200, `{"id":4294967295,"displayName":"Größte \"Bank\" \\ 😀"}`},
		{"GET /account", "", 200, `[{"id":1,"displayName":"` + long +
			`"},{"id":7,"displayName":" 7th "},` +
			`{"id":4294967295,"displayName":"Größte \"Bank\" \\ 😀"}]`},
		{"GET /health", "", 200,
			`{"service":"account-service","status":"ok","role":"SINGLE","durability":"fsync","applied":12,` +
				`"durable":11,"projected":null}`},
		{"GET /openapi.json", "", 200, string(openAPIAccountService)},
	} {
		r.document(tt.request, tt.body, tt.status, tt.want, "fsync")
	}
	r = newReferenceRig(t, auth{})
	for _, tt := range []struct {
		request, body string
		status        int
		want          string
	}{
		{"GET /stocks", "", 200, `[{"ticker":"AAA","companyName":"Triple A"}]`},
		{"POST /stocks", `{"ticker":" brk.b\u00a0","companyName":"B & H"}`, 201,
			`{"ticker":"BRK.B","companyName":"B & H"}`},
		{"POST /stocks", `{"ticker":"Brk.B","companyName":"Berkshire","halted":true}`, 200,
			`{"ticker":"BRK.B","companyName":"Berkshire"}`},
		{"POST /stocks", `{"companyName":"Words","ticker":"control-snapshot","enabled":false}`, 201,
			`{"ticker":"CONTROL-SNAPSHOT","companyName":"Words"}`},
		{"POST /stocks", `{"companyName":"Sixteen","ticker":"   1234567890.-ABCD   "}`, 201,
			`{"ticker":"1234567890.-ABCD","companyName":"Sixteen"}`},
		{"GET /stocks/CONTROL-SNAPSHOT", "", 200,
			`{"ticker":"CONTROL-SNAPSHOT","companyName":"Words","tick":0.001}`},
		{"GET /stocks/BRK.B", "", 200, `{"ticker":"BRK.B","companyName":"Berkshire","tick":0.001}`},
		{"GET /stocks", "", 200,
			`[{"ticker":"1234567890.-ABCD","companyName":"Sixteen"},{"ticker":"AAA",` +
				`"companyName":"Triple A"},` +
				`{"ticker":"BRK.B","companyName":"Berkshire"},{"ticker":"CONTROL-SNAPSHOT",` +
				`"companyName":"Words"}]`},
		{"GET /health", "", 200,
			`{"service":"reference-data","status":"degraded","role":"LEADER","member":"2","leader":"2",` +
				`"durability":"os","applied":12,"durable":11,"projected":10}`},
		{"GET /openapi.json", "", 200, string(openAPIReferenceData)},
	} {
		r.document(tt.request, tt.body, tt.status, tt.want, "os")
	}
}

func (r *sourceRig) document(request, body string, status int, want, durability string) {
	r.t.Helper()
	a := r.send(request, body, "")
	if a.status != status || string(a.body) != want || a.header.Get("X-Durability") != durability {
		r.t.Errorf("%s %s: %d %v\n%s\nwant %d\n%s", request, body, a.status, a.header, a.body,
			status, want)
	}
}

// TestFlagsTravelInTheSnapshot follows the flags of writes into the control
// snapshot, which is read as a replica reads it.
func TestFlagsTravelInTheSnapshot(t *testing.T) {
	for _, s := range []struct {
		source control.Source
		rig    *sourceRig
		write  string
		steps  []string // members of a body, and the flags that they leave
	}{
		{control.Account, newAccountRig(t, auth{}), `PUT /account/ {"id":7,"displayName":"Seven"`,
			[]string{`,"enabled":false}`, "false false", `}`, "false false", `,"enabled":true}`,
				"true false", `}`, "true false"}},
		{control.Security, newReferenceRig(t, auth{}),
			`POST /stocks {"ticker":"aaa","companyName":"Triple A"`,
			[]string{`,"enabled":false,"halted":true}`, "false true", `,"halted":false}`, "false false",
				`,"halted":true}`, "false true",
				`,"enabled":true}`, "true true", `}`, "true true", `,"halted":false}`, "true false"}},
	} {
		path := strings.TrimSuffix(s.rig.list, "/") + "/control-snapshot"
		first, err := control.ParseSnapshot(s.source,
			s.rig.send("GET "+path, "", "").want(t, 200, "").body)
		if err != nil || len(first.Records) != 1 || first.Epoch != testStart {
			t.Fatalf("%+v, %v", first, err)
		}
		line, body, _ := strings.Cut(s.write, " {")
		for i := 0; i < len(s.steps); i += 2 {
			s.rig.send(line, "{"+body+s.steps[i], "").want(t, 200, "")
			a := s.rig.send("GET "+path, "", "").want(t, 200, "")
			got := must.Get(control.ParseSnapshot(s.source, a.body))(t)
			want := first.Watermark + uint64(i/2) + 1
			if rec := got.Records[0]; len(got.Records) != 1 || got.Watermark != want ||
				rec.Version != want ||
				fmt.Sprint(rec.Enabled, " ", rec.Halted) != s.steps[i+1] {
				t.Errorf("%s%s: %+v, want %s of version %d", s.write, s.steps[i], got, s.steps[i+1], want)
			}
		}
	}
}

// TestSourceWaitsForALockedDatabase locks the database: reads go on, a write is
// refused for now and succeeds afterwards.
func TestSourceWaitsForALockedDatabase(t *testing.T) {
	for _, r := range []*sourceRig{newAccountRig(t, auth{}), newReferenceRig(t, auth{})} {
		write, body := "POST /stocks", goodStockRow
		if r.api.first == routeAccounts {
			write, body = "POST /account/", goodAccountRow
		}
		before := r.version()
		unlock := storetest.Lock(t, r.db)
		r.send(write, body, "").want(t, 503, CodeDatabaseLocked)
		r.send("GET "+r.list, "", "").want(t, 200, "")
		if r.version() != before {
			t.Errorf("%s: changed", write)
		}
		unlock()
		r.send(write, body, "").want(t, 200, "")
	}
}
