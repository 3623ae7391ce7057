package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"posttrade/httpapi/client"
	"posttrade/matcher/desk"
	"posttrade/matcher/note"
	"posttrade/sidecars/recon"
	"posttrade/sidecars/store"
)

const (
	goodRepair = `{"from":"trd-1","to":"trd-6"}`
	goodLine   = `{"id":"ext-A.1","accountId":7,"security":"AAA","side":"sell","quantity":5,` +
		`"price":"1.5","timestamp":"2026-03-02T11:00:00.001+01:00"}`
	goodStatement = "[" + goodLine + "]"
)

// repairRequests are the requests to the endpoints of this file, good and bad.
func repairRequests() (rows []row) {
	for path, good := range map[string]string{"/recon/repair": goodRepair,
		"/recon/statement": goodStatement} {
		rows = append(rows, row{"POST " + path, good, "", 401, CodeUnauthorized},
			row{"POST " + path, "{", "one", 403, CodeAdminRequired},
			row{"POST " + path, good, "admin", 200, ""},
			row{"GET " + path, "", "admin", 405, CodeMethodNotAllowed})
	}
	for _, body := range []string{"", "{", "[]", "{}", `{"from":"trd-1"}`, `{"to":"trd-1"}`,
		`{"from":"trd-0","to":"trd-1"}`, `{"from":"trd-5","to":"trd-1"}`, `{"from":1,"to":10000001}`,
		`{"from":"trd-1","to":"trd-1","dryRun":"yes"}`,
		`{"from":"trd-1","to":"trd-1","x":1}`, `{"from":1.5,"to":2}`, `{"from":-1,"to":2}`,
		`{"from":1,"to":2,"to":2}`, `{"from":"ext-1","to":"ext-2"}`, `{"from":null,"to":1}`} {
		rows = append(rows, row{"POST /recon/repair", body, "admin", 400, CodeMalformedBody})
	}
	for _, body := range []string{"", "{}", "[]", "[{}]", "[1]"} {
		rows = append(rows, row{"POST /recon/statement", body, "admin", 400, CodeMalformedBody})
	}
	for _, member := range []string{`"id":"trd-1"`, `"id":"ext-"`, `"id":1`, `"accountId":-1`,
		`"accountId":0`, `"security":""`, `"security":"aapl"`, `"security":"ABCDEFGHIJKLMNOPQ"`,
		`"timestamp":"2149-06-07T00:00:00Z"`, `"side":"hold"`, `"quantity":0`, `"price":0`,
		`"timestamp":"2026-03-02"`,
		`"timestamp":"2026-03-02T11:00:00.0001Z"`, `"timestamp":"2026-03-02T11:00:00,5Z"`,
		`"timestamp":1`, `"more":1`} {
		name, _, _ := strings.Cut(member, ":")
		body := goodLine[:len(goodLine)-1] + "," + member + "}"
		if at := strings.Index(goodLine, name+":"); at >= 0 {
			end := strings.Index(goodLine[at:], ",")
			if end < 0 {
				end = strings.Index(goodLine[at:], "}")
			}
			body = goodLine[:at] + member + goodLine[at+end:]
		}
		rows = append(rows, row{"POST /recon/statement", "[" + body + "]", "admin", 400,
			CodeMalformedBody})
	}
	return append(rows,
		row{"POST /recon/repair", `{"from":2,"to":"trd-3","dryRun":true}`, "admin", 200, ""},
		row{"POST /recon/statement", "[" + goodLine + "," + goodLine + "]", "admin", 200, ""})
}

