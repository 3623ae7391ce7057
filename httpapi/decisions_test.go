package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/ring/must"
)

func TestBatchDecidesEachOrder(t *testing.T) {
	r := newRig(t)
	seed(r)
	batch := "[" + strings.Join([]string{
		orderBody("1", "Sell", "10", "101", `,"clientOrderId":"seed-1"`), // known: seeded before
		orderBody("9", "Buy", "1", "100", ""),                            // refused by the gate
		orderBody("2", "Buy", "1", "101", `,"timeInForce":"POST_ONLY"`),  // refused by the engine
		orderBody("2", "Buy", "4", "101", ""),                            // fills
	}, ",") + "]"
	before := r.sequence()
	items := r.post("/orders/batch", batch, "").want(t, 201, "").json(t).([]any)
	want := []string{"PARTIALLY_FILLED <nil>", "REJECTED UNKNOWN_ACCOUNT", "REJECTED INVALID",
		"FILLED <nil>"}
	for i, item := range items {
		o := item.(map[string]any)
		if got := fmt.Sprint(o["status"], " ", o["riskReason"]); got != want[i] {
			t.Errorf("item %d: %s, want %s", i, got, want[i])
		}
	}
	if items[0].(map[string]any)["orderId"] != "ord-1" {
		t.Errorf("the known order: %v", items[0])
	}
	if n := r.sequence() - before; n != 3 {
		t.Errorf("%d sequenced, want 3", n)
	}
}

func TestBatchIsReadWholeBeforeAnythingIsSequenced(t *testing.T) {
	r := newRig(t)
	for name, tail := range map[string]string{
		"a bad item": `{"accountId":1}`, "a missing item": "", "text": `"x"`, "null": "null",
	} {
		a := r.post("/orders/batch", "["+goodOrder+","+tail+"]", "").want(t, 400, CodeMalformedBody)
		if detail := a.field(t, "detail").(string); name == "a bad item" &&
			!strings.Contains(detail, "item 1") {
			t.Errorf("%s: %s", name, detail)
		}
	}
	many := "[" + strings.Repeat(goodOrder+",", maxBatch) + goodOrder + "]"
	r.post("/orders/batch", many, "").want(t, 400, CodeMalformedBody)
	if r.sequence() != 0 {
		t.Errorf("sequence %d, want 0", r.sequence())
	}
	full := r.post("/orders/batch", "["+strings.Repeat(goodOrder+",", maxBatch-1)+goodOrder+"]",
		"").want(t, 201, "")
	if n := len(full.json(t).([]any)); n != maxBatch {
		t.Errorf("%d answers, want %d", n, maxBatch)
	}
}

func TestRefusalsStayAtTheEdgeWhenTheyAreNotAudited(t *testing.T) {
	r := newRig(t, unsequenced)
	a := r.order("9", "Buy", "1", "100", "").want(t, 422, CodeRiskRefused)
	if a.field(t, "reason") != "UNKNOWN_ACCOUNT" || a.field(t, "sequence") != nil ||
		a.field(t, "orderId") != nil {
		t.Errorf("%s", a.body)
	}
	items := r.post("/orders/batch", "["+orderBody("9", "Buy", "1", "100", "")+"]", "").want(t, 201,
		"").json(t).([]any)
	if o := items[0].(map[string]any); o["sequence"] != nil || o["riskReason"] != "UNKNOWN_ACCOUNT" {
		t.Errorf("%v", o)
	}
	if r.sequence() != 0 {
		t.Errorf("sequence %d, want 0", r.sequence())
	}
	// The edge sequences an order that only the engine knows to be refused.
	r.order("1", "Sell", "1", "100", "").want(t, 201, "")
	a = r.order("2", "Buy", "1", "100", `,"timeInForce":"POST_ONLY"`).want(t, 422, CodeRiskRefused)
	if a.field(t, "sequence") != "2" {
		t.Errorf("%s", a.body)
	}
}

