package httpapi

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"posttrade/matcher"
	"posttrade/ring/must"
)

// TestOrderIDsGoOnBeyond32Bits: no id names two orders, and every request and answer about an order
// has the id that the order was given.
func TestOrderIDsGoOnBeyond32Bits(t *testing.T) {
	g := testGenesis()
	fresh := must.Get(matcher.New(g))(t)
	defer fresh.Close()
	var image bytes.Buffer
	must.OK(t, fresh.WriteSnapshot(&image))
	binary.LittleEndian.PutUint64(image.Bytes()[8:], 1<<32-1) // the next order's number
	binary.LittleEndian.PutUint64(image.Bytes()[16:], 1<<32-2)
	r := newRigFrom(t, g, must.Get(matcher.ReadSnapshot(g, &image))(t))

	const before, behind = "ord-4294967295", "ord-4294967297"
	if a := r.order("1", "Sell", "10", "101", "").want(t, 201, ""); a.field(t, "orderId") != before {
		t.Fatalf("%s", a.body)
	}
	body := orderBody("1", "Sell", "10", "102", `,"clientOrderId":"k"`)
	first := r.post("/orders", body, "").want(t, 201, "")
	if first.field(t, "orderId") != behind {
		t.Fatalf("%s", first.body)
	}
	same(t, first, r.post("/orders", body, ""))
	batch := r.post("/orders/batch", "["+body+"]", "").want(t, 201, "")
	if !strings.Contains(string(batch.body), `"orderId":"`+behind+`"`) {
		t.Errorf("%s", batch.body)
	}
	for _, id := range []string{before, behind} {
		if a := r.get("/orders/"+id, "").want(t, 200, ""); a.field(t, "orderId") != id {
			t.Errorf("%s: %s", id, a.body)
		}
	}
	for _, id := range []string{"ord-1", "ord-4294967296", "ord-8589934593", "ord-281474976710657",
		"ord-18446744073709551615"} {
		r.get("/orders/"+id, "").want(t, 404, "")
		r.post("/orders/"+id+"/cancel", "", "").want(t, 404, "")
	}
	if a := r.order("2", "Buy", "15", "102", "").want(t, 201, ""); a.field(t,
		"orderId") != "ord-4294967298" {
		t.Errorf("%s", a.body)
	}
	blotter := r.get("/recon/trades/blotter", r.token("admin")).want(t, 200, "")
	for _, id := range []string{before, behind, "ord-4294967298"} {
		if !strings.Contains(string(blotter.body), `"orderId":"`+id+`"`) {
			t.Errorf("%s is not in the blotter: %s", id, blotter.body)
		}
	}
	replaced := r.post("/orders/"+behind+"/replace",
		`{"quantity":12,"limitPrice":103,"clientOrderId":"r"}`, "").want(t, 200, "")
	if replaced.field(t, "orderId") != behind || replaced.field(t, "remainingQuantity") != "7" {
		t.Errorf("%s", replaced.body)
	}
	same(t, replaced, r.post("/orders/"+behind+"/replace",
		`{"quantity":12,"limitPrice":103,"clientOrderId":"r"}`, ""))
	cursor, listed := "", []string{}
	for {
		page := r.get("/orders?limit=1"+cursor, "").want(t, 200, "")
		for _, o := range page.field(t, "items").([]any) {
			listed = append(listed, fmt.Sprint(o.(map[string]any)["orderId"]))
		}
		next, more := page.field(t, "nextCursor").(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if got := strings.Join(listed, " "); got != before+" "+behind+" ord-4294967298" {
		t.Errorf("listed %s", got)
	}
	if a := r.post("/orders/"+behind+"/cancel", "", "").want(t, 200, ""); a.field(t,
		"orderId") != behind {
		t.Errorf("%s", a.body)
	}
}
