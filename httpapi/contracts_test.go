package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// contractRows are the rows of the contract about contracts, while entitlements are off.
func contractRows() (rows []row) {
	for _, id := range []string{"SW-99", "SWPT-5", "SW-0", "SW-05", "SW-", "SWPT-", "sw-5", "5",
		"SW-5x", "ord-1", "SW-18446744073709551616", "SW-4"} {
		rows = append(rows, row{"GET /contracts/" + id, "", "", 404, CodeContractNotFound})
	}
	for _, query := range []string{"limit=0", "limit=1001", "limit=1&limit=1", "accountId=-1",
		"accountId=4294967296", "cursor=AAAA",
		"cursor=" + cursorOf(cursorOrders, 5), "security=AAA", "accountId="} {
		rows = append(rows, row{"GET /contracts?" + query, "", "", 400, CodeBadRequest})
	}
	for _, body := range []string{`{}`, `{"sessionDate":null}`, `{"sessionDate":"2026-3-2"}`,
		`{"sessionDate":"2026-02-30"}`, `{"sessionDate":20514}`,
		`{"sessionDate":"1969-12-31"}`, `{"sessionDate":"2149-06-07"}`,
		`{"sessionDate":"2026-03-02","priceVersion":0}`, `[]`,
		`{"sessionDate":"2026-03-02","priceVersion":4294967296}`,
		`{"sessionDate":"2026-03-02","priceVersion":1.5}`,
		`{"sessionDate":"2026-03-02","priceVersion":null}`,
		`{"sessionDate":"2026-03-02","priceVersion":"1"}`, `{"priceVersion":1}`,
		`{"sessionDate":"2026-03-02","version":1}`, ``, `{"sessionDate":"2026-03-02"}{}`} {
		rows = append(rows, row{"POST /risk/extract", body, "admin", 400, CodeMalformedBody})
	}
	return append(rows,
		row{"POST /swaps", goodSwap, "", 200, ""},
		row{"POST /swaps", goodSwap, "bad", 200, ""}, // ignored while entitlements are off
		row{"POST /swaptions", goodSwaption, "", 200, ""},
		row{"POST /swaps", goodSwaption, "", 400, CodeMalformedBody},
		row{"POST /swaptions", goodSwap, "", 400, CodeMalformedBody},
		row{"POST /swaps", keyed(goodSwap, "k"), "", 200, ""},
		row{"POST /swaps", keyed(goodSwap, "k"), "", 200, ""},
		row{"POST /swaps", keyed(strings.Replace(goodSwap, `"Pay"`, `"Receive"`, 1), "k"), "", 409,
			CodeTermsDiffer},
		row{"POST /swaptions", keyed(goodSwaption, "k"), "", 409, CodeTermsDiffer},
		row{"POST /swaptions", keyed(goodSwaption, "seed-1"), "", 409, CodeTermsDiffer},
		row{"POST /swaps", strings.Replace(goodSwap, `"accountId":1`, `"accountId":9`, 1), "", 422,
			CodeRiskRefused},
		row{"POST /swaptions", strings.Replace(goodSwaption, `"accountId":1`, `"accountId":4`, 1), "",
			422, CodeRiskRefused},
		row{"GET /contracts", "", "", 200, ""},
		row{"GET /contracts?accountId=1&limit=1", "", "", 200, ""},
		row{"GET /contracts?accountId=99", "", "", 200, ""},
		row{"GET /contracts/SW-5", "", "", 200, ""},
		row{"GET /contracts/" + strings.Repeat("S", 65), "", "", 400, CodeBadRequest},
		row{"GET /contracts/SW%2D5", "", "", 400, CodeBadRequest},
		row{"GET /contracts/", "", "", 404, CodeNotFound},
		row{"GET /contracts/SW-5/x", "", "", 404, CodeNotFound},
		row{"POST /contracts", "", "", 405, CodeMethodNotAllowed},
		row{"GET /swaps", "", "", 405, CodeMethodNotAllowed},
		row{"PUT /swaptions", "", "", 405, CodeMethodNotAllowed},
		row{"GET /risk/extract", "", "admin", 405, CodeMethodNotAllowed},
		row{"POST /risk/extract", `{"sessionDate":"2149-06-06","priceVersion":4294967295}`,
			"admin", 202, ""},
	)
}