// TestRefusalReasons meets the reasons of the gate and of the engine.
func TestRefusalReasons(t *testing.T) {
	r := newRig(t)
	r.price("AAA", "100")
	for reason, body := range map[string]string{
		"UNKNOWN_ACCOUNT":   orderBody("9", "Buy", "1", "100", ""),
		"ACCOUNT_DISABLED":  orderBody("4", "Buy", "1", "100", ""),
		"UNKNOWN_SECURITY":  strings.Replace(goodOrder, "AAA", "NONE", 1),
		"SECURITY_DISABLED": strings.Replace(goodOrder, "AAA", "XHLT", 1),
		"INVALID":           orderBody("1", "Buy", "1", "100.0001", ""),
		"PRICE_MISSING":     `{"accountId":1,"security":"BBB","side":"Buy","quantity":1,"type":"MARKET"}`,
		"PRICE_COLLAR":      orderBody("1", "Buy", "1", "151", ""),
		"ORDER_SIZE":        orderBody("1", "Buy", "100001", "100", ""),
		"ORDER_NOTIONAL": strings.Replace(orderBody("1", "Buy", "100000", "9000000", ""),
			"AAA", "BBB", 1),
	} {
		a := r.post("/orders", body, "").want(t, 422, CodeRiskRefused)
		if a.field(t, "reason") != reason || a.field(t, "decision") != "REJECTED" {
			t.Errorf("%s: %s", reason, a.body)
		}
		shown := r.get("/orders/"+a.field(t, "orderId").(string), "").want(t, 200, "")
		if shown.field(t, "status") != "REJECTED" || shown.field(t, "riskReason") != reason {
			t.Errorf("%s: %s", reason, shown.body)
		}
	}
	r.now.Add(31_000)
	r.post("/trades", goodTrade, "").want(t, 422, CodeRiskRefused)
	r.post("/risk/control/policy", `{"policyVersion":7,"killSwitch":true}`,
		r.token("admin")).want(t, 200, "")
	if a := r.post("/orders", goodOrder, "").want(t, 422, ""); a.field(t, "reason") != "KILL_SWITCH" {
		t.Errorf("%s", a.body)
	}
}

func TestControlsActBeforeTheirAnswer(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.order("1", "Buy", "10", "100", "").want(t, 201, "")
	control := func(name, body, version string) {
		t.Helper()
		a := r.post("/risk/control/"+name, body, admin).want(t, 200, "")
		if a.field(t, "version") != version || a.field(t, "applied") != true {
			t.Errorf("%s: %s, want version %s", name, a.body, version)
		}
	}
	control("account", `{"accountId":1,"enabled":false}`, "1")
	if a := r.post("/orders", goodOrder, "").want(t, 422, ""); a.field(t,
		"reason") != "ACCOUNT_DISABLED" {
		t.Errorf("%s", a.body)
	}
	control("account", `{"accountId":1,"enabled":true}`, "2")
	r.post("/orders", goodOrder, "").want(t, 201, "")
	control("security", `{"security":"AAA","enabled":true,"halted":true}`, "1")
	r.post("/orders", goodOrder, "").want(t, 422, "")
	control("security", `{"security":"AAA","enabled":true,"halted":false}`, "2")
	control("restriction", `{"security":"AAA","restricted":true}`, "3")
	if a := r.get("/orders/ord-1", "").want(t, 200, ""); a.field(t, "status") != "CANCELED" ||
		a.field(t, "riskReason") != "RESTRICTED" {
		t.Errorf("restricting left %s", a.body)
	}
	control("restriction", `{"security":"AAA","restricted":false}`, "4")
	control("policy",
		`{"policyVersion":9,"killSwitch":true,"maxPositionQuantity":5,"maxConcentrationNotional":"12.5"}`,
		"9")
	image := r.get("/risk/control/snapshot", admin).want(t, 200, "")
	if image.field(t, "killSwitch") != true || image.field(t, "policyVersion") != "9" {
		t.Errorf("%s", image.body)
	}
	if p := r.views.Policy(); p.MaxPositionQty != 5 || p.MaxConcentrationNotional != 12_500_000 {
		t.Errorf("policy %+v", p)
	}
}

// TestASecurityOfTheGateAlone: what the engine does not trade yet is not found, whatever asks for
// it.
func TestASecurityOfTheGateAlone(t *testing.T) {
	r := newRig(t)
	must.OK(t, r.gate.SetSecurity(9, "GHOST", true, false, 1))
	admin, before := r.token("admin"), r.sequence()
	for path, body := range map[string]string{
		"/prices":                   `[{"security":"GHOST","price":1}]`,
		"/risk/control/security":    `{"security":"GHOST","enabled":true,"halted":false}`,
		"/risk/control/restriction": `{"security":"GHOST","restricted":true}`,
	} {
		r.post(path, body, admin).want(t, 404, CodeSecurityNotFound)
	}
	r.get("/book/GHOST", "").want(t, 404, CodeSecurityNotFound)
	if r.sequence() != before {
		t.Error("something was sequenced")
	}
}

// TestAPanicIsItsRequests: it is answered, counted, and ends nothing else.
func TestAPanicIsItsRequests(t *testing.T) {
	r := newRig(t)
	r.serve(func(d *Deps) { d.Clock = func() int64 { panic("planted") } })
	body := orderBody("1", "Buy", "1", "100", "")
	for n := range uint64(2) {
		r.post("/orders", body, "").want(t, 500, CodeInternal)
		if got := r.m.server.panics.Load(); got != n+1 {
			t.Errorf("%d panics, want %d", got, n+1)
		}
	}
	r.get("/health", "").want(t, 200, "")
}

