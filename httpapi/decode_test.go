package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"posttrade/matcher"
)

// TestOrderBodiesThatCannotBeRead lists the 400s with their causes.
func TestOrderBodiesThatCannotBeRead(t *testing.T) {
	order := func(old, new string) string {
		body := `{"accountId":1,"security":"AAA","side":"Buy","quantity":10,"limitPrice":100}`
		if !strings.Contains(body, old) {
			t.Fatalf("%q is not in the body", old)
		}
		return strings.Replace(body, old, new, 1)
	}
	tests := []struct{ name, body, detail string }{
		{"nothing", "", "ends too early"},
		{"null", "null", ""},
		{"an array", "[]", ""},
		{"two values", goodOrder + goodOrder, "after the JSON value"},
		{"an unknown field", order(`{`, `{"x":1,`), `"x": unknown member`},
		{"an unknown field behind known ones", order(`}`, `,"qty":1}`), `"qty": unknown member`},
		{"an unknown field without a name", order(`{`, `{"":1,`), `"": unknown member`},
		{"an unknown field, escaped", order(`{`, `{"a\u0022b\u00e9":1,`), `"a\"b\u00e9": unknown member`},
		{"a long unknown field", order(`{`, `{"`+strings.Repeat("x", 65)+`":1,`),
			`"` + strings.Repeat("x", 64) + `"...: unknown member`},
		{"a known field in another case", order(`"side"`, `"Side"`), `"Side": unknown member`},
		{"a field twice", order(`{`, `{"quantity":10,`), "duplicate key"},
		{"a field twice, escaped", order(`{`, `{"\u0071uantity":10,`), "duplicate key"},
		{"no account", order(`"accountId":1,`, ``), "field accountId: required"},
		{"no security", order(`"security":"AAA",`, ``), "field security: required"},
		{"no side", order(`"side":"Buy",`, ``), "field side: required"},
		{"no quantity", order(`"quantity":10,`, ``), "field quantity: required"},
		{"no price", order(`,"limitPrice":100`, ``), "field limitPrice: LIMIT needs"},
		{"a market order with a price", order(`{`, `{"type":"MARKET",`), "field limitPrice: LIMIT needs"},
		{"a market order that is post-only",
			order(`"limitPrice":100`, `"type":"MARKET","timeInForce":"POST_ONLY"`), "field timeInForce"},
		{"an unknown type", order(`{`, `{"type":"limit",`), "field type"},
		{"an unknown time in force", order(`{`, `{"timeInForce":"DAY",`), "field timeInForce"},
		{"an unknown side", order(`Buy`, `Hold`), "field side"},
		{"a null side", order(`"Buy"`, `null`), "field side"},
		{"a null price", order(`:100`, `:null`), "field limitPrice"},
		{"an account as text", order(`:1,`, `:"1",`), "field accountId"},
		{"a negative account", order(`:1,`, `:-1,`), "field accountId"},
		{"an account of 33 bits", order(`:1,`, `:4294967296,`), "field accountId"},
		{"a fractional account", order(`:1,`, `:1.0,`), "field accountId"},
		{"a quantity of 0", order(`:10,`, `:0,`), "field quantity"},
		{"a negative quantity", order(`:10,`, `:-10,`), "field quantity"},
		{"a quantity of 32 bits", order(`:10,`, `:2147483648,`), "field quantity"},
		{"a fractional quantity", order(`:10,`, `:10.5,`), "field quantity"},
		{"a quantity with an exponent", order(`:10,`, `:1e1,`), "field quantity"},
		{"a price of 0", order(`:100}`, `:0}`), "field limitPrice"},
		{"a negative price", order(`:100}`, `:-1}`), "field limitPrice"},
		{"7 decimals", order(`:100}`, `:1.0000001}`), "field limitPrice: number with more than 6"},
		{"a price out of range", order(`:100}`, `:9223372036854.775808}`),
			"field limitPrice: number out of range"},
		{"an exponent out of range", order(`:100}`, `:1e400}`), "field limitPrice"},
		{"NaN", order(`:100}`, `:NaN}`), ""},
		{"NaN as text", order(`:100}`, `:"NaN"}`), "field limitPrice"},
		{"a leading zero", order(`:100}`, `:0100}`), ""},
		{"a plus sign", order(`:100}`, `:+100}`), ""},
		{"an empty ticker", order(`AAA`, ``), "field security"},
		{"a long ticker", order(`AAA`, strings.Repeat("A", 33)), "field security"},
		{"a ticker beyond ASCII", order(`AAA`, `ÄÄÄ`), "field security"},
		{"an empty client id", order(`{`, `{"clientOrderId":"",`), "field clientOrderId"},
		{"a client id of 65 bytes", order(`{`, `{"clientOrderId":"`+strings.Repeat("x", 65)+`",`),
			"field clientOrderId"},
		{"a client id with a newline", order(`{`, `{"clientOrderId":"a\nb",`), "field clientOrderId"},
		{"a client id beyond ASCII", order(`{`, `{"clientOrderId":"\u00e9",`), "field clientOrderId"},
		{"invalid UTF-8", order(`AAA`, "\xff"), "UTF-8"},
		{"a lone surrogate", order(`AAA`, `\ud800`), "surrogate"},
		{"a byte order mark", "\ufeff" + goodOrder, "byte order mark"},
		{"nesting", order(`:100}`, `:`+strings.Repeat("[", 17)+strings.Repeat("]", 17)+`}`), ""},
		{"a trailing comma", order(`:100}`, `:100,}`), ""},
	}
	r := newRig(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r.t = t
			a := r.post("/orders", tt.body, "").want(t, 400, CodeMalformedBody)
			if detail := a.field(t, "detail").(string); !strings.Contains(detail, tt.detail) {
				t.Errorf("detail %q, want %q in it", detail, tt.detail)
			}
		})
	}
	if r.t = t; r.sequence() != 0 {
		t.Errorf("sequence %d after bodies that cannot be read", r.sequence())
	}
}

