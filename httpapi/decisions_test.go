package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/blotter"
	"posttrade/journal"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// same checks that two answers agree in status, id and sequence.
func same(t *testing.T, first, again answer) {
	t.Helper()
	if first.status != again.status {
		t.Fatalf("first %d, again %d: %s", first.status, again.status, again.body)
	}
	for _, name := range []string{"orderId", "tradeId", "sequence", "reason",
		"clientOrderId", "fills"} {
		if a, b := fmt.Sprint(first.field(t, name)), fmt.Sprint(again.field(t, name)); a != b {
			t.Errorf("%s: first %v, again %v", name, a, b)
		}
	}
}

// TestRepeatedKeyGetsTheFirstDecision is the idempotency matrix: the first decision, and the
// repeated request.
func TestRepeatedKeyGetsTheFirstDecision(t *testing.T) {
	tests := []struct {
		name, path, body, changed string
		status                    int
	}{
		{"a resting order", "/orders", orderBody("1", "Sell", "10", "105", `,"clientOrderId":"k"`),
			orderBody("1", "Sell", "10", "106", `,"clientOrderId":"k"`), 201},
		{"a filled order", "/orders", orderBody("2", "Buy", "5", "101", `,"clientOrderId":"k"`),
			orderBody("2", "Sell", "5", "101", `,"clientOrderId":"k"`), 201},
		{"a cancelled IOC", "/orders", orderBody("2", "Buy", "5", "99",
			`,"clientOrderId":"k","timeInForce":"IOC"`),
			orderBody("2", "Buy", "5", "99", `,"clientOrderId":"k","timeInForce":"FOK"`), 201},
		{"an order the gate refuses", "/orders", orderBody("9", "Buy", "5", "99", `,"clientOrderId":"k"`),
			orderBody("9", "Buy", "6", "99", `,"clientOrderId":"k"`), 422},
		{"an order the engine refuses", "/orders",
			orderBody("2", "Buy", "5", "102", `,"clientOrderId":"k","timeInForce":"POST_ONLY"`),
			orderBody("2", "Buy", "5", "102", `,"clientOrderId":"k"`), 422},
		{"a trade", "/trades",
			`{"clientOrderId":"k","accountId":1,"security":"AAA","side":"Buy","quantity":3}`,
			`{"clientOrderId":"k","accountId":1,"security":"AAA","side":"Buy","quantity":4}`, 201},
		{"a refused trade", "/trades",
			`{"clientOrderId":"k","accountId":1,"security":"BBB","side":"Buy","quantity":3}`,
			`{"clientOrderId":"k","accountId":1,"security":"BBB","side":"Buy","quantity":4}`, 422},
		{"a replace", "/orders/ord-1/replace", `{"clientOrderId":"k","quantity":9,"limitPrice":101}`,
			`{"clientOrderId":"k","quantity":8,"limitPrice":101}`, 200},
		{"a refused replace", "/orders/ord-1/replace",
			`{"clientOrderId":"k","quantity":9,"limitPrice":1010}`,
			`{"clientOrderId":"k","quantity":9,"limitPrice":101}`, 422},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			seed(r)
			first := r.post(tt.path, tt.body, "").want(t, tt.status, "")
			sequenced := r.sequence()
			same(t, first, r.post(tt.path, tt.body, ""))
			r.post(tt.path, tt.changed, "").want(t, 409, CodeTermsDiffer)
			r.now.Add(1000)
			same(t, first, r.post(tt.path, tt.body, ""))
			if r.sequence() != sequenced {
				t.Errorf("repetitions were sequenced: %d after %d", r.sequence(), sequenced)
			}
			if tt.path == "/orders" { // a key belongs to its account
				other := strings.Replace(tt.body, `"accountId":`, `"accountId":3`, 1)
				if a := r.post(tt.path, other, ""); a.status == 409 {
					t.Errorf("another account meets the key: %s", a.body)
				}
			}
		})
	}
}

// TestOrderShowsHowItStandsNow repeats a create after its order has traded.
func TestOrderShowsHowItStandsNow(t *testing.T) {
	r := newRig(t)
	body := orderBody("1", "Sell", "10", "101", `,"clientOrderId":"k"`)
	first := r.post("/orders", body, "").want(t, 201, "")
	if first.field(t, "status") != "NEW" {
		t.Fatalf("%s", first.body)
	}
	r.order("2", "Buy", "4", "101", "").want(t, 201, "")
	again := r.post("/orders", body, "").want(t, 201, "")
	if again.field(t, "status") != "PARTIALLY_FILLED" || again.field(t, "remainingQuantity") != "6" ||
		again.field(t, "orderId") != first.field(t, "orderId") {
		t.Errorf("%s", again.body)
	}
}