// shownContract is the document of goodSwap or goodSwaption.
func shownContract(body, id, product, client string, sequence uint64) string {
	option := `,"expiryDate":null,"exerciseStyle":null`
	if product == "SWAPTION" {
		option = ""
	}
	return fmt.Sprintf(`{"contractId":"%s","productType":"%s","clientOrderId":%s,%s%s,"sequence":%d}`,
		id, product, client, body[1:len(body)-1], option, sequence)
}

// TestContractsAreShownAsTheyWereBooked compares whole answers.
func TestContractsAreShownAsTheyWereBooked(t *testing.T) {
	r := newRig(t)
	swap := r.post("/swaps", keyed(goodSwap, `q\"uote`), "").want(t, 200, "")
	if got, want := string(swap.body),
		`{"contractId":"SW-1","sequence":1,"booked":true}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	loud := strings.NewReplacer(`"Receive"`, `"rECEIVE"`, `-0.001`, `"-1e-3"`).Replace(goodSwaption)
	swaption := r.post("/swaptions", loud, "").want(t, 200, "")
	if got, want := string(swaption.body),
		`{"contractId":"SWPT-2","sequence":2,"booked":true}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	first := shownContract(goodSwap, "SW-1", "SWAP", `"q\"uote"`, 1)
	second := shownContract(goodSwaption, "SWPT-2", "SWAPTION", "null", 2)
	for path, want := range map[string]string{
		"/contracts/SW-1":   first,
		"/contracts/SWPT-2": second,
		"/contracts":        `{"items":[` + first + "," + second + `],"nextCursor":null}`,
		"/contracts?limit=1": `{"items":[` + first + `],"nextCursor":"` +
			cursorOf(cursorContracts, 1) + `"}`,
		"/contracts?limit=1&cursor=" + cursorOf(cursorContracts, 1): `{"items":[` + second +
			`],"nextCursor":null}`,
		"/contracts?cursor=" + cursorOf(cursorContracts, 2): `{"items":[],"nextCursor":null}`,
		"/contracts?accountId=2":                            `{"items":[],"nextCursor":null}`,
	} {
		if got := string(r.get(path, "").want(t, 200, "").body); got != want {
			t.Errorf("%s\n%s\nwant\n%s", path, got, want)
		}
	}
	// The prefix is part of the id.
	r.get("/contracts/SWPT-1", "").want(t, 404, CodeContractNotFound)
	r.get("/contracts/SW-2", "").want(t, 404, CodeContractNotFound)
}

// TestContractsAreAccountsOwn reads the lists of several callers.
func TestContractsAreAccountsOwn(t *testing.T) {
	r := newRig(t, enforced)
	for i, account := range []string{"1", "2", "1", "3", "2"} {
		body := strings.Replace(goodSwap, `"accountId":1`, `"accountId":`+account, 1)
		r.post("/swaps", body, r.token("", 1, 2, 3)).want(t, 200, "")
		if r.sequence() != uint64(i+1) {
			t.Fatalf("sequence %d after %d bookings", r.sequence(), i+1)
		}
	}
	for _, tt := range []struct{ query, token, want string }{
		{"", r.token("", 1), "SW-1 SW-3"}, {"", r.token("", 3, 2), "SW-2 SW-4 SW-5"},
		{"", r.token(""), ""}, {"", r.token("admin"), "SW-1 SW-2 SW-3 SW-4 SW-5"},
		{"?accountId=2", r.token("", 3, 2), "SW-2 SW-5"}, {"?accountId=2", r.token("admin"), "SW-2 SW-5"},
		{"?accountId=7", r.token("admin"), ""},
		{"?limit=1&cursor=" + cursorOf(cursorContracts, 1), r.token("", 1), "SW-3"},
	} {
		var ids []string
		for _, item := range r.get("/contracts"+tt.query, tt.token).want(t, 200, "").field(t,
			"items").([]any) {
			ids = append(ids, item.(map[string]any)["contractId"].(string))
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.query, got, tt.want)
		}
	}
	r.get("/contracts?accountId=1", r.token("", 2)).want(t, 403, CodeNotEntitled)
	r.get("/contracts/SW-1", r.token("", 2)).want(t, 403, CodeNotEntitled)
	r.get("/contracts/SW-1", r.token("admin")).want(t, 200, "")
	before := r.sequence()
	// before screening: 9 is unknown
	r.post("/swaps", strings.Replace(goodSwap, `:1,`, `:9,`, 1), r.token("", 1)).want(t, 403,
		CodeNotEntitled)
	if r.sequence() != before {
		t.Error("a caller that is not entitled was sequenced")
	}
}

