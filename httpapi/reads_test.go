package httpapi

import (
	"fmt"
	"strings"
	"testing"
)

func TestListsShowOnlyTheCallersAccounts(t *testing.T) {
	r := newRig(t)
	seed(r)
	r.serve(func(d *Deps) { d.Enforced = true })
	count := func(path, token string) int {
		t.Helper()
		return len(r.get(path, token).want(t, 200, "").field(t, "items").([]any))
	}
	for _, tt := range []struct {
		path, token string
		want        int
	}{
		{"/orders", r.token("admin"), 3}, {"/orders", r.token("", 1), 2}, {"/orders", r.token("", 2), 1},
		{"/orders", r.token("", 1, 2), 3}, {"/orders", r.token("", 3), 0}, {"/orders", r.token(""), 0},
		{"/positions", r.token("admin"), 2}, {"/positions", r.token("", 1), 1},
		{"/positions", r.token(""), 0},
		{"/orders?status=open", r.token("", 1), 1}, {"/orders?status=FILLED", r.token("", 1), 1},
	} {
		if got := count(tt.path, tt.token); got != tt.want {
			t.Errorf("%s shows %d, want %d", tt.path, got, tt.want)
		}
	}
}

func TestPagesCoverTheListOnce(t *testing.T) {
	r := newRig(t)
	r.price("AAA", "100")
	for i := range 7 {
		r.order("1", "Buy", "1", "9"+itoa(uint64(i)), "").want(t, 201, "")
	}
	for _, account := range []string{"1", "2", "3"} {
		r.post("/trades", `{"accountId":`+account+`,"security":"AAA","side":"Buy","quantity":1}`,
			"").want(t, 201, "")
	}
	for path, want := range map[string]int{"/orders?limit=3": 7, "/positions?limit=2": 3} {
		seen := map[string]bool{}
		pages, cursor := 0, ""
		for {
			a := r.get(path+cursor, "").want(t, 200, "")
			for _, item := range a.field(t, "items").([]any) {
				o := item.(map[string]any)
				key := fmt.Sprint(o["orderId"], o["accountId"], o["security"], o["limitPrice"])
				if seen[key] {
					t.Errorf("%s: %s twice", path, key)
				}
				seen[key] = true
			}
			pages++
			next := a.field(t, "nextCursor")
			if next == nil {
				break
			}
			cursor = "&cursor=" + next.(string)
		}
		if len(seen) != want || pages < 2 {
			t.Errorf("%s: %d items on %d pages, want %d", path, len(seen), pages, want)
		}
	}
	// A cursor belongs to its list.
	next := r.get("/orders?limit=1", "").field(t, "nextCursor").(string)
	r.get("/positions?cursor="+next, "").want(t, 400, CodeBadRequest)
}

func TestBookAndBlotterShowWhatHappened(t *testing.T) {
	r := newRig(t)
	seed(r)
	r.order("3", "Buy", "7", "99.5", "").want(t, 201, "")
	r.order("3", "Buy", "1", "99.5", "").want(t, 201, "")
	book := r.get("/book/AAA?depth=5", "").want(t, 200, "")
	if got, want := string(book.body),
		`{"security":"AAA","sequence":7,"bids":[{"price":99.5,"quantity":8,"orders":2}],`+
			`"asks":[{"price":101,"quantity":10,"orders":1}]}`; got != want {
		t.Errorf("book %s\nwant %s", got, want)
	}
	page := r.get("/recon/trades/blotter", r.token("admin")).want(t, 200, "")
	want := `{"items":[{"id":"trd-1","tradeSeq":1,"accountId":1,"security":"AAA","side":"Buy",` +
		`"quantity":5,"price":100,` +
		`"execTimeMillis":1772445600000,"orderId":"ord-3","sequence":4},{"id":"trd-2","tradeSeq":2,` +
		`"accountId":2,"security":"AAA",` +
		`"side":"Sell","quantity":5,"price":100,"execTimeMillis":1772445600000,"orderId":"ord-2",` +
		`"sequence":4}],` +
		`"nextSinceSeq":2,"evicted":0,"capacity":1000}`
	if string(page.body) != want {
		t.Errorf("blotter %s\nwant %s", page.body, want)
	}
	positions := r.get("/positions", "").want(t, 200, "")
	if got, want := string(positions.body),
		`{"items":[{"accountId":1,"security":"AAA","quantity":5,"averageCost":100},`+
			`{"accountId":2,"security":"AAA","quantity":-5,"averageCost":100}],"nextCursor":null}`; got !=
		want {
		t.Errorf("positions %s\nwant %s", got, want)
	}
}

