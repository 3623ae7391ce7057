package httpapi

import (
	"strings"
	"testing"
)

// TestUnknownMembersAreNamed in every body, also where the object is one of many. Nothing
// unprintable of a name is shown.
func TestUnknownMembersAreNamed(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	for _, path := range []string{
		"/orders", "/trades", "/swaps", "/swaptions", "/risk/control/account", "/risk/control/security",
		"/risk/control/restriction", "/risk/control/policy", "/risk/extract",
	} {
		a := r.post(path, `{"qty":[1]}`, admin).want(t, 400, CodeMalformedBody)
		if a.field(t, "detail") != `"qty": unknown member` {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	for _, path := range []string{"/orders/batch", "/prices"} {
		a := r.post(path, `[{"q\u007fty":1}]`, admin).want(t, 400, CodeMalformedBody)
		if detail := a.field(t, "detail").(string); !strings.HasSuffix(detail,
			`"q\x7fty": unknown member`) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	if r.sequence() != 0 {
		t.Errorf("sequence %d after bodies that cannot be read", r.sequence())
	}
}

// TestBadParametersAreNamed whatever is wrong with them.
func TestBadParametersAreNamed(t *testing.T) {
	r := newRig(t)
	for query, want := range map[string]string{
		"status=open&limt=1": `"limt": it is unknown or its value is not allowed`,
		"limit=0":            `"limit": it is unknown or its value is not allowed`,
		"limit=%zz":          `"limit": it is unknown or its value is not allowed`,
		"limit=1&limit=2":    `"limit": it is there twice`,
		`a"b=1`:              `"a\"b": it is unknown or its value is not allowed`,
		strings.Repeat("x", 80) + "=": `"` + strings.Repeat("x", 64) +
			`"...: it is unknown or its value is not allowed`,
	} {
		a := r.get("/orders?"+query, r.token("admin")).want(t, 400, CodeBadRequest)
		if a.field(t, "detail") != "parameter "+want {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

// TestReportBeyondTheHeadIsRefused with or without an end, and at the first sequence after the
// head.
func TestReportBeyondTheHeadIsRefused(t *testing.T) {
	r := newRig(t)
	for _, query := range []string{"fromSeq=6", "fromSeq=7", "fromSeq=6&toSeq=99",
		"fromSeq=9223372036854775807"} {
		a := r.get("/regulatory/report?"+query, r.token("admin")).want(t, 400, CodeBadRequest)
		if !strings.Contains(a.field(t, "detail").(string), "fromSeq is after") {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

// TestPriceOffTheGridSaysTheTick of new and replaced orders, whether or not refusals are sequenced.
func TestPriceOffTheGridSaysTheTick(t *testing.T) {
	genesis := testGenesis()
	genesis.TickPx = 50_000
	for _, options := range [][]option{nil, {unsequenced}} {
		r := newRigWith(t, genesis, options...)
		r.price("AAA", "100")
		check := func(a answer) {
			t.Helper()
			a.want(t, 422, CodeRiskRefused)
			if a.field(t, "reason") != "INVALID" || a.field(t, "field") != "limitPrice" ||
				a.field(t, "detail") != "field limitPrice: not a multiple of the tick, 0.05" {
				t.Errorf("%s", a.body)
			}
		}
		check(r.order("1", "Buy", "10", "100.01", ""))
		check(r.order("1", "Buy", "10", "100.01", `,"clientOrderId":"a"`))
		check(r.order("1", "Buy", "10", "100.01", `,"clientOrderId":"a"`)) // the decision again
		id := r.order("1", "Buy", "10", "99.95", "").want(t, 201, "").field(t, "orderId").(string)
		check(r.post("/orders/"+id+"/replace", `{"quantity":10,"limitPrice":99.999}`, ""))
		a := r.post("/orders/"+id+"/replace", `{"quantity":1000000,"limitPrice":99.95}`, "")
		if a.want(t, 422, CodeRiskRefused).field(t, "field") != nil {
			t.Errorf("another refusal names a field: %s", a.body)
		}
	}
}
