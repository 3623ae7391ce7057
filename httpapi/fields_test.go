package httpapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"posttrade/blotter/feed"
	"posttrade/ring/must"
)

// wholeBodies are bodies with every member that the document of their endpoint has, by method and
// path of the document. TestErrorsNameWhatIsWrong fails when one lacks a member, or an endpoint has
// none.
var wholeBodies = map[string]string{
	"POST /orders":          wholeOrder,
	"POST /orders/batch":    "[" + wholeOrder + "," + wholeOrder + "]",
	"POST /trades":          `{"clientOrderId":"t",` + goodTrade[1:],
	"POST /swaps":           wholeSwap + "}",
	"POST /swaptions":       wholeSwap + `,"expiryDate":"2026-09-04","exerciseStyle":"European"}`,
	"POST /prices":          `[{"security":"AAA","price":1},{"security":"BBB","price":1}]`,
	"POST /risk/extract":    `{"sessionDate":"2026-03-02","priceVersion":1}`,
	"POST /recon/repair":    `{"from":"trd-1","to":"trd-6","dryRun":true}`,
	"POST /recon/statement": "[" + goodLine + "," + goodLine + "]",
	"POST /auth/dev-token":  goodToken,
	"POST /auth/revoke":     `{"subject":"ann"}`,
	"POST /account/":        wholeAccount,
	"PUT /account/":         wholeAccount,
	"POST /stocks":          `{"ticker":"AAA","companyName":"Triple A","enabled":true,"halted":false}`,

	"POST /orders/{orderId}/replace": `{"quantity":8,"limitPrice":101,"clientOrderId":"r"}`,
	"POST /risk/control/account":     goodAccount,
	"POST /risk/control/security":    goodSecurity,
	"POST /risk/control/restriction": goodRestriction,
	"POST /risk/control/policy": `{"policyVersion":3,"killSwitch":false,"maxPositionQuantity":5,` +
		`"maxConcentrationNotional":5}`,
	"POST /risk/control/limits":                      wholeLimits,
	"POST /risk/control/accounts/{accountId}/limits": wholeLimits,
	"PUT /eod/prices/{sessionDate}/v{version}": `[{"security":"AAA","price":1,"quality":"A"},` +
		`{"security":"BBB","price":1,"quality":"A"}]`,
}

const (
	wholeOrder = `{"clientOrderId":"o","accountId":1,"security":"AAA","side":"Buy","quantity":10,` +
		`"limitPrice":100,"type":"LIMIT","timeInForce":"GTC"}`
	wholeSwap = `{"clientOrderId":"s","accountId":1,"payReceive":"Pay","notional":1000,` +
		`"fixedRate":0.0425,"effectiveDate":"2026-09-04","maturityDate":"2031-09-04",` +
		`"conventions":"USD-SOFR-1Y-ACT360"`
	wholeAccount = `{"id":7,"displayName":"Seven","enabled":true}`
	wholeLimits  = `{"policyVersion":4,"limits":{"maxOrderQuantity":1,"maxOrderNotional":1,` +
		`"maxPositionQuantity":1,"maxConcentrationNotional":1,"creditLimit":1,"priceMaxAgeMs":1,` +
		`"priceCollarBps":1}}`
)

// anyQuery are the endpoints that take any query: a probe's or a scraper's may carry parameters.
var anyQuery = []string{"/health", "/openapi.json", "/actuator/prometheus"}

// wrongValues are tried in the place of every member. One that the document allows is left out.
var wrongValues = []string{"null", "true", "{}", "[]", `[""]`, `[-1]`, `""`, `"\u0007"`, `"é"`,
	`"` + strings.Repeat("x", 300) + `"`, "-1", "0", "1.5", "0.0000001", "1e30", "2147483648",
	"4294967296", "9223372036854775808"}

// wrongTexts are the same for parameters.
var wrongTexts = []string{"", "%zz", "%00", "%C3%A9", strings.Repeat("x", 300), "-1", "0", "00",
	"1.5", "2026-02-30", "1001", "4294967296", "9223372036854775808", "18446744073709551616",
	"sometimes"}

