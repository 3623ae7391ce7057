package httpapi

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"posttrade/matcher"
)

// The next order obeys limits of all accounts and of one. Both are in the snapshot of controls, and
// an account's own limit goes with a null.
func TestTheNextOrderObeysItsLimits(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.price("AAA", "100")
	set := func(path, body string) {
		t.Helper()
		a := r.post("/risk/control/"+path, body, admin).want(t, 200, "")
		if a.field(t, "applied") != true || fmt.Sprint(a.field(t, "sequence")) !=
			strconv.FormatUint(r.stage.Applied(), 10) {
			t.Errorf("%s", a.body)
		}
	}
	refused := func(account, qty, px, reason string) {
		t.Helper()
		a := r.post("/orders", orderBody(account, "Buy", qty, px, ""), "").want(t, 422, CodeRiskRefused)
		if a.field(t, "reason") != reason {
			t.Errorf("got %s, want %s", a.body, reason)
		}
	}
	passes := func(account, qty, px string) {
		t.Helper()
		r.post("/orders", orderBody(account, "Buy", qty, px, ""), "").want(t, 201, "")
	}
	set("accounts/1/limits", `{"policyVersion":3,"limits":{"maxOrderQuantity":5,`+
		`"priceCollarBps":100}}`)
	refused("1", "6", "100", "ORDER_SIZE")
	refused("1", "5", "102", "PRICE_COLLAR")
	passes("1", "5", "101")
	passes("2", "6", "102")
	set("limits", `{"policyVersion":4,"limits":{"maxOrderNotional":"400.5","creditLimit":1e6,`+
		`"maxPositionQuantity":9,"maxConcentrationNotional":1000000,"priceMaxAgeMs":1,`+
		`"maxOrderQuantity":2147483647}}`)
	refused("2", "5", "100", "ORDER_NOTIONAL")
	refused("2", "4", "100", "POSITION_LIMIT")
	refused("1", "6", "1", "ORDER_SIZE") // its own stays
	set("accounts/1/limits", `{"policyVersion":9,"limits":{"maxOrderQuantity":null,`+
		`"creditLimit":1.5}}`)
	refused("1", "4", "60", "PRICE_COLLAR")
	refused("1", "4", "99", "CREDIT_LIMIT")

	image := string(r.get("/risk/control/snapshot", admin).want(t, 200, "").body)
	for _, want := range []string{
		`"policyVersion":9,"limits":{"maxOrderQuantity":2147483647,"maxOrderNotional":400.5,` +
			`"maxPositionQuantity":9,"maxConcentrationNotional":1000000,"creditLimit":1000000,` +
			`"priceMaxAgeMs":1,"priceCollarBps":5000}`,
		`{"id":1,"enabled":true,"version":0,"heldBy":"source","limits":{"creditLimit":1.5,` +
			`"priceCollarBps":100}}`,
		`{"id":2,"enabled":true,"version":0,"heldBy":"source"}`,
	} {
		if !strings.Contains(image, want) {
			t.Errorf("snapshot %s\nwant %s", image, want)
		}
	}
	set("accounts/1/limits", `{"policyVersion":10,"limits":{"creditLimit":null,`+
		`"priceCollarBps":null}}`)
	passes("1", "4", "60")
	if image := r.get("/risk/control/snapshot", admin); strings.Count(string(image.body),
		`"limits"`) != 1 {
		t.Errorf("after the last own limit: %s", image.body)
	}
}

// One rising version for policies, limits of all accounts and limits of one: what does not rise is
// 409, and nothing of it is sequenced or changed.
func TestLimitsShareTheVersionOfThePolicy(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	policy, limits, own := "/risk/control/policy", "/risk/control/limits",
		"/risk/control/accounts/2/limits"
	body := func(path string, version int) string {
		if path == policy {
			return fmt.Sprintf(`{"policyVersion":%d,"killSwitch":false}`, version)
		}
		return fmt.Sprintf(`{"policyVersion":%d,"limits":{"maxOrderQuantity":%d,"creditLimit":7}}`,
			version, version)
	}
	version := 10
	for _, first := range []string{policy, limits, own} {
		for _, second := range []string{policy, limits, own} {
			version += 2
			r.post(first, body(first, version), admin).want(t, 200, "")
			before := r.stage.Applied()
			image := r.get("/risk/control/snapshot", admin).body
			for _, stale := range []int{version, version - 1, 1} {
				a := r.post(second, body(second, stale), admin).want(t, 409, CodeStaleVersion)
				if !strings.Contains(string(a.body), strconv.Itoa(version)) {
					t.Errorf("the version in force is not named: %s", a.body)
				}
			}
			if r.stage.Applied() != before {
				t.Errorf("%s after %s: a refused one was sequenced", second, first)
			}
			if now := r.get("/risk/control/snapshot", admin).body; string(now) != string(image) {
				t.Errorf("%s after %s: %s became %s", second, first, image, now)
			}
		}
	}
	// The engine refuses what the edge has not observed.
	before := r.stage.Applied()
	r.gate.SetPolicy(0, false, 0, 0)
	r.post(limits, body(limits, version), admin).want(t, 409, CodeStaleVersion)
	if r.stage.Applied() <= before+2 {
		t.Errorf("%d commands, want the two parts behind their note", r.stage.Applied()-before)
	}
}