func TestReplaceAndCancel(t *testing.T) {
	r := newRig(t)
	r.order("1", "Sell", "10", "101", "").want(t, 201, "")
	r.order("2", "Buy", "4", "101", "").want(t, 201, "")
	a := r.post("/orders/ord-1/replace", `{"quantity":20,"limitPrice":"102.5"}`, "").want(t, 200, "")
	if a.field(t, "quantity") != "20" || a.field(t, "remainingQuantity") != "16" ||
		a.field(t, "limitPrice") != "102.5" ||
		a.field(t, "orderId") != "ord-1" || a.field(t, "sequence") != "1" {
		t.Errorf("%s", a.body)
	}
	bad := r.post("/orders/ord-1/replace", `{"quantity":4,"limitPrice":102.5}`, "").want(t, 422,
		CodeRiskRefused)
	if bad.field(t, "reason") != "INVALID" {
		t.Errorf("%s", bad.body)
	}
	a = r.post("/orders/ord-1/cancel", "", "").want(t, 200, "")
	if a.field(t, "status") != "CANCELED" || a.field(t, "remainingQuantity") != "16" ||
		a.field(t, "riskReason") != nil {
		t.Errorf("%s", a.body)
	}
	r.post("/orders/ord-1/cancel", `{"x":1}`, "").want(t, 400, CodeMalformedBody)
}

// TestLateCancelAndReplace fills the order between the edge's look at it and the command. Terms
// that are wrong whatever the order's state are refused as such. The request again has the same
// answer.
func TestLateCancelAndReplace(t *testing.T) {
	replace := func(quantity, price string) string {
		return `{"quantity":` + quantity + `,"limitPrice":` + price + `,"clientOrderId":"k"}`
	}
	for _, tt := range []struct {
		path, body, order string
		status            int
		code              Code
	}{
		{"/orders/ord-1/cancel", "", "", 409, CodeOrderTerminal},
		{"/orders/ord-1/replace", replace("11", "101"), "", 409, CodeOrderTerminal},
		{"/orders/ord-1/replace", replace("10", "101"), "", 422, CodeRiskRefused}, // all is filled
		{"/orders/ord-1/replace", replace("11", "101.0005"), "", 422, CodeRiskRefused},
		{"/orders/ord-1/replace", replace("11", "101"), `,"timeInForce":"POST_ONLY"`, 422,
			CodeRiskRefused},
	} {
		r := newRig(t)
		r.order("1", "Sell", "10", "101", tt.order).want(t, 201, "")
		other, late := r.address, false
		r.serve(func(d *Deps) {
			d.Clock = func() int64 {
				if !late {
					late = true
					fill := request{method: "POST", path: "/orders", body: orderBody("2", "Buy", "10", "101", "")}
					r.callAt(other, fill).want(t, 201, "")
				}
				return testStart
			}
		})
		want := any("3") // the order and its fill come before
		for range 2 {
			a := r.post(tt.path, tt.body, "").want(t, tt.status, tt.code)
			if got := a.field(t, "sequence"); got != want {
				t.Errorf("%s %s: sequence %v, want %v", tt.path, tt.body, got, want)
			}
			if tt.body == "" {
				want = nil // a cancel has no key: the second one is not sequenced
			}
		}
		if !late {
			t.Errorf("%s: the order was not filled meanwhile", tt.path)
		}
	}
}

// TestASequencedConflictHasItsSequence: another request with the key is decided when the edge has
// already looked for it, so that the engine finds the key. The refusal stands under a sequence. The
// same request again sequences nothing.
func TestASequencedConflictHasItsSequence(t *testing.T) {
	for _, tt := range []struct{ path, first, second string }{
		{"/orders", orderBody("1", "Buy", "1", "100", ""), orderBody("1", "Buy", "2", "100", "")},
		{"/trades", goodTrade, strings.Replace(goodTrade, "Buy", "Sell", 1)},
		{"/orders/ord-1/replace", `{"quantity":5,"limitPrice":101}`, `{"quantity":6,"limitPrice":101}`},
		{"/swaps", goodSwap, strings.Replace(goodSwap, "Pay\"", "Receive\"", 1)},
	} {
		r := newRig(t)
		r.order("1", "Sell", "10", "101", "").want(t, 201, "")
		r.post("/prices", goodPrices, r.token("admin")).want(t, 202, "")
		other, met, before := r.address, false, r.sequence()
		r.serve(func(d *Deps) {
			d.Failed = func() error { // asked behind the key
				if !met {
					met = true
					if a := r.callAt(other, request{method: "POST", path: tt.path,
						body: keyed(tt.first, "k")}); a.status/100 != 2 {
						t.Errorf("%s: the first is %d %s", tt.path, a.status, a.body)
					}
				}
				return nil
			}
		})
		for _, want := range []any{fmt.Sprint(before + 2), nil} {
			a := r.post(tt.path, keyed(tt.second, "k"), "").want(t, 409, CodeTermsDiffer)
			if got := a.field(t, "sequence"); got != want || r.sequence() != before+2 {
				t.Errorf("%s: sequence %v, want %v; applied %d", tt.path, got, want, r.sequence())
			}
		}
	}
}