// fieldsRig is a service as TestErrorsNameWhatIsWrong sees it.
type fieldsRig struct {
	api   api
	call  func(q request) answer
	admin string
}

// fieldsRigs are all services, each with all that it may have behind it.
func fieldsRigs(t *testing.T) []fieldsRig {
	r, p := newRig(t), newProcessorRig(t)
	r.serve(func(d *Deps) {
		d.AsOf, d.Acts, d.Evidence = newPast(t), fakeActs{}, &fakeEvidence{note: []byte("a note\n")}
		d.Feed = new(feed.Hub)
	})
	r.order("1", "Buy", "10", "100", "").want(t, 201, "") // ord-1
	a, s := newAccountRig(t, auth{}), newReferenceRig(t, auth{})
	admin := r.token("admin")
	return []fieldsRig{{matcherAPI, r.call, admin}, {processorAPI, p.call, admin},
		{accountAPI, a.call, admin}, {referenceAPI, s.call, admin}}
}

// TestErrorsNameWhatIsWrong feeds every member and every parameter of every endpoint of the
// documents wrong, unknown, twice and missing, and reads the name in the answer.
// TestEveryRouteIsDocumented holds the documents to the routers, so a new endpoint is tried too.
func TestErrorsNameWhatIsWrong(t *testing.T) {
	tried := 0
	for _, r := range fieldsRigs(t) {
		doc := must.Get(r.api.load())(t)
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				o := fieldsOf{t: t, rig: r, method: method, path: path, op: op, tried: &tried}
				o.parameters(slices.Concat(item.Parameters, op.Parameters))
				o.body()
			}
		}
	}
	if tried < 1500 {
		t.Errorf("only %d requests were made", tried)
	}
}

// fieldsOf tries one operation.
type fieldsOf struct {
	t      *testing.T
	rig    fieldsRig
	method string
	path   string // of the document
	op     *openapi3.Operation
	tried  *int
}

// refused sends a request and expects a 400 whose member field is name, and whose detail has it.
func (o *fieldsOf) refused(what, name, query, body string, header map[string]string) {
	o.t.Helper()
	*o.tried++
	path := strings.NewReplacer("{orderId}", "ord-1", "{security}", "AAA", "{tradeId}", "trd-1",
		"{accountId}", "7", "{ticker}", "AAA", "{contractId}", "SW-5", "{sessionDate}", "2026-03-02",
		"{version}", "1", "{inputSeq}", "5", "{tile}", "0/000").Replace(o.path)
	all := map[string]string{headerMasterSecret: testMaster}
	maps.Copy(all, header)
	a := o.rig.call(request{method: o.method, path: path + query, body: body, token: o.rig.admin,
		header: all})
	if a.status != 400 {
		o.t.Errorf("%s %s: %s: %d, want 400: %.200s", o.method, o.path, what, a.status, a.body)
		return
	}
	detail, _ := a.field(o.t, "detail").(string)
	if a.field(o.t, "field") != name || !strings.Contains(detail, name) {
		o.t.Errorf("%s %s: %s: want field %s: %s", o.method, o.path, what, name, a.body)
	}
}

// parameters tries the query and the headers.
func (o *fieldsOf) parameters(all openapi3.Parameters) {
	body := wholeBodies[o.method+" "+o.path]
	if !slices.Contains(anyQuery, o.path) {
		o.refused("an unknown parameter", "zzUnknown", "?zzUnknown=1", body, nil)
	}
	for _, ref := range all {
		p := ref.Value
		schema := p.Schema.Value
		switch {
		case p.In == "query":
			o.parameter(p.Name, schema)
			if p.Required {
				o.refused("without "+p.Name, p.Name, "", body, nil)
			}
		case p.In == "header" && schema.Type.Is("integer"):
			for _, value := range []string{"x", "-1", "1.5", "18446744073709551616",
				"1\r\n" + p.Name + ": 1"} { // twice
				o.refused(p.Name+" "+value, p.Name, "", body, map[string]string{p.Name: value})
			}
		}
	}
}