// TestBookingIsNothingButAContract compares everything else before and after.
func TestBookingIsNothingButAContract(t *testing.T) {
	r := newRig(t)
	seed(r)
	admin := r.token("admin")
	look := func() (all []string) {
		for _, path := range []string{"/orders?status=all", "/positions", "/book/AAA",
			"/recon/trades/blotter"} {
			all = append(all, string(r.get(path, admin).want(t, 200, "").body))
		}
		return all
	}
	before, last := look(), r.sequence()
	for i, q := range []struct{ path, body string }{{"/swaps", goodSwap},
		{"/swaptions", goodSwaption}} {
		r.post(q.path, q.body, "").want(t, 200, "")
		if r.sequence() != last+uint64(i)+1 {
			t.Errorf("%s: sequence %d after %d", q.path, r.sequence(), last)
		}
	}
	after := look()
	// as of now
	after[2] = strings.Replace(after[2], fmt.Sprintf(`"sequence":%d`, last+2),
		fmt.Sprintf(`"sequence":%d`, last), 1)
	if !slices.Equal(before, after) {
		t.Errorf("before %s\nafter  %s", before, after)
	}
}

// TestRefusedBookingsLeaveNoContract meets every reason for which a booking can be refused.
func TestRefusedBookingsLeaveNoContract(t *testing.T) {
	g := testGenesis()
	g.Limits.MaxContracts, g.Limits.MaxOrderNotional, g.Limits.CreditLimit = 1,
		2_000_000*matcher.PriceScale, 1_500_000*matcher.PriceScale
	r := newRigWith(t, g)
	with := func(old, new string) string { // each under a key of its own
		return keyed(strings.Replace(goodSwap, old, new, 1), strings.ReplaceAll(new, `"`, "'"))
	}
	check := func(reason, body string) {
		t.Helper()
		sequence := itoa(r.sequence() + 1)
		a := r.post("/swaps", body, "").want(t, 422, CodeRiskRefused)
		if a.field(t, "reason") != reason || a.field(t, "booked") != false ||
			a.field(t, "sequence") != sequence {
			t.Errorf("%s: %s", reason, a.body)
		}
		again := r.post("/swaps", body, "").want(t, 422, CodeRiskRefused)
		if string(again.body) != string(a.body) || itoa(r.sequence()) != sequence {
			t.Errorf("again: %s, first %s", again.body, a.body)
		}
		if n := len(r.get("/contracts", "").want(t, 200, "").field(t, "items").([]any)); n > 1 {
			t.Errorf("%s: %d contracts", reason, n)
		}
	}
	check("UNKNOWN_ACCOUNT", with(`Id":1`, `Id":9`))
	check("ACCOUNT_DISABLED", with(`Id":1`, `Id":4`))
	check("ORDER_NOTIONAL", with(`1000000`, `2000001`))
	check("CREDIT_LIMIT", with(`1000000`, `1500001`))
	r.post("/swaps", with(`1000000`, `1500000`), "").want(t, 200, "")
	check("CAPACITY", with(`1000000`, `1499999`))
	r.post("/risk/control/policy", `{"policyVersion":7,"killSwitch":true}`,
		r.token("admin")).want(t, 200, "")
	check("KILL_SWITCH", with(`1000000`, `7`))
	want := `{"type":"urn:posttrade:problem:risk-refused","title":"Unprocessable Entity",` +
		`"status":422,"detail":"the risk gate refused the booking",` +
		`"code":"RISK_REFUSED","reason":"ACCOUNT_DISABLED","booked":false,"clientOrderId":"Id':4",` +
		`"accountId":4,"sequence":2}`
	if got := string(r.post("/swaps", with(`Id":1`, `Id":4`), "").body); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestRefusedBookingsStayAtTheEdgeWhenTheyAreNotAudited(t *testing.T) {
	r := newRig(t, unsequenced)
	a := r.post("/swaps", strings.Replace(goodSwap, `:1,`, `:9,`, 1), "").want(t, 422, CodeRiskRefused)
	if a.field(t, "reason") != "UNKNOWN_ACCOUNT" || a.field(t, "sequence") != nil ||
		r.sequence() != 0 {
		t.Errorf("%s, sequence %d", a.body, r.sequence())
	}
}

// TestBookingsHaveTheirOwnKeys uses one clientOrderId for all requests.
func TestBookingsHaveTheirOwnKeys(t *testing.T) {
	r := newRig(t)
	r.order("1", "Buy", "10", "100", `,"clientOrderId":"k"`).want(t, 201, "")
	first := r.post("/swaps", keyed(goodSwap, "k"), "").want(t, 200, "")
	if string(first.body) != `{"contractId":"SW-2","sequence":2,"booked":true}` {
		t.Errorf("%s", first.body)
	}
	r.order("1", "Buy", "10", "100", `,"clientOrderId":"k"`).want(t, 201, "")
	for name, body := range map[string]string{
		"direction":   strings.Replace(goodSwap, `"Pay"`, `"Receive"`, 1),
		"notional":    strings.Replace(goodSwap, "1000000", "1000001", 1),
		"rate":        strings.Replace(goodSwap, "0.0425", "0.042501", 1),
		"effective":   strings.Replace(goodSwap, "2026-03-04", "2026-03-05", 1),
		"maturity":    strings.Replace(goodSwap, "2031-03-04", "2031-03-05", 1),
		"conventions": strings.Replace(goodSwap, "1Y", "3M", 1),
	} {
		if a := r.post("/swaps", keyed(body, "k"), ""); a.status != 409 ||
			a.field(t, "code") != string(CodeTermsDiffer) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	r.now.Add(1000)
	if again := r.post("/swaps", keyed(goodSwap, "k"), "").want(t, 200,
		""); string(again.body) != string(first.body) {
		t.Errorf("again %s", again.body)
	}
	r.post("/swaptions", keyed(goodSwaption, "k"), "").want(t, 409, CodeTermsDiffer)
	option := r.post("/swaptions", keyed(goodSwaption, "o"), "").want(t, 200, "")
	for name, body := range map[string]string{
		"expiry": strings.Replace(goodSwaption, "2026-09-02", "2026-09-01", 1),
		"style":  strings.Replace(goodSwaption, "Bermudan", "European", 1),
	} {
		if a := r.post("/swaptions", keyed(body, "o"), ""); a.status != 409 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if again := r.post("/swaptions", keyed(goodSwaption, "o"), "").want(t, 200,
		""); string(again.body) != string(option.body) {
		t.Errorf("again %s", again.body)
	}
	// A key belongs to its account.
	r.post("/swaps", keyed(strings.Replace(goodSwap, `Id":1`, `Id":2`, 1), "k"), "").want(t, 200, "")
	if r.sequence() != 4 {
		t.Errorf("sequence %d, want 4", r.sequence())
	}
}

// TestBookingTheEngineFindsAgain sends the same key while the first booking is between the edge and
// the engine.
func TestBookingTheEngineFindsAgain(t *testing.T) {
	for _, tt := range []struct {
		name, meanwhile string
		status          int
	}{
		{"same terms", goodSwap, 200},
		{"other terms", strings.Replace(goodSwap, "1000000", "1000001", 1), 409},
		{"another product", goodSwaption, 409},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			other, late := r.address, false
			r.serve(func(d *Deps) {
				d.StorageFull = func() bool { // called after the look-up of known keys
					if !late {
						late = true
						path := "/swaps"
						if tt.meanwhile == goodSwaption {
							path = "/swaptions"
						}
						r.callAt(other, request{method: "POST", path: path, body: keyed(tt.meanwhile, "k")}).want(t,
							200, "")
					}
					return false
				}
			})
			a := r.post("/swaps", keyed(goodSwap, "k"), "").want(t, tt.status, "")
			if tt.status == 200 && string(a.body) != `{"contractId":"SW-1","sequence":1,"booked":true}` {
				t.Errorf("%s", a.body)
			}
			if r.sequence() != 2 || r.contracts() != 1 {
				t.Errorf("sequence %d, %d contracts", r.sequence(), r.contracts())
			}
		})
	}
}

// TestBookingsInFlight sends one booking many times at once while nothing is durable.
func TestBookingsInFlight(t *testing.T) {
	r := newRig(t)
	r.recorder.hold()
	answers := make([]answer, 8)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() { answers[i] = r.post("/swaptions", keyed(goodSwaption, "k"), "") })
	}
	r.recorder.waitApplied(1)
	r.recorder.letGo()
	group.Wait()
	for _, a := range answers {
		if a.want(t, 200, ""); string(a.body) != `{"contractId":"SWPT-1","sequence":1,"booked":true}` {
			t.Errorf("%s", a.body)
		}
	}
	if n := r.contracts(); n != 1 {
		t.Errorf("%d contracts, want 1", n)
	}
}

