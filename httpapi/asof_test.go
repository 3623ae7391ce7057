package httpapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"posttrade/journal/asof"
	"posttrade/journal/asof/asoftest"
	"posttrade/matcher"
	"posttrade/ring/must"
)

// newPast is a small history: a price, two orders that trade, one that rests, and a swap.
func newPast(t testing.TB) *asof.History {
	t.Helper()
	w := asoftest.New(t, t.TempDir(), testGenesis())
	order := func(account uint32, side matcher.Side, qty int32, px int64) matcher.Command {
		c := matcher.NewCommand(matcher.OrderNew)
		c.AccountID, c.SecurityID, c.Side, c.Qty, c.LimitPx = account, 1, side, qty, px
		return c
	}
	tick := matcher.NewCommand(matcher.PriceTick)
	tick.SecurityID, tick.PriceTicks = 1, 100_000_000
	swap := (&matcher.ContractTerms{AccountID: 1, Notional: 1000, FixedRate: 40_000, Effective: 20_000,
		Maturity: 21_000}).Command()
	for i, c := range []matcher.Command{tick, order(1, matcher.Sell, 5, 100_000_000),
		order(2, matcher.Buy, 8, 101_000_000), order(1, matcher.Buy, 3, 99_000_000), swap} {
		c.EventTimeMillis = testStart + int64(i)
		w.Do(c)
	}
	w.Settle()
	h := must.Get(asof.New(w.Journal, asof.Options{Patience: 10 * time.Millisecond}))(t)
	t.Cleanup(func() { h.Close() })
	return h
}

// pastRequests are the endpoints of the past.
var pastRequests = []string{"/book/AAA", "/positions", "/credit", "/orders", "/orders/ord-1",
	"/accounts",
	"/risk/control/snapshot", "/trades", "/contracts", "/contracts/SW-5"}

// whyRequests are explanations of account 1's commands.
var whyRequests = []string{"/orders/ord-1/why", "/contracts/SW-5/why", "/why?inputSeq=4"}

// pastStatus are rows with one answer to every request about the head.
func pastStatus(status int, code Code) (rows []row) {
	for _, path := range pastRequests {
		rows = append(rows, row{"GET /as-of/5" + path, "", "admin", status, code})
	}
	for _, path := range whyRequests {
		rows = append(rows, row{"GET " + path, "", "admin", status, code})
	}
	return append(rows, row{"GET /credit", "", "admin", status, code})
}

func whyRows() (rows []row) {
	for _, path := range whyRequests {
		rows = append(rows,
			row{"GET " + path, "", "", 401, CodeUnauthorized},
			row{"GET " + path, "", "bad", 401, CodeUnauthorized},
			row{"GET " + path, "", "two", 403, CodeNotEntitled},
			row{"GET " + path, "", "one", 200, ""},
			row{"GET " + path, "", "admin", 200, ""},
			row{"POST " + path, "", "admin", 405, CodeMethodNotAllowed})
	}
	return append(rows,
		row{"GET /credit", "", "", 401, CodeUnauthorized},
		row{"GET /credit", "", "one", 200, ""},
		row{"GET /credit?accountId=2", "", "one", 403, CodeNotEntitled},
		row{"GET /credit?accountId=2&limit=1", "", "admin", 200, ""},
		row{"GET /credit?limit=0", "", "admin", 400, CodeBadRequest},
		row{"GET /credit?cursor=x", "", "admin", 400, CodeBadRequest},
		row{"POST /credit", "", "admin", 405, CodeMethodNotAllowed},
		row{"GET /orders/ord-99/why", "", "one", 404, CodeOrderNotFound},
		row{"GET /orders/x/why", "", "one", 404, CodeOrderNotFound},
		row{"GET /orders/ord-1/why?depth=1", "", "one", 400, CodeBadRequest},
		row{"GET /contracts/SWPT-5/why", "", "one", 404, CodeContractNotFound},
		row{"GET /contracts/SW-1/why", "", "one", 404, CodeContractNotFound},
		row{"GET /contracts/SW-99/why", "", "one", 404, CodeContractNotFound},
		row{"GET /contracts/x/why", "", "one", 404, CodeContractNotFound},
		row{"GET /why?inputSeq=1", "", "one", 403, CodeAdminRequired}, // a price
		row{"GET /why?inputSeq=1", "", "admin", 200, ""},
		row{"GET /why?inputSeq=3", "", "one", 403, CodeNotEntitled},
		row{"GET /why?inputSeq=6", "", "admin", 400, CodeBadRequest},
		row{"GET /why?inputSeq=0", "", "admin", 400, CodeBadRequest},
		row{"GET /why", "", "admin", 400, CodeBadRequest})
}

