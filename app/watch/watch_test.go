package watch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"posttrade/httpapi/client"
)

// served is a server that answers each connection with the next text, and what connects to it.
func served(t *testing.T, texts ...string) (connect func() (*client.Client, error)) {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n == len(texts) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"code":"THE_END","detail":"behind %s"}`, r.Header.Get("Last-Event-ID"))
			return
		}
		n++
		fmt.Fprint(w, texts[n-1])
	}))
	t.Cleanup(s.Close)
	return func() (*client.Client, error) {
		return client.New(client.Config{Address: s.Listener.Addr().String(),
			Pause: func(context.Context, int) {}}), nil
	}
}

func frame(id, kind, data string) string {
	return fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, kind, data)
}

// TestColumns: an event is a line that people can read, and nothing in it moves the cursor.
func TestColumns(t *testing.T) {
	for _, tt := range []struct{ kind, data, want string }{
		{"snapshot", `{"security":"AAPL","bids":[{"price":99.5,"quantity":10,"orders":2}],"asks":[]}`,
			"7.1           snapshot  AAPL      10 x 99.5 / -, 1 and 0 levels"},
		{"book", `{"security":"AAPL","side":"Buy","price":99.5,"quantity":10,"orders":2,"sequence":7}`,
			"7.1           book      AAPL      Buy 99.5: 10 in 2 orders"},
		{"bbo", `{"security":"AAPL","bid":null,"ask":{"price":101,"quantity":5,"orders":1}}`,
			"7.1           bbo       AAPL      - / 5 x 101"},
		{"trade", `{"tradeId":"trd-9","security":"AAPL","price":101,"quantity":10,"aggressorSide":"Buy"}`,
			"7.1           trade     AAPL      Buy 10 at 101  trd-9"},
		{"trade", `{"tradeId":"trd-9","accountId":7,"security":"AAPL","side":"Sell","price":101,` +
			`"quantity":10,"orderId":"ord-3"}`,
			"7.1           trade     AAPL      Sell 10 at 101  trd-9 of account 7, ord-3"},
		{"order", `{"orderId":"ord-3","accountId":7,"security":"AAPL","side":"Sell","quantity":10,` +
			`"remainingQuantity":4,"limitPrice":101,"status":"PARTIALLY_FILLED","riskReason":null}`,
			"7.1           order     AAPL      Sell 10 at 101  ord-3 of account 7  " +
				"PARTIALLY_FILLED, 4 left"},
		{"order", `{"orderId":"ord-3","accountId":7,"security":"AAPL","side":"Sell","quantity":10,` +
			`"limitPrice":null,"status":"REJECTED","riskReason":"SECURITY_HALTED"}`,
			"7.1           order     AAPL      Sell 10 at the market  ord-3 of account 7  " +
				"REJECTED SECURITY_HALTED"},
		{"price", `{"security":"AAPL","price":187.25}`, "7.1           price     AAPL      187.25"},
		{"control", `{"kind":"policy","killSwitch":true}`,
			`7.1           control   -         {"kind":"policy","killSwitch":true}`},
		{"price", `{"security":"\u001b[2J\u009bA","price":1}`, "7.1           price     [2JA      1"},
	} {
		var out strings.Builder
		err := Run(t.Context(), &out, Options{Count: 1,
			Connect: served(t, frame("7.1", tt.kind, tt.data))})
		if got := strings.TrimSuffix(out.String(), "\n"); err != nil || got != tt.want {
			t.Errorf("%s: %v\n got %q\nwant %q", tt.data, err, got, tt.want)
		}
	}
}

// TestJSONLines: each event is a line, marks too; a mark is none of the events that are counted.
func TestJSONLines(t *testing.T) {
	var out strings.Builder
	err := Run(t.Context(), &out, Options{JSON: true, Count: 2, Connect: served(t,
		frame("7.1", "price", `{"price":1}`)+"event: mark\ndata: {\"sequence\":7}\n\n"+
			frame("8.1", "price", `{"price":2}`)+frame("9.1", "price", `{"price":3}`))})
	want := `{"id":"7.1","event":"price","data":{"price":1}}
{"event":"mark","data":{"sequence":7}}
{"id":"8.1","event":"price","data":{"price":2}}
`
	if err != nil || out.String() != want {
		t.Errorf("%v, got\n%s", err, out.String())
	}
}

// TestWatchGoesOn: with another token when one has expired, and with a line when the server is
// gone.
func TestWatchGoesOn(t *testing.T) {
	expired := "event: gone\ndata: {\"reason\":\"TOKEN_EXPIRED\"}\n\n"
	var out, notices strings.Builder
	err := Run(t.Context(), &out, Options{Notices: &notices, Connect: served(t,
		frame("7.1", "price", `{"price":1}`)+expired, "", "",
		frame("7.2", "price", `{"price":2}`)+expired)})
	if err == nil || !strings.Contains(err.Error(), "THE_END: behind 7.2") ||
		strings.Count(out.String(), "\n") != 2 {
		t.Errorf("%v, got\n%s", err, out.String())
	}
	if strings.Count(notices.String(), "disconnected") != 1 {
		t.Errorf("notices: %s", notices.String())
	}
	for _, from := range []string{"", "6.1"} {
		if err := Run(t.Context(), &out, Options{Query: client.FeedQuery{From: from},
			Connect: served(t, expired)}); err == nil || strings.Contains(err.Error(), "THE_END") {
			t.Errorf("a token that never serves was tried again: %v", err)
		}
	}
	// A night without an event: each token has expired, or the server was away meanwhile. The place
	// to begin at stays.
	now := time.Now()
	out.Reset()
	err = Run(t.Context(), &out, Options{Notices: &notices, Connect: served(t, expired,
		"event: gone\ndata: {\"reason\":\"UNAUTHORIZED\"}\n\n",
		frame("7.3", "price", `{"price":3}`)+expired),
		Now: func() time.Time { now = now.Add(freshFor); return now }})
	if err == nil || !strings.Contains(err.Error(), "THE_END: behind 7.3") {
		t.Errorf("%v, got\n%s", err, out.String())
	}
	err = Run(t.Context(), &out, Options{Query: client.FeedQuery{From: "6.1"},
		Connect: served(t, expired),
		Now:     func() time.Time { now = now.Add(freshFor); return now }})
	if err == nil || !strings.Contains(err.Error(), "THE_END: behind 6.1") {
		t.Errorf("begun behind 6.1: %v", err)
	}
}
