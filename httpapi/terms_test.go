package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// sequenced makes the engine decide commands that did not come through the edge.
func (r *rig) sequenced(commands ...matcher.Command) {
	r.t.Helper()
	ticket := must.Get(r.desk.Acquire(len(commands)))(r.t)
	defer ticket.Release()
	want := r.sequence() + uint64(len(commands))
	for i := range commands {
		*ticket.Command(i) = commands[i]
	}
	must.OK(r.t, ticket.Submit())
	r.recorder.waitApplied(want)
}

// list makes a security tradable that is not in the genesis record.
func (r *rig) list(ticker string, id uint32) {
	r.t.Helper()
	c := matcher.NewCommand(matcher.SecurityControl)
	c.SecurityID, c.Side, c.PriceTicks = id, matcher.SecurityEnabled, 1
	r.sequenced(matcher.NewSymbolRegister(ticker), c)
}

// TestATickerWithoutItsFirstControl: it has a number, and is not traded yet. Prices and
// restrictions of it are refused like those of any unknown security; nothing of the request is
// sequenced.
func TestATickerWithoutItsFirstControl(t *testing.T) {
	r := newRig(t)
	r.sequenced(matcher.NewSymbolRegister("FRESH"))
	admin, before := r.token("admin"), r.sequence()
	prices := `[{"security":"AAA","price":100},{"security":"FRESH","price":100}]`
	restriction := `{"security":"FRESH","restricted":true}`
	r.post("/prices", prices, admin).want(t, 404, CodeSecurityNotFound)
	r.post("/risk/control/restriction", restriction, admin).want(t, 404, CodeSecurityNotFound)
	if now := r.sequence(); now != before {
		t.Errorf("%d commands came of what was refused", now-before)
	}
	r.post("/risk/control/security", `{"security":"FRESH","enabled":true,"halted":false}`,
		admin).want(t, 200, "")
	r.post("/prices", prices, admin).want(t, 202, "")
	r.post("/risk/control/restriction", restriction, admin).want(t, 200, "")
}

// TestForeignKeyMeetsNobody: another account has used the very key of an order first, which is
// possible for a client that knows how keys are made. The order is not affected. Two ids of one
// account that have one key are kept apart too: the second is refused, and never returns the first
// one's order.
func TestForeignKeyMeetsNobody(t *testing.T) {
	for _, secret := range []string{"", "000102030405060708090a0b0c0d0e0f"} {
		t.Run("secret="+secret, func(t *testing.T) {
			g := testGenesis()
			g.ClientKey = secret
			r := newRigWith(t, g)
			forged := matcher.NewCommand(matcher.OrderNew)
			forged.EventTimeMillis, forged.AccountID, forged.SecurityID, forged.Qty,
				forged.LimitPx = testStart, 2, 1, 3, 100e6
			forged.PriceTicks = int64(r.views.ClientKey().Of(1, []byte("victim")))
			r.sequenced(forged)
			first := r.order("1", "Buy", "10", "100", `,"clientOrderId":"victim"`).want(t, 201, "")
			if first.field(t, "orderId") != "ord-2" || first.field(t, "accountId") != "1" {
				t.Errorf("%s", first.body)
			}
			same(t, first, r.order("1", "Buy", "10", "100", `,"clientOrderId":"victim"`))
			batch := r.post("/orders/batch", "["+orderBody("1", "Buy", "10", "100",
				`,"clientOrderId":"victim"`)+"]", "")
			if item := batch.want(t, 201, "").json(t).([]any)[0].(map[string]any); item["orderId"] !=
				"ord-2" {
				t.Errorf("%v", item)
			}
			own := forged
			own.AccountID, own.PriceTicks = 1, int64(r.views.ClientKey().Of(1, []byte("mine")))
			own.Qty = 10
			r.sequenced(own) // another id of the same key and the same terms
			r.order("1", "Buy", "10", "100", `,"clientOrderId":"mine"`).want(t, 409, CodeTermsDiffer)
		})
	}
}

