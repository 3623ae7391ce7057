package httpapi

import (
	"strings"
	"testing"
)

// The detail of an error says what is wrong, and the field where.
func TestErrorsSayWhatIsWrongAndWhere(t *testing.T) {
	r, p := newRig(t), newProcessorRig(t)
	r.serve(func(d *Deps) { d.AsOf = newPast(t) })
	admin := r.token("admin")
	order := func(member, value string) string {
		return strings.Replace(goodOrder, `"quantity":10`, `"`+member+`":`+value, 1)
	}
	batch := func(n int) string { return "[" + strings.Repeat(goodOrder+",", n-1) + goodOrder + "]" }
	for _, tt := range []struct {
		call                    func(request) answer
		request, body           string
		field, detail, notThere string
	}{
		{r.call, "POST /orders", goodOrder + " x", "", "bytes after the JSON value", "field"},
		{r.call, "POST /orders/batch", batch(2) + " x", "", "bytes after the JSON value", "item"},
		{r.call, "POST /orders/batch", batch(1025), "", "1 to 1024 orders", "item"},
		{r.call, "POST /orders/batch", "[]", "", "1 to 1024 orders", "item"},
		{r.call, "POST /orders", order("quantity", "1e2"), "quantity", "a whole number in plain", ""},
		{r.call, "POST /orders", order("quantity", "01"), "quantity", "malformed number", ""},
		{r.call, "POST /prices", "[]", "", "at least one item", ""},
		{r.call, "POST /risk/control/policy", `{"policyVersion":0,"killSwitch":true}`, "policyVersion",
			"out of range", ""},
		{r.call, "GET /as-of/99999999/positions", "", "inputSeq", "beyond the durable head", ""},
		{p.call, "PUT /eod/prices/2026-03-02/v0", goodMarks, "version", "a version of 1", ""},
		{p.call, "PUT /eod/prices/2026-02-30/v1", goodMarks, "sessionDate", "yyyy-MM-dd", ""},
		{p.call, putMarksRequest, badMarks[len(badMarks)-1], "security", "item 2: field security", ""},
	} {
		method, path, _ := strings.Cut(tt.request, " ")
		a := tt.call(request{method: method, path: path, body: tt.body, token: admin})
		a.want(t, 400, "")
		field, _ := a.field(t, "field").(string)
		detail, _ := a.field(t, "detail").(string)
		if field != tt.field || !strings.Contains(detail, tt.detail) ||
			tt.notThere != "" && strings.Contains(detail, tt.notThere) {
			t.Errorf("%s %.60s: field %q, detail %q, want %q and %q without %q", tt.request, tt.body,
				field, detail, tt.field, tt.detail, tt.notThere)
		}
	}
}

// A version that would leave no room above it is taken only when it is the next one. A policy that
// was sent with the largest number by mistake must not be the last one.
func TestAVersionOfAPolicyLeavesRoom(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	policy := func(version string) answer {
		return r.post("/risk/control/policy", `{"policyVersion":`+version+`,"killSwitch":false}`, admin)
	}
	before := r.stage.Applied()
	for _, version := range []string{"9223372036854775807", "4611686018427387904"} {
		a := policy(version).want(t, 400, CodeMalformedBody)
		if a.field(t, "field") != "policyVersion" {
			t.Errorf("%s", a.body)
		}
		limits := `{"policyVersion":` + version + `,"limits":{"maxOrderQuantity":5}}`
		r.post("/risk/control/limits", limits, admin).want(t, 400, CodeMalformedBody)
		r.post("/risk/control/accounts/1/limits", limits, admin).want(t, 400, CodeMalformedBody)
	}
	if n := r.stage.Applied() - before; n != 0 {
		t.Errorf("%d commands came of refused policies", n)
	}
	policy("4611686018427387903").want(t, 200, "")
	policy("4611686018427387905").want(t, 400, CodeMalformedBody)
	policy("4611686018427387904").want(t, 200, "")
	policy("4611686018427387904").want(t, 409, CodeStaleVersion)
	policy("4611686018427387905").want(t, 200, "")
	if got := r.gate.PolicyVersion(); got != 1<<62+1 {
		t.Errorf("version %d", got)
	}
}
