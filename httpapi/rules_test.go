package httpapi

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/desk"
	"posttrade/ring/must"
)

// A policy with a lower version, and the repetition of a policy, are 409, and neither reaches the
// journal.
func TestAPolicyWhoseVersionDoesNotRiseIsRefused(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.post("/risk/control/policy", `{"policyVersion":7,"killSwitch":true}`, admin).want(t, 200, "")
	before := r.stage.Applied()
	for _, body := range []string{
		`{"policyVersion":6,"killSwitch":false}`,
		`{"policyVersion":1,"killSwitch":false,"maxPositionQuantity":1}`,
		`{"policyVersion":7,"killSwitch":true}`, `{"policyVersion":7,"killSwitch":false}`,
	} {
		r.post("/risk/control/policy", body, admin).want(t, 409, CodeStaleVersion)
	}
	if n := r.stage.Applied() - before; n != 0 {
		t.Errorf("%d commands came of refused policies", n)
	}
	image := r.get("/risk/control/snapshot", admin).want(t, 200, "")
	if image.field(t, "killSwitch") != true || image.field(t, "policyVersion") != "7" {
		t.Errorf("%s", image.body)
	}
	r.post("/risk/control/policy", `{"policyVersion":8,"killSwitch":false}`, admin).want(t, 200, "")
	r.post("/orders", goodOrder, "").want(t, 201, "")
}

// Of many policies of one version that come at once one is applied. The others are refused without
// a command of their own.
func TestOfPoliciesAtOnceOneIsApplied(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	for version := 1; version <= 20; version++ {
		before := r.stage.Applied()
		body := `{"policyVersion":` + strconv.Itoa(version) + `,"killSwitch":false}`
		statuses := make([]int, 8)
		var all sync.WaitGroup
		for i := range statuses {
			all.Go(func() {
				statuses[i] = roundTrip(t, r.address, request{
					method: "POST", path: "/risk/control/policy", body: body, token: admin,
				}).status
			})
		}
		all.Wait()
		counts := map[int]int{}
		for _, status := range statuses {
			counts[status]++
		}
		if counts[200] != 1 || counts[409] != len(statuses)-1 || r.stage.Applied() > before+8 {
			t.Fatalf("version %d: answers %v, %d commands", version, counts, r.stage.Applied()-before)
		}
	}
}

// A policy that waits for stable storage delays the next one until its own answer is known; the
// next one then has only the time that every answer has.
func TestAPolicyWaitsForTheOneBefore(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.recorder.hold()
	first := make(chan answer)
	go func() {
		first <- roundTrip(t, r.address, request{
			method: "POST", path: "/risk/control/policy", body: `{"policyVersion":1,"killSwitch":true}`,
			token: admin,
		})
	}()
	r.recorder.waitApplied(1)
	second := make(chan answer)
	go func() {
		second <- roundTrip(t, r.address, request{
			method: "POST", path: "/risk/control/policy", body: `{"policyVersion":1,"killSwitch":false}`,
			token: admin,
		})
	}()
	r.recorder.letGo()
	(<-first).want(t, 200, "")
	(<-second).want(t, 409, CodeStaleVersion)
	r.serve(func(d *Deps) { d.AnswerTimeout = 1 }, func(m *OrderMatcher) {
		m.policing <- struct{}{} // like a policy during a stalled write
	})
	r.post("/risk/control/policy", `{"policyVersion":2,"killSwitch":true}`, admin).want(t, 429,
		CodeTooManyRequests)
}

// The engine refuses what the edge cannot know: a policy that the edge has not observed yet.
func TestAPolicyThatTheEngineRefusesIsStaleToo(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.post("/risk/control/policy", `{"policyVersion":5,"killSwitch":true}`, admin).want(t, 200, "")
	r.gate.SetPolicy(0, true, 0, 0)
	a := r.post("/risk/control/policy", `{"policyVersion":5,"killSwitch":false}`, admin).want(t, 409,
		CodeStaleVersion)
	if got := fmt.Sprint(a.field(t, "sequence")); got != fmt.Sprint(r.sequence()) {
		t.Errorf("sequence %s, want that of the refusal, %d", got, r.sequence())
	}
	if p := r.views.Policy(); !p.KillSwitch || p.Version != 5 {
		t.Errorf("policy %+v", p)
	}
}