// parameter tries one parameter of the query.
func (o *fieldsOf) parameter(name string, schema *openapi3.Schema) {
	good := goodText(schema)
	o.refused(name+" twice", name, "?"+name+"="+good+"&"+name+"="+good, "", nil)
	for _, text := range wrongTexts {
		if name == "subject" && text == "%C3%A9" {
			continue // as in a token, it is any text
		}
		var value any = text
		if schema.Type.Is("integer") {
			value = json.Number(text)
		}
		if !strings.Contains(text, "%") && text != "" && fits(schema, value) {
			continue
		}
		o.refused(fmt.Sprintf("%s=%.40s", name, text), name, "?"+name+"="+text, "", nil)
	}
}

// goodText is a value that a parameter may have.
func goodText(schema *openapi3.Schema) string {
	switch {
	case len(schema.Enum) > 0:
		return fmt.Sprint(schema.Enum[0])
	case schema.Format == "date":
		return "2026-03-02"
	case schema.Type.Is("integer"):
		return "7"
	}
	return "2026-03-02T10:00:00Z" // a text, and a moment
}

// fits reports whether a schema allows a value, its format included.
func fits(schema *openapi3.Schema, value any) bool {
	if n, ok := value.(json.Number); ok {
		var v any
		if json.Unmarshal([]byte(n), &v) != nil {
			return false
		}
		value = v
	}
	return schema.VisitJSON(value, openapi3.EnableJSONSchema2020(),
		openapi3.EnableFormatValidation()) == nil
}

// body tries the members of the body.
func (o *fieldsOf) body() {
	if o.op.RequestBody == nil {
		if o.method != "GET" {
			o.refused("a member where none is expected", "zzUnknown", "", `{"zzUnknown":1}`, nil)
		}
		return
	}
	schema := o.op.RequestBody.Value.Content.Get("application/json").Schema.Value
	text, ok := wholeBodies[o.method+" "+o.path]
	if !ok {
		o.t.Errorf("%s %s: no body is known", o.method, o.path)
		return
	}
	before, after := "", ""
	if schema.Type.Is("array") { // the second of two items
		var items []json.RawMessage
		if err := json.Unmarshal([]byte(text), &items); err != nil || len(items) != 2 {
			o.t.Fatalf("%s %s: %v: %s", o.method, o.path, err, text)
		}
		before, text, after = "["+string(items[0])+",", string(items[1]), "]"
		schema = schema.Items.Value
	}
	o.object(schema, text, func(object string) string { return before + object + after })
}

// object tries the members of one object; in puts it into its body.
func (o *fieldsOf) object(schema *openapi3.Schema, text string, in func(object string) string) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		o.t.Fatalf("%s %s: %v: %s", o.method, o.path, err, text)
	}
	with := func(change func(m map[string]json.RawMessage)) string {
		m := maps.Clone(members)
		change(m)
		b := must.Get(json.Marshal(m))(o.t)
		return string(b)
	}
	try := func(what, name, object string) { o.t.Helper(); o.refused(what, name, "", in(object), nil) }
	open := strings.TrimSuffix(strings.TrimSpace(text), "}")
	try("an unknown member", "zzUnknown", open+`,"zzUnknown":1}`)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property, value := schema.Properties[name].Value, members[name]
		if value == nil {
			o.t.Errorf("%s %s: the body that is known lacks %s", o.method, o.path, name)
			continue
		}
		try(name+" twice", name, open+`,"`+name+`":`+string(value)+"}")
		if slices.Contains(schema.Required, name) {
			try("without "+name, name, with(func(m map[string]json.RawMessage) { delete(m, name) }))
		}
		for _, wrong := range wrongValues {
			var v any
			must.OK(o.t, json.Unmarshal([]byte(wrong), &v))
			if fits(property, v) {
				continue
			}
			try(fmt.Sprintf("%s %.40s", name, wrong), name,
				with(func(m map[string]json.RawMessage) { m[name] = json.RawMessage(wrong) }))
		}
		if property.Type.Is("object") {
			o.object(property, string(value), func(object string) string {
				return in(with(func(m map[string]json.RawMessage) { m[name] = json.RawMessage(object) }))
			})
		}
	}
}
