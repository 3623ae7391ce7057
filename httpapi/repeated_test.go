package httpapi

import (
	"context"
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
		items[1].(map[string]any)["status"] != "REJECTED" ||
		items[1].(map[string]any)["orderId"] != refused.field(t, "orderId") {
		t.Errorf("%v", items)
	}
}

// TestATradeThatLeftTheBlotterIsStillAnswered repeats keys after their fills have left the blotter:
// alone, of an order, and in a batch. The journal has the fills.
func TestATradeThatLeftTheBlotterIsStillAnswered(t *testing.T) {
	small := must.Get(blotter.New(2))(t) // the rig closes it
	r := newRig(t, func(r *rig) { r.blotter, r.deps.Blotter = small, small })
	var asked []uint64
	var until []time.Time
	var fails error
	recorded := map[uint64][]matcher.Fill{}
	r.serve(func(d *Deps) {
		d.FillsOf = func(ctx context.Context, inputSeq uint64,
			dst []matcher.Fill) ([]matcher.Fill, error) {
			late, _ := ctx.Deadline()
			asked, until = append(asked, inputSeq), append(until, late)
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
	until = nil
	batch := "[" + order + "," + order + "]"
	items := r.post("/orders/batch", batch, "").want(t, 201, "").json(t).([]any)
	if got := items[1].(map[string]any)["fills"].([]any); len(got) != 1 {
		t.Errorf("fills in a batch: %v", got)
	}
	if len(until) != 2 || until[0] != until[1] || until[0].IsZero() {
		t.Errorf("the items of a batch may read until %v", until)
	}
	fails = journal.ErrArchived
	again := r.post("/trades", trade, "").want(t, 201, "")
	if again.field(t, "sequence") != first.field(t, "sequence") || again.field(t, "tradeId") != nil {
		t.Errorf("archived: %s", again.body)
	}
	r.post("/orders/batch", batch, "").want(t, 201, "")
	fails = context.DeadlineExceeded
	r.post("/trades", trade, "").want(t, 504, CodeOutcomeUnknown)
	r.post("/orders/batch", batch, "").want(t, 504, CodeOutcomeUnknown)
	fails = context.Canceled // it may be sent again, unless another order of it was sequenced
	if a := r.post("/orders/batch", batch, "").want(t, 503, CodeStopping); a.field(t,
		"sequenced") != false {
		t.Errorf("a batch of repeated orders at a stop: %s", a.body)
	}
	mixed := "[" + order + "," + orderBody("1", "Buy", "1", "99", "") + "]"
	if a := r.post("/orders/batch", mixed, "").want(t, 503, CodeStopping); strings.Contains(
		string(a.body), "sequenced") {
		t.Errorf("a batch with another order at a stop: %s", a.body)
	}
	fails = journal.ErrCorrupt
	damaged := r.post("/trades", trade, "").want(t, 500, CodeInternal)
	if detail := damaged.field(t, "detail").(string); !strings.Contains(detail, "cannot be read") {
		t.Errorf("%s", damaged.body)
	}
	r.post("/orders", order, "").want(t, 500, CodeInternal)
	r.post("/orders/batch", batch, "").want(t, 500, CodeInternal)
}