func TestOrderBodiesAtTheirLimits(t *testing.T) {
	tests := []struct {
		body string
		want orderRequest
	}{
		{`{"accountId":4294967295,"security":"A","side":"sELL","quantity":2147483647,` +
			`"limitPrice":"9223372036854.775807"}`,
			orderRequest{accountID: 1<<32 - 1, security: []byte("A"), side: matcher.Sell, qty: 1<<31 - 1,
				limitPx: math.MaxInt64}},
		{` { "limitPrice" : 1e-6 , "quantity":1,"side":"BUY","security":"~","accountId":0, ` +
			`"timeInForce":"IOC" } `,
			orderRequest{security: []byte("~"), qty: 1, limitPx: 1, flags: matcher.FlagIOC}},
		{`{"type":"MARKET","clientOrderId":" ","quantity":1,"side":"Buy","security":"A","accountId":1,` +
			`"timeInForce":"FOK"}`,
			orderRequest{accountID: 1, clientID: []byte(" "), security: []byte("A"), qty: 1, market: true,
				flags: matcher.FlagFOK}},
	}
	for _, tt := range tests {
		var d decoder
		var got orderRequest
		d.reset([]byte(tt.body))
		d.order(&got)
		if err := d.end(); err != nil {
			t.Errorf("%s: %v", tt.body, err)
		}
		if string(got.clientID) != string(tt.want.clientID) ||
			string(got.security) != string(tt.want.security) {
			t.Errorf("%s: %q %q", tt.body, got.clientID, got.security)
		}
		got.clientID, got.security, tt.want.clientID, tt.want.security = nil, nil, nil, nil
		if got.limitPx != tt.want.limitPx || got.accountID != tt.want.accountID ||
			got.qty != tt.want.qty ||
			got.side != tt.want.side || got.flags != tt.want.flags || got.market != tt.want.market {
			t.Errorf("%s: %+v, want %+v", tt.body, got, tt.want)
		}
	}
}

func TestCursorsOfOthersAreRefused(t *testing.T) {
	good := strings.Trim(string(appendCursor(nil, cursorOrders, 77)), `"`)
	if last, ok := parseCursor([]byte(good), cursorOrders); !ok || last != 77 {
		t.Fatalf("%s: %d %v", good, last, ok)
	}
	if _, ok := parseCursor([]byte(good), cursorPositions); ok {
		t.Error("a cursor of another list passes")
	}
	for i := range good {
		for _, ch := range []byte("A_-z9") {
			bad := []byte(good)
			if bad[i] == ch {
				continue
			}
			bad[i] = ch
			if _, ok := parseCursor(bad, cursorOrders); ok {
				t.Errorf("%s passes for %s", bad, good)
			}
		}
	}
}

// FuzzOrderBody compares the decoder with encoding/json: encoding/json accepts every body that the
// decoder accepts, with the same values. The decoder panics on no body.
func FuzzOrderBody(f *testing.F) {
	for _, body := range []string{
		goodOrder, `{}`, `[]`, `null`,
		`{"accountId":1,"security":"A","side":"sell","quantity":1,"type":"MARKET"}`,
		`{"accountId":1,"security":"A","side":"Buy","quantity":1,"limitPrice":"1.5",` +
			`"clientOrderId":"\u0041","timeInForce":"FOK"}`,
		`{"accountId":1,"accountId":2}`, `{"limitPrice":1e-7}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var d decoder
		var o, trade, replace orderRequest
		d.reset(body)
		d.trade(&trade)
		d.reset(body)
		d.replacement(&replace)
		d.reset(body)
		d.tick()
		d.reset(body)
		d.order(&o)
		if err := d.end(); err != nil {
			if p := d.bodyProblem(err, 3); p.status != 400 || !json.Valid(append(p.append(nil), '}')) {
				t.Fatalf("%+v", p)
			}
			return
		}
		var want struct {
			ClientOrderID string      `json:"clientOrderId"`
			AccountID     uint32      `json:"accountId"`
			Security      string      `json:"security"`
			Side          string      `json:"side"`
			Quantity      int32       `json:"quantity"`
			LimitPrice    json.Number `json:"limitPrice"`
			Type          string      `json:"type"`
			TimeInForce   string      `json:"timeInForce"`
		}
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&want); err != nil {
			t.Fatalf("accepted, and encoding/json says %v: %q", err, body)
		}
		if want.AccountID != o.accountID || want.Security != string(o.security) ||
			want.Quantity != o.qty ||
			want.ClientOrderID != string(o.clientID) || (want.Type == "MARKET") != o.market ||
			strings.EqualFold(want.Side, "sell") != (o.side == matcher.Sell) ||
			(want.LimitPrice == "") != (o.limitPx == 0) {
			t.Fatalf("%+v, encoding/json reads %+v: %q", o, want, body)
		}
		var cmd matcher.Command
		o.command(matcher.OrderNew, 1, 1, &cmd)
		if err := cmd.Verify(); err != nil {
			t.Fatalf("an accepted body makes a record that cannot be read: %v: %q", err, body)
		}
	})
}
