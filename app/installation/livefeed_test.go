package installation

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"posttrade/app/apptest"
	"posttrade/httpapi/client"
	"posttrade/matcher/gate"
	"posttrade/ring/must"
)

func (i *installed) feedBase() string {
	if i.config.String("http.tls-cert") != "" {
		return "https://" + i.at("order-matcher")
	}
	return "http://" + i.at("order-matcher")
}

func (i *installed) mint(ttl time.Duration, admin bool, accounts ...uint32) string {
	i.t.Helper()
	secret := must.Get(i.config.JWTSecret())(i.t)
	return gate.Mint(secret, gate.Claims{Subject: "reader", Admin: admin, Accounts: accounts}, "", ttl,
		time.Now())
}

// limit places a limit order and returns it.
func (i *installed) limit(account uint32, side client.Side, qty int32, px int64) client.Order {
	i.t.Helper()
	o := must.Get(i.orders.CreateOrder(i.t.Context(), &client.OrderRequest{AccountID: account,
		Security: "AAPL", Side: side, Quantity: qty, LimitPrice: client.Price(px * 1_000_000)}))(i.t)
	return o
}

const everyTopic = "book:AAPL,bbo:*,trades,orders,prices,controls,contracts"

// wantEvents compares events with a kind and some members each.
func wantEvents(t *testing.T, got []sseEvent, want [][]any) {
	t.Helper()
	for n, w := range want {
		if n >= len(got) || !got[n].has(w[0].(string), w[1:]...) {
			for _, e := range got {
				t.Log(e.text())
			}
			t.Fatalf("event %d is not %v", n, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}

// TestFeedSaysWhatChanges reads one stream of everything beside requests, and the same stream again
// from each of its ids.
func TestFeedSaysWhatChanges(t *testing.T) {
	for _, durability := range []string{"fsync", "os"} {
		t.Run(durability, func(t *testing.T) {
			i := install(t, t.TempDir(), "journal.durability", durability)
			testFeedSaysWhatChanges(t, i)
		})
	}
}

func testFeedSaysWhatChanges(t *testing.T, i *installed) {
	s := openFeed(t, i.feedBase(), i.token, "topics="+everyTopic, "")
	first := s.next()
	if !first.has("snapshot", "security", "AAPL") || !strings.HasSuffix(first.id, ".s") {
		t.Fatalf("begins with %s", first.text())
	}
	must.Get(i.orders.Prices(t.Context(), []client.PriceRequest{{Security: "AAPL",
		Price: 10_000_000}}))(t)
	sell := i.limit(1, client.Sell, 10, 10)
	buy := i.limit(2, client.Buy, 15, 11)
	must.Get(i.orders.Cancel(t.Context(), buy.OrderID))(t)
	applied, err := i.orders.RiskControlSecurity(t.Context(), "AAPL", true, true)
	must.OK(t, err)
	swap, err := i.orders.Swap(t.Context(), &client.SwapRequest{AccountID: 1, PayReceive: client.Pay,
		Notional: 1000, FixedRate: 30_000, EffectiveDate: "2026-01-01", MaturityDate: "2027-01-01",
		Conventions: "USD-SOFR-1Y-ACT360"})
	must.OK(t, err)
	got := s.until(func(e *sseEvent) bool { return e.kind == "contract" })
	b := buy.Sequence
	wantEvents(t, got, [][]any{
		{"price", "security", "AAPL", "price", 10, "sequence", sell.Sequence - 1},
		{"order", "orderId", sell.OrderID, "status", "NEW", "accountId", 1, "remainingQuantity", 10},
		{"book", "security", "AAPL", "side", "Sell", "price", 10, "quantity", 10, "orders", 1},
		{"bbo", "security", "AAPL", "bid", nil, "ask", map[string]any{"price": 10, "quantity": 10,
			"orders": 1}},
		{"order", "orderId", buy.OrderID, "status", "NEW", "remainingQuantity", 15},
		{"trade", "tradeId", "trd-1", "tradeSeq", 1, "counterTradeId", "trd-2", "price", 10, "quantity",
			10,
			"aggressorSide", "Buy", "accountId", nil, "sequence", b},
		{"trade", "id", "trd-1", "accountId", 2, "orderId", buy.OrderID, "side", "Buy", "quantity", 10},
		{"order", "orderId", buy.OrderID, "status", "PARTIALLY_FILLED", "remainingQuantity", 5},
		{"trade", "id", "trd-2", "accountId", 1, "orderId", sell.OrderID, "side", "Sell"},
		{"order", "orderId", sell.OrderID, "status", "FILLED", "remainingQuantity", 0},
		{"book", "side", "Sell", "price", 10, "quantity", 0, "orders", 0, "sequence", b},
		{"book", "side", "Buy", "price", 11, "quantity", 5, "orders", 1, "sequence", b},
		{"bbo", "ask", nil, "sequence", b},
		{"order", "orderId", buy.OrderID, "status", "CANCELED"},
		{"book", "side", "Buy", "price", 11, "quantity", 0},
		{"bbo", "bid", nil, "ask", nil},
		{"control", "kind", "security", "security", "AAPL", "enabled", true, "halted", true, "sequence",
			applied.Sequence, "version", applied.Version},
		{"contract", "contractId", swap.ContractID, "accountId", 1, "sequence", swap.Sequence},
	})
	for n, e := range got[:len(got)-1] {
		again := openFeed(t, i.feedBase(), i.token, "topics="+everyTopic, e.id)
		for _, want := range got[n+1:] {
			if e := again.next(); e.text() != want.text() {
				t.Fatalf("behind %s: got %s, want %s", got[n].id, e.text(), want.text())
			}
		}
		again.cancel()
	}
	whole := openFeed(t, i.feedBase(), i.token, "topics=trades&fromSeq=0", "")
	if e := whole.next(); !e.has("trade", "tradeId", "trd-1") {
		t.Errorf("the first trade of all is %s", e.text())
	}
	own := openFeed(t, i.feedBase(), "", "topics=orders&accountId=2&fromSeq=0", "")
	if e := own.next(); !e.has("order", "orderId", buy.OrderID) {
		t.Errorf("the first order of account 2 is %s", e.text())
	}
}

// TestFeedRefusesWhatItCannotRead: every refusal names what is wrong.
func TestFeedRefusesWhatItCannotRead(t *testing.T) {
	i := install(t, t.TempDir())
	tests := []struct {
		query, lastID string
		status        int
		want          string
	}{
		{"", "", 400, "topics"},
		{"topics=", "", 400, "topics"},
		{"topics=books", "", 400, `no such topic: \"books\"`},
		{"topics=book:NOPE", "", 404, "no such security: NOPE"},
		{"topics=trades&fromSeq=-1", "", 400, "fromSeq"},
		{"topics=trades&fromSeq=1x", "", 400, "fromSeq"},
		{"topics=trades&accountId=x", "", 400, "accountId"},
		{"topics=trades&since=1", "", 400, "since"},
		{"topics=trades&topics=orders", "", 400, "topics"},
		{"topics=trades", "12", 400, "Last-Event-ID"},
		{"topics=trades", "x.y", 400, "Last-Event-ID"},
		{"topics=trades", "-1.2", 400, "Last-Event-ID"},
		{"topics=trades&fromSeq=1000000", "", 503, `"code":"NOT_YET"`},
	}
	for _, tt := range tests {
		answer := tryFeed(t, i.feedBase(), "", tt.query, tt.lastID)
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != tt.status || !strings.Contains(string(text), tt.want) {
			t.Errorf("%s, %q: %d %s; want %d with %q", tt.query, tt.lastID, answer.StatusCode, text,
				tt.status, tt.want)
		}
	}
	answer := must.Get(http.Post(i.feedBase()+"/feed?topics=trades", "application/json", nil))(t)
	answer.Body.Close()
	if answer.StatusCode != 405 || answer.Header.Get("Allow") != "GET" {
		t.Errorf("POST: %d, Allow %q", answer.StatusCode, answer.Header.Get("Allow"))
	}
}

// TestFeedShowsEachCallerItsOwn: with entitlement enforced, an account's orders go to its own.
func TestFeedShowsEachCallerItsOwn(t *testing.T) {
	i := install(t, t.TempDir(), "risk.entitlement.enforced", "true")
	one, noToken := i.mint(time.Hour, false, 1), ""
	tests := []struct {
		token, query string
		want         int
	}{
		{noToken, "topics=book:AAPL,bbo:*,trades,prices", 200},
		{noToken, "topics=orders", 401},
		{noToken, "topics=trades,contracts", 401},
		{noToken, "topics=controls", 401},
		{"x.y.z", "topics=orders", 401},
		{one, "topics=orders,contracts", 200},
		{one, "topics=orders&accountId=1", 200},
		{one, "topics=orders&accountId=2", 403},
		{one, "topics=contracts&accountId=2", 403},
		{one, "topics=controls", 403},
		{i.token, "topics=controls,orders&accountId=2", 200},
	}
	for _, tt := range tests {
		if answer := tryFeed(t, i.feedBase(), tt.token, tt.query, ""); answer.StatusCode != tt.want {
			t.Errorf("%s with token %.8q: %d, want %d", tt.query, tt.token, answer.StatusCode, tt.want)
		} else if answer.Body.Close(); tt.want == 401 && answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: 401 without WWW-Authenticate", tt.query)
		}
	}
	s := openFeed(t, i.feedBase(), one, "topics=orders,trades", "")
	sell := i.limit(1, client.Sell, 10, 10)
	i.limit(2, client.Buy, 10, 10)
	i.limit(1, client.Sell, 1, 12)
	got := s.until(func(e *sseEvent) bool { return e.has("order", "limitPrice", 12) })
	wantEvents(t, got, [][]any{
		{"order", "orderId", sell.OrderID, "status", "NEW"},
		{"trade", "tradeId", "trd-1", "accountId", nil},
		{"trade", "id", "trd-2", "accountId", 1},
		{"order", "orderId", sell.OrderID, "status", "FILLED"},
		{"order", "accountId", 1},
	})
	// The numbers count the events of all accounts: the other account's events leave gaps.
	if got[0].id != fmt.Sprintf("%d.1", sell.Sequence) || got[1].id != fmt.Sprintf("%d.2",
		sell.Sequence+1) || got[2].id != fmt.Sprintf("%d.5", sell.Sequence+1) {
		t.Errorf("ids %s, %s, %s", got[0].id, got[1].id, got[2].id)
	}
}

// TestFeedEndsWithTheToken: a token that expires ends the streams that were opened with it, also
// those that need none.
func TestFeedEndsWithTheToken(t *testing.T) {
	i := install(t, t.TempDir(), "risk.entitlement.enforced", "true")
	for _, topics := range []string{"orders", "trades"} {
		s := openFeed(t, i.feedBase(), i.mint(2*time.Second, false, 1), "topics="+topics, "")
		if e := s.next(); !e.has("gone", "reason", "TOKEN_EXPIRED") || e.id != "" {
			t.Errorf("%s: got %s", topics, e.text())
		}
		if _, err := s.read(); err != io.EOF {
			t.Errorf("%s: then %v, want the end", topics, err)
		}
	}
}

// TestFeedMarksWhenQuiet: a reader to which nothing happens learns how far the stream is.
func TestFeedMarksWhenQuiet(t *testing.T) {
	i := install(t, t.TempDir())
	s := openFeed(t, i.feedBase(), "", "topics=trades", "")
	begin := i.limit(1, client.Sell, 1, 12)
	for {
		e := must.Get(s.read())(t)
		if e.has("mark", "sequence", begin.Sequence) && strings.HasPrefix(e.id,
			fmt.Sprintf("%d.", begin.Sequence)) {
			break
		}
	}
	i.limit(2, client.Buy, 1, 12)
	again := openFeed(t, i.feedBase(), "", "topics=trades", s.lastID)
	if a, b := s.next(), again.next(); a.text() != b.text() || a.kind != "trade" {
		t.Errorf("got %s, behind the mark %s", a.text(), b.text())
	}
}

// TestFeedHasABound: one reader more than feed.max-clients is told to come again.
func TestFeedHasABound(t *testing.T) {
	i := install(t, t.TempDir(), "feed.max-clients", "2")
	first := openFeed(t, i.feedBase(), "", "topics=trades", "")
	openFeed(t, i.feedBase(), "", "topics=prices", "")
	answer := tryFeed(t, i.feedBase(), "", "topics=trades", "")
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 503 || !strings.Contains(string(text), `"code":"BUSY"`) ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("the third: %d %s", answer.StatusCode, text)
	}
	first.cancel()
	apptest.Until(t, "a place is free again", func() (bool, any) {
		answer := tryFeed(t, i.feedBase(), "", "topics=trades", "")
		defer answer.Body.Close()
		return answer.StatusCode == 200, answer.StatusCode
	})
}

// TestFeedKeepsPlacesForTokens: where tokens are needed, clients without one have half of them.
func TestFeedKeepsPlacesForTokens(t *testing.T) {
	i := install(t, t.TempDir(), "feed.max-clients", "2", "risk.entitlement.enforced", "true")
	openFeed(t, i.feedBase(), "", "topics=trades", "")
	answer := tryFeed(t, i.feedBase(), "", "topics=trades", "")
	defer answer.Body.Close()
	if answer.StatusCode != 503 {
		t.Errorf("the second without a token: %d", answer.StatusCode)
	}
	openFeed(t, i.feedBase(), i.token, "topics=trades", "")
}

// flood makes events until more than n bytes of them are in the stream of everything. seen is
// called after each batch, with its last sequence.
func (i *installed) flood(n int, seen func(inputSeq uint64)) {
	i.t.Helper()
	batch := make([]client.OrderRequest, 500)
	for at := range batch {
		batch[at] = client.OrderRequest{AccountID: 1, Security: "AAPL", Side: client.Sell, Quantity: 1,
			LimitPrice: client.Price(12_000_000 + 1000*int64(at))}
	}
	for sent := 0; sent < n; sent += len(batch) * 450 {
		decided := must.Get(i.orders.CreateOrderBatch(i.t.Context(), batch))(i.t)
		seen(decided[len(decided)-1].Sequence)
	}
}

// TestSlowReaderIsToldAndGone: a client that does not read is ended with a reason, has missed
// nothing before it, and has cost another client nothing.
func TestSlowReaderIsToldAndGone(t *testing.T) {
	i := install(t, t.TempDir(), "risk.max-open-orders", "100000")
	slow := openFeed(t, i.feedBase(), i.token, "topics="+everyTopic, "")
	fast := openFeed(t, i.feedBase(), i.token, "topics="+everyTopic, "")
	done, at := make(chan []sseEvent), &atomic.Uint64{}
	go func() {
		var all []sseEvent
		for {
			e, err := fast.read()
			if err != nil || e.has("price", "price", 77) {
				done <- all
				return
			}
			if e.kind != "mark" {
				all = append(all, e)
				at.Store(uint64(e.body["sequence"].(float64)))
			}
		}
	}()
	i.flood(16<<20, func(inputSeq uint64) {
		apptest.Until(t, "the other reader keeps up", func() (bool, any) {
			return at.Load() >= inputSeq, at.Load()
		})
	})
	must.Get(i.orders.Prices(t.Context(), []client.PriceRequest{{Security: "AAPL",
		Price: 77_000_000}}))(t)
	all := <-done
	got := slow.until(func(e *sseEvent) bool { return e.kind == "gone" })
	if e := got[len(got)-1]; !e.has("gone", "reason", "SLOW") {
		t.Fatalf("ended with %s", e.text())
	}
	if _, err := slow.read(); err != io.EOF || !slow.answer.Close {
		t.Errorf("behind the end: %v, the connection ends: %t", err, slow.answer.Close)
	}
	i.awaitMetrics("svc_feed_slow_total 1", "svc_feed_refused_total 0",
		`svc_feed_clients{reads="live"} 1`, `svc_feed_clients{reads="history"} 0`)
	got = got[:len(got)-1]
	again := openFeed(t, i.feedBase(), i.token, "topics="+everyTopic, got[len(got)-1].id)
	rest := again.until(func(e *sseEvent) bool { return e.has("price", "price", 77) })
	got = append(got, rest[:len(rest)-1]...)
	if len(got) != len(all) {
		t.Fatalf("%d events in two parts, the other reader got %d", len(got), len(all))
	}
	for n := range got {
		if got[n].text() != all[n].text() {
			t.Fatalf("event %d: %s, the other reader got %s", n, got[n].text(), all[n].text())
		}
	}
}

// TestStopTellsTheReaders: a stop ends every stream with a reason, and does not wait for a client
// that does not read.
func TestStopTellsTheReaders(t *testing.T) {
	certificate, key := selfSigned(t)
	for _, secured := range []string{"", "TLS"} {
		t.Run("over "+secured, func(t *testing.T) {
			var more []string
			if secured != "" {
				more = []string{"http.tls-cert", certificate, "http.tls-key", key}
			}
			i := install(t, t.TempDir(), append(more, "sidecars.enabled", "false")...)
			reader := openFeed(t, i.feedBase(), "", "topics=prices", "")
			openFeed(t, i.feedBase(), "", "topics=book:AAPL,orders&fromSeq=0", "") // never reads
			if secured == "" {
				i.flood(8<<20, func(uint64) {})
			}
			ended := make(chan struct{})
			go func() { i.stop(); close(ended) }()
			if e := reader.next(); !e.has("gone", "reason", "STOPPING") {
				t.Errorf("got %s", e.text())
			}
			if _, err := reader.read(); err != io.EOF {
				t.Errorf("then %v, want the end", err)
			}
			<-ended
			if _, err := net.Dial("tcp", reader.answer.Request.URL.Host); err == nil {
				t.Error("the listener is still open")
			}
		})
	}
}