// TestWhyHidesOtherAccounts: the order on the other side of a fill is shown to its account, to an
// administrator, and where entitlements are not enforced.
func TestWhyHidesOtherAccounts(t *testing.T) {
	for token, want := range map[string]any{"one": nil, "admin": "ord-2"} {
		r := newRig(t)
		r.serve(func(d *Deps) { d.AsOf, d.Enforced = newPast(t), true })
		a := r.call(request{method: "GET", path: "/orders/ord-1/why", token: r.named(token)})
		against := a.field(t, "against").([]any)
		if got := against[0].(map[string]any)["orderId"]; len(against) != 1 || got != want {
			t.Errorf("%s sees %v: %s", token, got, a.body)
		}
		if want := "ord-1 (Sell 5 AAA at 100 for account 1) was accepted and rested at the front" +
			" of its queue; 5 of it executed in 1 fill."; a.field(t, "text") != want {
			t.Errorf("%s", a.body)
		}
	}
}

func pastRows() []row {
	rows := pastStatus(200, "")
	for _, path := range pastRequests {
		rows = append(rows,
			row{"GET /as-of/5" + path, "", "", 401, CodeUnauthorized},
			row{"GET /as-of/5" + path, "", "bad", 401, CodeUnauthorized},
			row{"GET /as-of/5" + path, "", "one", 403, CodeAdminRequired},
			row{"GET /as-of/6" + path, "", "admin", 400, CodeBadRequest},
			row{"GET /as-of/05" + path, "", "admin", 400, CodeBadRequest},
			row{"GET /as-of/x" + path, "", "admin", 400, CodeBadRequest},
			row{"GET /as-of/9223372036854775808" + path, "", "admin", 400, CodeBadRequest},
			row{"GET /as-of/5" + path + "?nonsense=1", "", "admin", 400, CodeBadRequest},
			row{"POST /as-of/5" + path, "", "admin", 405, CodeMethodNotAllowed})
		if path == "/orders/ord-1" { // a single order or contract takes no parameter and reads none
			rows[len(rows)-2] = row{"GET /as-of/1" + path, "", "admin", 404, CodeOrderNotFound}
		} else if path == "/contracts/SW-5" {
			rows[len(rows)-2] = row{"GET /as-of/4" + path, "", "admin", 404, CodeContractNotFound}
		}
	}
	return append(rows,
		row{"GET /as-of/0/orders", "", "admin", 200, ""},
		row{"GET /as-of/5/book/NONE", "", "admin", 404, CodeSecurityNotFound},
		row{"GET /as-of/5/trades?accountId=2&security=AAA&limit=1", "", "admin", 200, ""},
		row{"GET /as-of/5/trades?status=Settled", "", "admin", 400, CodeBadRequest},
		row{"GET /as-of/5/orders/ord-1/cancel", "", "admin", 404, CodeNotFound},
		row{"GET /as-of/5/health", "", "admin", 404, CodeNotFound},
		row{"GET /as-of/5/as-of/5/orders", "", "admin", 404, CodeNotFound},
		row{"GET /as-of/5", "", "admin", 404, CodeNotFound},
		row{"GET /as-of/", "", "admin", 404, CodeNotFound})
}