// TestRepairPassesOnWhatItWasAskedFor and shows rows as they were, whatever they held.
func TestRepairPassesOnWhatItWasAskedFor(t *testing.T) {
	r := newProcessorRig(t)
	q := request{method: "POST", path: "/recon/repair", body: `{"from":2,"to":"trd-6","dryRun":true}`,
		token: namedToken(testStart, "admin"), header: map[string]string{"X-Reason": "a restored backup"}}
	a := r.call(q)
	row := func(date, order, sequence string) string {
		return `{"id":"trd-2","tradeSeq":2,"accountId":1,"security":"BRK.B","side":"Sell",` +
			`"quantity":20,` +
			`"price":100.25,"timestamp":"2026-03-02T10:00:00.002Z","status":"Settled","settlementDate":"` +
			date + `","orderId":` + order + `,"sequence":` + sequence +
			`,"bookedAt":"2026-03-02T10:00:00.050Z","updatedAt":"2026-03-02T10:00:00.060Z"}`
	}
	want := `{"repairId":null,"from":"trd-2","to":"trd-6","dryRun":true,"checked":6,"matched":4,` +
		`"repaired":2,"pending":1,"items":[{"tradeId":"trd-1","fields":["missing"],"was":null,"now":`
	second := `{"tradeId":"trd-2","fields":["price","sequence"],"was":` +
		row("infinity", `"nonsense"`, "null") + `,"now":` + row("2026-03-04", "null", "12") +
		`}],"truncated":true}`
	if text := string(a.body); a.status != 200 || !strings.HasPrefix(text, want) ||
		!strings.HasSuffix(text, second) {
		t.Errorf("%d %s\nwant %s ... %s", a.status, text, want, second)
	}
	asked := r.fakes.repaired
	if asked.Address != "127.0.0.1" || asked.Subject == "" {
		t.Errorf("asked by %+v", asked)
	}
	asked.Address, asked.Subject = "", ""
	if !reflect.DeepEqual(asked, recon.RepairQuery{From: 2, To: 6, DryRun: true,
		Reason: "a restored backup"}) {
		t.Errorf("asked for %+v", asked)
	}
	q.body = goodRepair
	if a := r.call(q); !strings.HasPrefix(string(a.body), `{"repairId":3,"from":"trd-1",`) {
		t.Errorf("%s", a.body)
	}
	q.body = `{"from":"trd-1","to":"trd-7"}`
	a = r.call(q)
	if a.want(t, 400, CodeMalformedBody); !strings.Contains(string(a.body), "field to: above") {
		t.Errorf("above the head: %s", a.body)
	}
	q.header["X-Reason"] = strings.Repeat("x", note.MaxReason+1)
	a = r.call(q)
	if a.want(t, 400, CodeBadRequest); !strings.Contains(string(a.body), "X-Reason") {
		t.Errorf("%s", a.body)
	}
}

// TestStatementLinesArePassedOn reads every member of a line.
func TestStatementLinesArePassedOn(t *testing.T) {
	r := newProcessorRig(t)
	a := r.post("/recon/statement", goodStatement, "admin")
	if want := `{"accepted":1,"matched":1,"differing":2,"missing":3}`; string(a.body) != want {
		t.Errorf("%s, want %s", a.body, want)
	}
	want := recon.StatementLine{ID: "ext-A.1", Trade: recon.Trade{AccountID: 7, Security: "AAA",
		Side: 1, Quantity: 5, Price: 1_500_000, TimeMillis: testStart + 1}}
	if len(r.fakes.lines) != 1 || r.fakes.lines[0] != want {
		t.Errorf("took %+v, want %+v", r.fakes.lines, want)
	}
	large := "[" + strings.Repeat(goodLine+",", 1500) + goodLine + "]"
	r.post("/recon/statement", large, "admin").want(t, 200, "")
	if n := fmt.Sprint(len(r.fakes.lines)); n != "1501" {
		t.Errorf("%s lines of a large statement", n)
	}
}

// recordRig is a processor rig that keeps what is put on record at sequence 5, or fails to.
type recordRig struct {
	*processorRig
	acts   []note.Note
	failed error
}

func newRecordRig(t *testing.T) *recordRig {
	r := &recordRig{}
	r.processorRig = newProcessorRig(t, func(d *ProcessorDeps) {
		d.NeedReason = true
		d.Record = func(_ context.Context, n *note.Note) (uint64, error) {
			r.acts = append(r.acts, *n)
			return 5, r.failed
		}
	})
	return r
}

// act is what a POST of an admin with a reason answers.
func (r *recordRig) act(path, body, reason string) answer {
	return r.call(request{method: "POST", path: path, body: body,
		token: namedToken(testStart, "admin"), header: map[string]string{"X-Reason": reason}})
}

// TestAStatementIsOnRecord: by how many lines it has and the hash of its body, before it is taken.
// One that is refused is no act.
func TestAStatementIsOnRecord(t *testing.T) {
	r := newRecordRig(t)
	state := func(body, reason string) answer { return r.act("/recon/statement", body, reason) }
	state("[]", "why").want(t, 400, CodeMalformedBody)
	a := state(goodStatement, "")
	if a.status != 400 || !strings.Contains(string(a.body), "X-Reason") {
		t.Errorf("no reason: %d %s", a.status, a.body)
	}
	if len(r.acts) != 0 || r.fakes.lines != nil {
		t.Errorf("on record: %+v, taken: %v", r.acts, r.fakes.lines)
	}
	r.failed = desk.ErrClosed
	state(goodStatement, "why").want(t, 503, CodeStopping)
	if r.fakes.lines != nil {
		t.Errorf("taken without a record: %v", r.fakes.lines)
	}
	r.failed, r.acts = nil, nil
	two := "[" + goodLine + "," + goodLine + "]"
	state(two, "why").want(t, 200, "")
	want := fmt.Sprintf(`{"lines":2,"sha256":"%x"}`, sha256.Sum256([]byte(two)))
	if len(r.acts) != 1 || r.acts[0].Kind != note.Statement || r.acts[0].Reason != "why" ||
		r.acts[0].Subject == "" || string(r.acts[0].Object) != want {
		t.Errorf("on record: %+v, want %s", r.acts, want)
	}
	if log := r.log.String(); strings.Count(log, "operator act") != 1 ||
		!strings.Contains(log, "kind=statement sequence=5") {
		t.Errorf("logged\n%s", log)
	}
}