// TestDuplicatesInFlight sends one order many times at once: one is accepted, and all answers show
// that one.
func TestDuplicatesInFlight(t *testing.T) {
	r := newRig(t)
	r.recorder.hold() // so that all pass the edge before the first is answered
	const senders = 8
	answers := make([]answer, senders)
	var group sync.WaitGroup
	for i := range senders {
		group.Go(func() {
			answers[i] = r.order("1", "Buy", "10", "100", `,"clientOrderId":"k"`)
		})
	}
	r.recorder.waitApplied(1)
	r.recorder.letGo()
	group.Wait()
	for _, a := range answers {
		same(t, answers[0], a.want(t, 201, ""))
	}
	list := r.get("/orders", "").want(t, 200, "").field(t, "items").([]any)
	if len(list) != 1 {
		t.Errorf("%d orders, want 1", len(list))
	}
}

// TestDuplicateTheEngineFinds passes the engine a repetition that the edge does not know yet.
func TestDuplicateTheEngineFinds(t *testing.T) {
	for _, tt := range []struct {
		name, second string
		status       int
	}{
		{"same terms", `,"clientOrderId":"k"`, 201},
		{"other terms", `,"timeInForce":"IOC","clientOrderId":"k"`, 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			// Both orders are in one batch of the ring: the views see the first only after the second has
			// passed the edge.
			batch := "[" + orderBody("1", "Buy", "10", "100", `,"clientOrderId":"k"`) + "," +
				orderBody("1", "Buy", "10", "100", tt.second) + "]"
			items := r.post("/orders/batch", batch, "").want(t, 201, "").json(t).([]any)
			first, second := items[0].(map[string]any), items[1].(map[string]any)
			if tt.status == 201 {
				if fmt.Sprint(first["orderId"], first["sequence"]) != fmt.Sprint(second["orderId"],
					second["sequence"]) {
					t.Errorf("first %v, second %v", first, second)
				}
			} else if second["status"] != "REJECTED" || second["riskReason"] != "DUPLICATE" {
				t.Errorf("second %v", second)
			}
			if r.sequence() != 2 {
				t.Errorf("sequence %d, want 2", r.sequence())
			}
		})
	}
}

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