// TestACancelledOrderThatIsForgottenAtOnce: the order is not kept until its cancel is answered. The
// 404 has the sequence of the cancel.
func TestACancelledOrderThatIsForgottenAtOnce(t *testing.T) {
	g := testGenesis()
	g.Limits.RetainedOrders = 1
	r := newRigWith(t, g)
	r.order("1", "Sell", "10", "101", "").want(t, 201, "")
	r.recorder.hold()
	answers := make(chan answer)
	call := func(path, body string) {
		answers <- roundTrip(t, r.address, request{method: "POST", path: path, body: body})
	}
	go call("/orders/ord-1/cancel", "")
	r.recorder.waitApplied(2)
	go call("/orders", orderBody("1", "Sell", "10", "101", `,"timeInForce":"IOC"`))
	r.recorder.waitApplied(3)
	r.recorder.letGo()
	for range 2 {
		if a := <-answers; a.status != 201 && a.want(t, 404,
			CodeOrderNotFound).field(t, "sequence") != "2" {
			t.Errorf("%s", a.body)
		}
	}
}

func TestFullRingIsRefusedUnsequenced(t *testing.T) {
	r := newRig(t, withoutEngine)
	for {
		lo, ok := r.in.ClaimN(1)
		if !ok {
			break
		}
		*r.in.At(lo) = matcher.NewCommand(matcher.SnapshotMark)
		r.in.Publish(lo, 1)
	}
	for _, q := range []struct{ path, body string }{
		{"/orders", goodOrder}, {"/orders/batch", "[" + goodOrder + "]"}, {"/trades", goodTrade},
		{"/prices", goodPrices},
	} {
		a := r.post(q.path, q.body, r.token("admin")).want(t, 503, CodeOverloaded)
		if a.field(t, "sequenced") != false || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %s", q.path, a.body)
		}
	}
	if r.desk.Out() != 0 {
		t.Errorf("%d tickets are out", r.desk.Out())
	}
}

// TestPricesInPartsKeepTheirPromise fails the second ticket of one request: the first one is
// sequenced, so the answer must not say that nothing was sequenced.
func TestPricesInPartsKeepTheirPromise(t *testing.T) {
	r := newRig(t)
	tick := `{"security":"AAA","price":1},`
	many := "[" + strings.Repeat(tick, 2*1024) + `{"security":"BBB","price":7.5}]`
	a := r.post("/prices", many, r.token("admin")).want(t, 202, "")
	if last, _ := strconv.Atoi(fmt.Sprint(a.field(t, "sequence"))); last <= 2049 ||
		a.field(t, "accepted") != "2049" {
		t.Errorf("%s", a.body) // the notes are sequenced too
	}
	calls := 0
	r.serve(func(d *Deps) {
		clock := d.Clock
		d.Clock = func() int64 { calls++; return clock() }
		d.AnswerTimeout = 20 * time.Millisecond
	})
	r.recorder.hold()
	a = r.post("/prices", many, r.token("admin")).want(t, 504, CodeOutcomeUnknown)
	if a.field(t, "sequenced") != nil || calls != 1 {
		t.Errorf("%s after %d clock readings", a.body, calls)
	}
}

func TestHealthNamesTheState(t *testing.T) {
	r := newRig(t)
	r.serve(func(d *Deps) { d.Projected = func() uint64 { return 42 }; d.Cluster = leading("2") })
	status := func(want string) {
		t.Helper()
		if a := r.get("/health", "").want(t, 200, ""); a.field(t, "status") != want ||
			a.field(t, "role") != "LEADER" || a.field(t, "member") != "2" ||
			a.field(t, "projected") != "42" {
			t.Errorf("%s, want %s", a.body, want)
		}
	}
	status("ok")
	notReady(r)
	status("not-ready")
	r.held.Store(true)
	status("history-ahead")
	r.full.Store(true)
	status("storage-full")
	r.fail(errHeld)
	status("failed")
}

func TestDurabilityIsNamedOnEveryAnswer(t *testing.T) {
	r := newRig(t)
	for _, a := range []answer{
		r.get("/health", ""), r.get("/nowhere", ""), r.post("/orders", "{", ""),
		r.post("/orders", goodOrder, ""),
	} {
		if a.header.Get("X-Durability") != "fsync" || a.header.Get("Server") != "" {
			t.Errorf("%d: %v", a.status, a.header)
		}
	}
	var doc any
	if err := json.Unmarshal(r.get("/openapi.json", "").body, &doc); err != nil {
		t.Error(err)
	}
}