// TestRepeatedBookingWaitsForTheFirst repeats bookings that are decided and not yet durable.
func TestRepeatedBookingWaitsForTheFirst(t *testing.T) {
	r := newRig(t)
	durable := r.address
	r.recorder.hold()
	r.serve(func(d *Deps) { d.AnswerTimeout = 20 * time.Millisecond })
	refused := strings.Replace(goodSwap, `Id":1`, `Id":9`, 1)
	for i, body := range []string{keyed(goodSwap, "k"), keyed(refused, "k")} {
		r.post("/swaps", body, "").want(t, 504, CodeOutcomeUnknown)
		r.recorder.waitApplied(uint64(i + 1))
		r.post("/swaps", body, "").want(t, 504, CodeOutcomeUnknown)
	}
	r.get("/contracts/SW-1", "").want(t, 503, CodeSlowDisk)
	if r.sequence() != 2 {
		t.Errorf("sequence %d, want 2", r.sequence())
	}
	r.recorder.letGo()
	r.callAt(durable, request{method: "POST", path: "/swaps", body: keyed(goodSwap, "k")}).want(t, 200,
		"")
	r.callAt(durable, request{method: "POST", path: "/swaps", body: keyed(refused, "k")}).want(t, 422,
		CodeRiskRefused)
}