// TestGateAndEngineMustAgree plants a security that only the gate knows.
func TestGateAndEngineMustAgree(t *testing.T) {
	r := newRig(t)
	must.OK(t, r.gate.SetSecurity(9, "GHOST", true, false, 1))
	admin := r.token("admin")
	r.post("/prices", `[{"security":"GHOST","price":1}]`, admin).want(t, 500, CodeInternal)
	r.post("/risk/control/security", `{"security":"GHOST","enabled":true,"halted":false}`,
		admin).want(t, 404, CodeSecurityNotFound)
	r.get("/book/GHOST", "").want(t, 404, CodeSecurityNotFound)
	if n := r.m.server.panics.Load(); n != 1 {
		t.Errorf("%d panics, want 1", n)
	}
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

// TestLateCancelAndReplace fills the order between the edge's look at it and the command.
func TestLateCancelAndReplace(t *testing.T) {
	for path, body := range map[string]string{
		"/orders/ord-1/cancel": "", "/orders/ord-1/replace": `{"quantity":5,"limitPrice":101}`,
	} {
		r := newRig(t)
		r.order("1", "Sell", "10", "101", "").want(t, 201, "")
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
		r.post(path, body, "").want(t, 409, CodeOrderTerminal)
		if !late {
			t.Errorf("%s: the order was not filled meanwhile", path)
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

// TestForgottenOrderIsStillAnswered repeats a key after its order has left the views.
func TestForgottenOrderIsStillAnswered(t *testing.T) {
	g := testGenesis()
	g.Limits.RetainedOrders = 2
	r := newRigWith(t, g)
	body := orderBody("1", "Buy", "1", "100", `,"clientOrderId":"k","timeInForce":"IOC"`)
	first := r.post("/orders", body, "").want(t, 201, "")
	refusedBody := orderBody("9", "Buy", "1", "100", `,"clientOrderId":"r"`)
	refused := r.post("/orders", refusedBody, "").want(t, 422, "")
	for range 3 {
		r.order("1", "Buy", "1", "100", `,"timeInForce":"IOC"`).want(t, 201, "")
	}
	r.get("/orders/ord-1", "").want(t, 404, CodeOrderNotFound)
	again := r.post("/orders", body, "").want(t, 201, "")
	if again.field(t, "orderId") != first.field(t, "orderId") ||
		again.field(t, "sequence") != first.field(t, "sequence") ||
		again.field(t, "status") != nil {
		t.Errorf("%s", again.body)
	}
	same(t, refused, r.post("/orders", refusedBody, ""))
	items := r.post("/orders/batch", "["+body+","+refusedBody+"]", "").want(t, 201, "").json(t).([]any)
	if len(items) != 2 || items[0].(map[string]any)["orderId"] != "ord-1" ||
		items[1].(map[string]any)["status"] != "REJECTED" {
		t.Errorf("%v", items)
	}
}

// TestATradeThatLeftTheBlotterIsStillAnswered repeats keys after their fills have left the blotter:
// alone, of an order, and in a batch. The journal has the fills.
func TestATradeThatLeftTheBlotterIsStillAnswered(t *testing.T) {
	small := must.Get(blotter.New(2))(t) // the rig closes it
	r := newRig(t, func(r *rig) { r.blotter, r.deps.Blotter = small, small })
	var asked []uint64
	var fails error
	recorded := map[uint64][]matcher.Fill{}
	r.serve(func(d *Deps) {
		d.FillsOf = func(_ context.Context, inputSeq uint64,
			dst []matcher.Fill) ([]matcher.Fill, error) {
			asked = append(asked, inputSeq)
			return append(dst, recorded[inputSeq]...), fails
		}
	})
	r.price("AAA", "100")
	trade := `{"clientOrderId":"k","accountId":1,"security":"AAA","side":"Buy","quantity":1}`
	first := r.post("/trades", trade, "").want(t, 201, "")
	seq := must.Get(strconv.ParseUint(first.field(t, "sequence").(string), 10, 64))(t)
	fills, _ := small.ByInputSeq(seq, nil)
	recorded[seq] = fills
	same(t, first, r.post("/trades", trade, "")) // the blotter still has it
	if n := len(asked); n != 0 {
		t.Errorf("the journal was asked %d times for what the blotter has", n)
	}
	r.order("2", "Sell", "5", "100", "").want(t, 201, "")
	order := `{"clientOrderId":"o2","accountId":1,"security":"AAA","side":"Buy",` +
		`"quantity":2,"limitPrice":100}`
	created := r.post("/orders", order, "").want(t, 201, "")
	own := must.Get(strconv.ParseUint(created.field(t, "sequence").(string), 10, 64))(t)
	fills, _ = small.ByInputSeq(own, nil)
	recorded[own] = fills
	other := `{"accountId":2,"security":"AAA","side":"Buy","quantity":1}`
	r.post("/trades", other, "").want(t, 201, "")
	r.post("/trades", other, "").want(t, 201, "")
	same(t, first, r.post("/trades", trade, ""))
	same(t, created, r.post("/orders", order, ""))
	items := r.post("/orders/batch", "["+order+"]", "").want(t, 201, "").json(t).([]any)
	if got := items[0].(map[string]any)["fills"].([]any); len(got) != 1 {
		t.Errorf("fills in a batch: %v", got)
	}
	fails = journal.ErrArchived
	again := r.post("/trades", trade, "").want(t, 201, "")
	if again.field(t, "sequence") != first.field(t, "sequence") || again.field(t, "tradeId") != nil {
		t.Errorf("archived: %s", again.body)
	}
	fails = context.DeadlineExceeded
	r.post("/trades", trade, "").want(t, 504, CodeOutcomeUnknown)
	fails = journal.ErrCorrupt
	damaged := r.post("/trades", trade, "").want(t, 500, CodeInternal)
	if detail := damaged.field(t, "detail").(string); !strings.Contains(detail, "cannot be read") {
		t.Errorf("%s", damaged.body)
	}
	r.post("/orders", order, "").want(t, 500, CodeInternal)
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