// TestCreditOfThePresent: every account that the token names is there once, whatever the size of a
// page, as it was at the sequence that the answer names.
func TestCreditOfThePresent(t *testing.T) {
	r := newRig(t)
	past := newPast(t)
	r.serve(func(d *Deps) { d.AsOf, d.Enforced = past, true })
	for _, tt := range []struct {
		token string
		want  []string
	}{
		{r.token("admin"), []string{"1 500", "2 803", "3 0", "4 0"}},
		{r.token("", 4, 2), []string{"2 803", "4 0"}},
		{r.token(""), nil},
	} {
		for limit := 1; limit <= 5; limit++ {
			var got []string
			for cursor := any(""); cursor != nil; {
				a := r.get(fmt.Sprintf("/credit?limit=%d%s", limit, cursor), tt.token).want(t, 200, "")
				if a.header.Get(headerAsOf) != "5" {
					t.Errorf("as of %s", a.header.Get(headerAsOf))
				}
				for _, item := range a.field(t, "items").([]any) {
					of := item.(map[string]any)
					got = append(got, fmt.Sprint(of["accountId"], " ", of["creditUsed"]))
				}
				if cursor = a.field(t, "nextCursor"); cursor != nil {
					cursor = "&cursor=" + cursor.(string)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("pages of %d: %q, want %q", limit, got, tt.want)
			}
		}
	}
}

// TestPastAnswers compares whole answers.
func TestPastAnswers(t *testing.T) {
	r := newRig(t)
	past := newPast(t)
	r.serve(func(d *Deps) { d.AsOf = past })
	for path, want := range map[string]string{
		"/as-of/2/book/AAA": `{"security":"AAA","sequence":2,"bids":[],` +
			`"asks":[{"price":100,"quantity":5,"orders":1}]}`,
		"/as-of/3/book/AAA?depth=1": `{"security":"AAA","sequence":3,` +
			`"bids":[{"price":101,"quantity":3,"orders":1}],"asks":[]}`,
		"/as-of/3/positions?accountId=2": `{"items":[{"accountId":2,"security":"AAA","quantity":5,` +
			`"averageCost":100}],"nextCursor":null}`,
		"/as-of/2/positions": `{"items":[],"nextCursor":null}`,
		// Account 1 has an offer of 5 at 100; account 2 pays 500 of what it bids 101 for.
		"/as-of/2/credit?accountId=1": `{"items":[{"accountId":1,"creditUsed":500,` +
			`"creditLimit":1000000000}],"nextCursor":null}`,
		"/as-of/3/credit?accountId=2": `{"items":[{"accountId":2,"creditUsed":803,` +
			`"creditLimit":1000000000}],"nextCursor":null}`,
		"/as-of/0/accounts": `[{"id":1},{"id":2},{"id":3},{"id":4}]`,
		"/as-of/2/trades":   `{"items":[],"nextCursor":null}`,
		"/as-of/4/trades?accountId=1": `{"items":[{"id":"trd-2","tradeSeq":2,"accountId":1,` +
			`"security":"AAA","side":"Sell","quantity":5,"price":100,` +
			`"timestamp":"2026-03-02T10:00:00.002Z","orderId":"ord-1"}],"nextCursor":null}`,
		"/as-of/4/contracts": `{"items":[],"nextCursor":null}`,
	} {
		a := r.call(request{method: "GET", path: path, token: r.token("admin")})
		if a.status != 200 || string(a.body) != want || a.header.Get(headerAsOf) != path[7:8] {
			t.Errorf("%s: %d %v\n%s, want\n%s", path, a.status, a.header, a.body, want)
		}
	}
	a := r.call(request{method: "GET", path: "/as-of/77/orders", token: r.token("admin")})
	if want := "sequence 77 is beyond the durable head, 5"; a.field(t, "detail") != want {
		t.Errorf("%s, want %s", a.body, want)
	}
}