// TestRecordsThatReachTheEngine reads the records that the edge puts into the input ring.
func TestRecordsThatReachTheEngine(t *testing.T) {
	r := newRig(t, withoutEngine, func(r *rig) { r.deps.AnswerTimeout = time.Millisecond })
	booking := func(kind matcher.CommandType, side matcher.Side, notional int32, rate int64,
		key string) matcher.Command {
		c := matcher.NewCommand(kind)
		c.EventTimeMillis, c.AccountID, c.Side, c.Qty, c.LimitPx = testStart, 1, side, notional, rate
		c.PriceTicks = int64(r.views.ClientKey().Of(1, []byte(key)))
		return c
	}
	day := func(year int, month time.Month, day int) uint32 {
		return uint32(store.DateOf(year, month, day))
	}
	swap := booking(matcher.SwapBook, matcher.Sell, 1_000_000, 42_500, "k")
	swap.OrderRef = day(2026, 3, 4) | day(2031, 3, 4)<<16
	swaption := booking(matcher.SwaptionBook, matcher.Buy, 250_000, -1_000, "")
	swaption.OrderRef, swaption.SecurityID = day(2026, 9, 4)|day(2036, 9,
		4)<<16, 2|1<<8|day(2026, 9, 2)<<16
	for i, tt := range []struct {
		path, body string
		want       matcher.Command
	}{
		{"/swaps", keyed(goodSwap, "k"), swap},
		{"/swaptions", goodSwaption, swaption},
		{"/risk/extract", goodExtract, matcher.NewRiskExtract(int64(day(2026, 3, 2)), 1)},
		{"/risk/extract", `{"priceVersion":4294967295,"sessionDate":"1970-01-01"}`,
			matcher.NewRiskExtract(0, 1<<32-1)},
	} {
		r.post(tt.path, tt.body, r.token("admin")).want(t, 504, CodeOutcomeUnknown)
		got := *r.in.At(int64(i))
		got.InputSeq = 0 // the correlation id
		if got != tt.want {
			t.Errorf("%s %s\n%+v, want\n%+v", tt.path, tt.body, got, tt.want)
		}
	}
}

// TestExtractIsOneMarker books around a marker and checks that the marker takes one sequence.
func TestExtractIsOneMarker(t *testing.T) {
	r := newRig(t)
	r.post("/swaps", goodSwap, "").want(t, 200, "")
	for want := 2; want <= 3; want++ { // the next one is another one
		a := r.post("/risk/extract", goodExtract, r.token("admin")).want(t, 202, "")
		if string(a.body) != fmt.Sprintf(`{"sequence":%d}`, want) {
			t.Errorf("%s", a.body)
		}
	}
	if a := r.post("/swaps", goodSwap, "").want(t, 200, ""); a.field(t, "contractId") != "SW-4" {
		t.Errorf("%s", a.body)
	}
}