// TestTermsAreComparedAsTheyWereSent: an order or a trade with an unknown ticker is repeated as it
// was sent, also when the ticker is known by now; with another ticker it is a different request.
func TestTermsAreComparedAsTheyWereSent(t *testing.T) {
	order := func(security string) string {
		return `{"clientOrderId":"k","accountId":1,"security":"` + security +
			`","side":"Buy","quantity":5,"limitPrice":100}`
	}
	trade := func(security string) string {
		return `{"clientOrderId":"k","accountId":1,"security":"` + security +
			`","side":"Buy","quantity":5}`
	}
	for path, body := range map[string]func(string) string{"/orders": order, "/trades": trade} {
		t.Run(path, func(t *testing.T) {
			r := newRig(t)
			first := r.post(path, body("NEWCO"), "").want(t, 422, CodeRiskRefused)
			if first.field(t, "reason") != "UNKNOWN_SECURITY" {
				t.Fatalf("%s", first.body)
			}
			sequenced := r.sequence()
			same(t, first, r.post(path, body("NEWCO"), ""))
			r.post(path, body("OLDCO"), "").want(t, 409, CodeTermsDiffer)
			r.post(path, body("AAA"), "").want(t, 409, CodeTermsDiffer)
			if r.sequence() != sequenced {
				t.Errorf("repetitions were sequenced: %d after %d", r.sequence(), sequenced)
			}
			r.list("NEWCO", 6)
			same(t, first, r.post(path, body("NEWCO"), ""))
			r.post(path, body("OLDCO"), "").want(t, 409, CodeTermsDiffer)
			r.post(path, body("AAA"), "").want(t, 409, CodeTermsDiffer)
			r.post(path, strings.Replace(body("NEWCO"), `"quantity":5`, `"quantity":6`, 1), "").want(t, 409,
				CodeTermsDiffer)
		})
	}
}

// TestBatchRefusesAKeyOfOtherTermsAlone: an error of one order of a batch has no effect on the
// others.
func TestBatchRefusesAKeyOfOtherTermsAlone(t *testing.T) {
	r := newRig(t)
	r.order("1", "Buy", "10", "100", `,"clientOrderId":"old"`).want(t, 201, "")
	a := r.post("/orders/batch", "["+strings.Join([]string{
		orderBody("1", "Buy", "1", "99", `,"clientOrderId":"new"`),
		orderBody("1", "Buy", "11", "100", `,"clientOrderId":"old"`),
		orderBody("1", "Buy", "10", "100", `,"clientOrderId":"old"`),
		orderBody("1", "Buy", "2", "98", ""),
		orderBody("1", "Buy", "1", "99", `,"clientOrderId":"new"`),
		orderBody("1", "Sell", "1", "130", `,"clientOrderId":"new"`),
	}, ",")+"]", "").want(t, 201, "")
	want := []string{
		"ord-2 NEW <nil> <nil> <nil> 2", "<nil> REJECTED DUPLICATE TERMS_DIFFER 409 <nil>",
		"ord-1 NEW <nil> <nil> <nil> 1",
		"ord-3 NEW <nil> <nil> <nil> 3", "ord-2 NEW <nil> <nil> <nil> 2",
		"<nil> REJECTED DUPLICATE TERMS_DIFFER 409 5",
	}
	items := a.json(t).([]any)
	if len(items) != len(want) {
		t.Fatalf("%s", a.body)
	}
	for i, item := range items {
		o := item.(map[string]any)
		got := fmt.Sprint(o["orderId"], " ", o["status"], " ", o["riskReason"], " ", o["code"], " ",
			o["httpStatus"], " ", o["sequence"])
		if got != want[i] {
			t.Errorf("order %d: %s, want %s", i, got, want[i])
		}
	}
	if r.sequence() != 5 {
		t.Errorf("sequence %d, want 5", r.sequence())
	}
	// All of them are known, none is sequenced again.
	again := r.post("/orders/batch", "["+orderBody("1", "Buy", "11", "100",
		`,"clientOrderId":"old"`)+"]", "").want(t, 201, "")
	if !strings.Contains(string(again.body), `"code":"TERMS_DIFFER","httpStatus":409`) ||
		r.sequence() != 5 {
		t.Errorf("sequence %d: %s", r.sequence(), again.body)
	}
}