// A caller may ask for as many fills as of every list; a page has those of the setting.
func TestBlotterPageIsThatOfTheSetting(t *testing.T) {
	r := newRig(t, func(r *rig) { r.deps.BlotterPage = 1 })
	seed(r)
	for _, path := range []string{"", "?limit=1", "?limit=1000", "?sinceSeq=1&limit=2"} {
		page := r.get("/recon/trades/blotter"+path, r.token("admin")).want(t, 200, "").field(t, "items")
		if items := page.([]any); len(items) != 1 {
			t.Errorf("%q: %d fills, want 1", path, len(items))
		}
	}
	for _, limit := range []string{"0", "1001", "x"} {
		r.get("/recon/trades/blotter?limit="+limit, r.token("admin")).want(t, 400, CodeBadRequest)
	}
}

// TestOrderDocument pins every member of an Order.
func TestOrderDocument(t *testing.T) {
	r := newRig(t)
	r.order("1", "Sell", "4", "100.25", "").want(t, 201, "")
	r.now.Add(1)
	a := r.post("/orders",
		`{"clientOrderId":"a \"b\" \\","accountId":2,"security":"AAA","side":"BUY","quantity":10,`+
			`"limitPrice":"100.5"}`, "").want(t, 201, "")
	want := `{"orderId":"ord-2","clientOrderId":"a \"b\" \\","accountId":2,"security":"AAA",` +
		`"side":"Buy","type":"LIMIT",` +
		`"timeInForce":"GTC","quantity":10,"remainingQuantity":6,"limitPrice":100.5,` +
		`"status":"PARTIALLY_FILLED","riskReason":null,` +
		`"lastExecutionPrice":100.25,"lastFillQuantity":4,"createdAt":"2026-03-02T10:00:00.001Z",` +
		`"updatedAt":"2026-03-02T10:00:00.001Z",` +
		`"sequence":2,"fills":[{"tradeId":"trd-1","price":100.25,"quantity":4}]}`
	if string(a.body) != want {
		t.Errorf("created %s\nwant    %s", a.body, want)
	}
	shown := r.get("/orders/ord-2", "").want(t, 200, "")
	if got, want := string(shown.body), strings.Replace(want,
		`,"fills":[{"tradeId":"trd-1","price":100.25,"quantity":4}]`, "", 1); got != want {
		t.Errorf("shown %s\nwant  %s", got, want)
	}
}

// TestReadsWaitForDurability holds durability back and expects reads to wait for it.
func TestReadsWaitForDurability(t *testing.T) {
	r := newRig(t)
	seed(r)
	r.recorder.hold()
	done := make(chan answer, 1)
	go func() { done <- r.order("2", "Buy", "1", "101", "") }()
	r.recorder.waitApplied(6)
	paths := []string{"/orders", "/orders/ord-1", "/positions", "/book/AAA", "/recon/trades/blotter",
		"/risk/control/snapshot", "/contracts", "/contracts/SW-5"}
	answers := make(chan string, len(paths))
	for _, path := range paths {
		go func() {
			r.get(path, r.token("admin")).want(t, 200, "")
			answers <- path
		}()
	}
	if !r.recorder.waitWaiting(len(paths)) {
		t.Error("not every read waits")
	}
	if len(answers) > 0 || len(done) > 0 {
		t.Errorf("%d reads and %d orders were answered before they were durable", len(answers), len(done))
	}
	r.recorder.letGo()
	for range paths {
		<-answers
	}
	(<-done).want(t, 201, "")
}