// TestARefusedRepairIsNoAct: a repair is on record when it begins, not when it is refused; without
// the reason that production asks for it does not begin.
func TestARefusedRepairIsNoAct(t *testing.T) {
	r := newRecordRig(t)
	repair := func(body, reason string) answer { return r.act("/recon/repair", body, reason) }
	repair(`{"from":"trd-1","to":"trd-7"}`, "why").want(t, 400, CodeMalformedBody)
	r.fakes.err = fmt.Errorf("x: %w", recon.ErrRepairing)
	repair(goodRepair, "why").want(t, 409, CodeRepairRunning)
	r.fakes.err = nil
	if a := repair(goodRepair, ""); a.status != 400 || !strings.Contains(string(a.body), "X-Reason") {
		t.Errorf("no reason: %d %s", a.status, a.body)
	}
	repair(`{"from":"trd-1","to":"trd-6","dryRun":true}`, "why").want(t, 200, "")
	if len(r.acts) != 0 {
		t.Errorf("on record: %+v", r.acts)
	}
	repair(goodRepair, "why").want(t, 200, "")
	if len(r.acts) != 1 || r.acts[0].Kind != note.Repair || r.acts[0].Reason != "why" ||
		string(r.acts[0].Object) != `{"from":"trd-1","to":"trd-6","repairId":3}` ||
		string(r.acts[0].Old) != `{"differing":2,"trades":["trd-1","trd-2"]}` ||
		string(r.acts[0].New) != `{"differing":0}` {
		t.Errorf("on record: %+v", r.acts)
	}
}

// TestAnActOnRecordThatFailsIsUnknown: the act is sequenced, so no problem behind its record says
// that it is not. A problem in front of the record says so.
func TestAnActOnRecordThatFailsIsUnknown(t *testing.T) {
	r := newRecordRig(t)
	c := client.New(client.Config{Address: r.address, Token: namedToken(testStart, "admin")}).
		Because("why")
	t.Cleanup(c.Close)
	lines := []client.StatementLine{{ID: "ext-1", AccountID: 1, Security: "AAA", Side: "Buy",
		Quantity: 5, Price: client.Units(2), Timestamp: time.UnixMilli(testStart)}}
	acts := map[string]func() error{
		"settlement": func() error {
			_, err := c.ForceSettlement(t.Context(), "trd-1")
			return err
		},
		"repair": func() error {
			_, err := c.RepairRows(t.Context(), client.RepairQuery{From: "trd-1", To: "trd-6"})
			return err
		},
		"statement": func() error {
			_, err := c.TakeStatement(t.Context(), lines)
			return err
		},
	}
	tests := []struct {
		name                string
		early, record, late error
		code                Code
		unknown             bool
	}{
		{name: "the database before", early: store.ErrUnavailable, code: CodeDatabaseUnavailable},
		{name: "the desk is closed", record: desk.ErrClosed, code: CodeStopping},
		{name: "the note has no answer", record: errors.Join(desk.ErrTimeout, context.Canceled),
			code: CodeOutcomeUnknown, unknown: true},
		{name: "the database", late: store.ErrUnavailable, code: CodeDatabaseUnavailable, unknown: true},
		{name: "a lock", late: &store.LockedError{What: "x", Cause: store.ErrLocked},
			code: CodeDatabaseLocked, unknown: true},
		{name: "another history", late: store.ErrForeign, code: CodeForeignDatabase, unknown: true},
		{name: "a stop", late: context.Canceled, code: CodeStopping, unknown: true},
	}
	for _, tt := range tests {
		for name, act := range acts {
			if tt.early != nil && name == "statement" {
				continue // it asks the database for nothing before its record
			}
			t.Run(name+", "+tt.name, func(t *testing.T) {
				r.fakes.err, r.failed, r.fakes.late = tt.early, tt.record, tt.late
				var p *client.Problem
				if err := act(); !errors.As(err, &p) || p.Code != string(tt.code) ||
					p.NotSequenced() == tt.unknown || client.Unknown(err) != tt.unknown {
					t.Errorf("%v, unknown %v", err, client.Unknown(err))
				}
			})
		}
	}
}