// Of many changes of one version that come at once one is applied, whole.
func TestOfLimitsAtOnceOneIsApplied(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	for version := 1; version <= 20; version++ {
		statuses := make([]int, 8)
		var all sync.WaitGroup
		for i := range statuses {
			all.Go(func() {
				n := strconv.Itoa(100*version + i)
				statuses[i] = roundTrip(t, r.address, request{
					method: "POST", path: "/risk/control/limits", token: admin,
					body: `{"policyVersion":` + strconv.Itoa(version) + `,"limits":{"maxOrderQuantity":` + n +
						`,"maxPositionQuantity":` + n + `,"priceMaxAgeMs":` + n + `}}`,
				}).status
			})
		}
		all.Wait()
		counts := map[int]int{}
		for _, status := range statuses {
			counts[status]++
		}
		limits := r.gate.RiskLimits()
		if counts[200] != 1 || counts[409] != len(statuses)-1 ||
			limits[matcher.LimitOrderQty] != limits[matcher.LimitPosition] ||
			limits[matcher.LimitOrderQty] != limits[matcher.LimitPriceAge] {
			t.Fatalf("version %d: answers %v, limits %v", version, counts, limits)
		}
	}
}

// Each member is fed wrong, unknown, twice and missing; the answer names it and nothing is
// sequenced.
func TestErrorsOfLimitsNameTheField(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	of := func(member string) string { return `{"policyVersion":1,"limits":{` + member + `}}` }
	tests := []struct{ body, field string }{
		{`{"limits":{"creditLimit":1}}`, "policyVersion"},
		{`{"policyVersion":1}`, "limits"},
		{of(``), "limits"},
		{`{"policyVersion":0,"limits":{"creditLimit":1}}`, "policyVersion"},
		{`{"policyVersion":"1","limits":{"creditLimit":1}}`, "policyVersion"},
		{`{"policyVersion":1.5,"limits":{"creditLimit":1}}`, "policyVersion"},
		{`{"policyVersion":1,"limits":[]}`, "limits"},
		{`{"policyVersion":1,"limits":null}`, "limits"},
		{`{"policyVersion":1,"limits":{"creditLimit":1},"x":1}`, `"x"`},
		{of(`"maxOrderQty":1`), `"maxOrderQty"`},
		{of(`"creditLimit":1,"creditLimit":1`), "creditLimit"},
		{of(`"maxOrderQuantity":0`), "maxOrderQuantity"},
		{of(`"maxOrderQuantity":2147483648`), "maxOrderQuantity"},
		{of(`"maxOrderQuantity":1.5`), "maxOrderQuantity"},
		{of(`"maxPositionQuantity":-1`), "maxPositionQuantity"},
		{of(`"maxPositionQuantity":2147483648`), "maxPositionQuantity"},
		{of(`"maxOrderNotional":0`), "maxOrderNotional"},
		{of(`"maxOrderNotional":"x"`), "maxOrderNotional"},
		{of(`"maxOrderNotional":0.0000001`), "maxOrderNotional"},
		{of(`"maxConcentrationNotional":-2`), "maxConcentrationNotional"},
		{of(`"creditLimit":1e30`), "creditLimit"},
		{of(`"creditLimit":true`), "creditLimit"},
		{of(`"priceMaxAgeMs":0`), "priceMaxAgeMs"},
		{of(`"priceMaxAgeMs":"5"`), "priceMaxAgeMs"},
		{of(`"priceCollarBps":-1`), "priceCollarBps"},
		{of(`"priceCollarBps":1000001`), "priceCollarBps"},
		{of(`"priceCollarBps":nul`), "priceCollarBps"},
	}
	for _, path := range []string{"/risk/control/limits", "/risk/control/accounts/1/limits"} {
		for _, tt := range tests {
			a := r.post(path, tt.body, admin).want(t, 400, CodeMalformedBody)
			if detail := fmt.Sprint(a.field(t, "detail")); !strings.Contains(detail, tt.field) {
				t.Errorf("%s %s: %q does not name %s", path, tt.body, detail, tt.field)
			}
		}
	}
	for id := range matcher.LimitID(matcher.LimitCount) {
		name := id.String()
		a := r.post("/risk/control/limits", of(`"`+name+`":null`), admin).want(t, 400, CodeMalformedBody)
		if detail := fmt.Sprint(a.field(t, "detail")); !strings.Contains(detail, name) {
			t.Errorf("null: %q does not name %s", detail, name)
		}
	}
	r.post("/risk/control/limits", goodLimits, r.token("one", 1)).want(t, 403, CodeAdminRequired)
	if r.stage.Applied() != 0 {
		t.Errorf("%d commands were sequenced", r.stage.Applied())
	}
}