// A market order stops at the collar, and every answer about it gives the reason.
func TestAMarketOrderStopsAtTheCollar(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.order("2", "Sell", "5", "150", "").want(t, 201, "")
	r.order("2", "Sell", "5", "150.001", "").want(t, 201, "")
	r.post("/prices", `[{"security":"AAA","price":100}]`, admin).want(t, 202, "")
	market := `{"clientOrderId":"m","accountId":1,"security":"AAA","side":"Buy","quantity":8,` +
		`"type":"MARKET"}`
	first := r.post("/orders", market, "").want(t, 201, "")
	again := r.post("/orders", market, "").want(t, 201, "")
	shown := r.get("/orders/"+first.field(t, "orderId").(string), "").want(t, 200, "")
	for name, a := range map[string]answer{"created": first, "repeated": again, "shown": shown} {
		if a.field(t, "status") != "CANCELED" || a.field(t, "riskReason") != "PRICE_COLLAR" ||
			a.field(t, "remainingQuantity") != "3" || a.field(t, "lastExecutionPrice") != "150" {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	batch := r.post("/orders/batch",
		`[{"accountId":1,"security":"AAA","side":"Buy","quantity":8,"type":"MARKET",`+
			`"timeInForce":"FOK"}]`, "").
		want(t, 201, "")
	if item := batch.json(t).([]any)[0].(map[string]any); item["status"] != "CANCELED" ||
		item["riskReason"] != nil {
		t.Errorf("only 5 are offered: %s", batch.body)
	}
	batch = r.post("/orders/batch",
		`[{"accountId":1,"security":"AAA","side":"Sell","quantity":8,"type":"MARKET"},`+
			`{"accountId":1,"security":"AAA","side":"Buy","quantity":5,"type":"MARKET",`+
			`"timeInForce":"FOK"}]`,
		"").want(t, 201, "")
	for i, want := range []any{nil, nil} {
		if item := batch.json(t).([]any)[i].(map[string]any); item["status"] == "REJECTED" ||
			item["riskReason"] != want {
			t.Errorf("item %d: %s", i, batch.body)
		}
	}
}

// A price that is older than the market price is accepted, and changes nothing.
func TestAnOlderPriceIsAcceptedAndChangesNothing(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	first := r.post("/prices", `[{"security":"AAA","price":100}]`, admin).want(t, 202, "")
	if a := r.tick(50, -1); !a.Late || strconv.FormatUint(a.InputSeq-1, 10) != first.field(t,
		"sequence") {
		t.Errorf("%+v", a)
	}
	for name, px := range map[string]func() int64{
		"gate": func() int64 {
			id, _ := r.gate.Security([]byte("AAA"))
			px, _, _ := r.gate.Price(id)
			return px
		},
		"views": func() int64 { s, _ := r.views.Security(1); return s.MarketPx },
	} {
		if px() != 100_000_000 {
			t.Errorf("the %s have a market price of %d", name, px())
		}
	}
	if a := r.post("/trades", goodTrade, "").want(t, 201, ""); a.field(t, "price") != "100" {
		t.Errorf("%s", a.body)
	}
	r.post("/prices", `[{"security":"AAA","price":60}]`, admin).want(t, 202, "")
	if a := r.post("/trades", goodTrade[:1]+`"clientOrderId":"t2",`+goodTrade[1:], "").want(t, 201,
		""); a.field(t, "price") != "60" {
		t.Errorf("of one time the later price is the market's: %s", a.body)
	}
}

// tick submits a price of AAA, offset milliseconds from the clock, as a feed does.
func (r *rig) tick(px, offset int64) desk.Answer {
	r.t.Helper()
	ticket := must.Get(r.desk.Acquire(1))(r.t)
	defer ticket.Release()
	c := ticket.Command(0)
	*c = matcher.NewCommand(matcher.PriceTick)
	c.SecurityID, c.PriceTicks, c.EventTimeMillis = 1, px*1_000_000, r.now.Load()+offset
	must.OK(r.t, ticket.Submit())
	must.OK(r.t, ticket.Wait(time.Minute))
	return *ticket.Answer(0)
}

// A clock that ran ahead and was set back leaves a price of the future. A posted price replaces it
// all the same; the price of a trade does not.
func TestAPostedPriceReplacesOneOfTheFuture(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.now.Add(1_800_000)
	r.post("/prices", `[{"security":"AAA","price":100}]`, admin).want(t, 202, "")
	r.now.Add(-1_800_000)
	r.order("2", "Sell", "1", "120", "").want(t, 201, "")
	r.order("1", "Buy", "1", "120", "").want(t, 201, "")
	if a := r.post("/trades", goodTrade, "").want(t, 201, ""); a.field(t, "price") != "100" {
		t.Errorf("%s", a.body)
	}
	r.post("/prices", `[{"security":"AAA","price":60}]`, admin).want(t, 202, "")
	if a := r.post("/trades", goodTrade, "").want(t, 201, ""); a.field(t, "price") != "60" {
		t.Errorf("%s", a.body)
	}
	if n := r.gate.Late(); n != 0 {
		t.Errorf("%d prices came late", n)
	}
}

// An order that reduces a position is admitted, however far the position is above a limit that
// fell.
func TestAPositionOverItsLimitsCanBeReduced(t *testing.T) {
	r := newRig(t)
	admin := r.token("admin")
	r.post("/prices", `[{"security":"AAA","price":100}]`, admin).want(t, 202, "")
	r.post("/trades", `{"accountId":1,"security":"AAA","side":"Buy","quantity":90}`,
		"").want(t, 201, "")
	r.post("/risk/control/policy",
		`{"policyVersion":1,"killSwitch":false,"maxPositionQuantity":1,"maxConcentrationNotional":1}`,
		admin).want(t, 200, "")
	r.order("2", "Buy", "1", "100", "").want(t, 422, CodeRiskRefused)
	for _, body := range []string{
		`{"accountId":1,"security":"AAA","side":"Sell","quantity":10,"type":"MARKET"}`,
		`{"accountId":1,"security":"AAA","side":"Sell","quantity":40,"limitPrice":100}`,
	} {
		r.post("/orders", body, "").want(t, 201, "")
	}
	r.post("/trades", `{"accountId":1,"security":"AAA","side":"Sell","quantity":50}`,
		"").want(t, 201, "")
	r.post("/trades", `{"accountId":1,"security":"AAA","side":"Sell","quantity":1}`, "").want(t, 422,
		CodeRiskRefused)
}
