package httpapi

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// checkQuick asserts that the Reader accepts what quickOrder accepts: as the same order, up to the
// same byte and with the same last member.
func checkQuick(t *testing.T, body string) (taken bool) {
	t.Helper()
	var quick, slow orderRequest
	n, last := quickOrder([]byte(body), &quick)
	if n == 0 {
		return false
	}
	var d decoder
	d.reset([]byte(body))
	if d.json.Err() != nil {
		return true // not UTF-8, after the order: nothing is scanned there
	}
	d.slowOrder(&slow)
	if err := d.json.Err(); err != nil {
		t.Fatalf("%q was taken, the Reader says %v", body, err)
	}
	if d.json.Offset() != n || d.field != last {
		t.Fatalf("%q was taken up to %d, last %s, by the Reader up to %d, last %s", body, n, last,
			d.json.Offset(), d.field)
	}
	if string(quick.clientID) != string(slow.clientID) ||
		string(quick.security) != string(slow.security) {
		t.Fatalf("%q is %+v, by the Reader %+v", body, quick, slow)
	}
	quick.clientID, quick.security, slow.clientID, slow.security = nil, nil, nil, nil
	if quick.limitPx != slow.limitPx || quick.accountID != slow.accountID || quick.qty != slow.qty ||
		quick.side != slow.side || quick.flags != slow.flags || quick.market != slow.market {
		t.Fatalf("%q is %+v, by the Reader %+v", body, quick, slow)
	}
	return true
}

func TestQuickOrderTakesUsualOrders(t *testing.T) {
	const plain = `{"accountId":1,"security":"AAA","side":"Buy","quantity":10,"limitPrice":100}`
	for _, tt := range []struct {
		name, body string
		taken      bool
	}{
		{"plain", plain, true},
		{"with all members",
			`{"clientOrderId":"c-1","accountId":4294967295,"security":"A.B","side":"Sell",` +
				`"quantity":2147483647,` +
				`"limitPrice":101.250001,"type":"LIMIT","timeInForce":"POST_ONLY"}`, true},
		{"a space behind commas and colons",
			`{"accountId": 1, "security": "AAA", "side": "Buy", "quantity": 10, "limitPrice": 100.5}`, true},
		{"the shortest member last",
			`{"accountId":1,"security":"AAA","quantity":10,"limitPrice":100,"side":"Buy"}`, true},
		{"one digit last", `{"security":"AAA","side":"Buy","type":"MARKET","accountId":1,"quantity":1}`,
			true},
		{"something behind it", plain + `,`, true},
		{"the longest price", strings.Replace(plain, "100", "999999999999.999999", 1), true},

		{"nothing", ``, false},
		{"an empty object", `{}`, false},
		{"a space in front", ` ` + plain, false},
		{"a line break", strings.Replace(plain, ",", ",\n", 1), false},
		{"a price below one", strings.Replace(plain, "100", "0.5", 1), false},
		{"a price as text", strings.Replace(plain, "100", `"100"`, 1), false},
		{"a price with seven decimals", strings.Replace(plain, "100", "1.0000000", 1), false},
		{"a price with an exponent", strings.Replace(plain, "100", "1e2", 1), false},
		{"a price with two points", strings.Replace(plain, "100", "1.2.3", 1), false},
		{"a price of no digit behind the point", strings.Replace(plain, "100", "1.", 1), false},
		{"an account of 33 bits", strings.Replace(plain, ":1,", ":4294967296,", 1), false},
		{"a fractional account", strings.Replace(plain, ":1,", ":1.5,", 1), false},
		{"a quantity of 32 bits", strings.Replace(plain, ":10,", ":2147483648,", 1), false},
		{"a side in another case", strings.Replace(plain, "Buy", "BUY", 1), false},
		{"an escaped ticker", strings.Replace(plain, "AAA", `\u0041`, 1), false},
		{"an empty ticker", strings.Replace(plain, "AAA", ``, 1), false},
		{"a long ticker", strings.Replace(plain, "AAA", strings.Repeat("A", 33), 1), false},
		{"a ticker with DEL", strings.Replace(plain, "AAA", "AAAAAAAA\x7f", 1), false},
		{"a ticker beyond ASCII", strings.Replace(plain, "AAA", "Ä", 1), false},
		{"a long client id", strings.Replace(plain, "{",
			`{"clientOrderId":"`+strings.Repeat("x", 65)+`",`, 1), false},
		{"a member twice", strings.Replace(plain, "{", `{"quantity":10,`, 1), false},
		{"a member missing", strings.Replace(plain, `"side":"Buy",`, ``, 1), false},
		{"a member that is unknown", strings.Replace(plain, "{", `{"x":1,`, 1), false},
		{"a limit order without a price", strings.Replace(plain, `,"limitPrice":100`, ``, 1), false},
		{"a market order with a price", strings.Replace(plain, "{", `{"type":"MARKET",`, 1), false},
		{"a market order that is post-only",
			`{"accountId":1,"security":"AAA","side":"Buy","quantity":1,"type":"MARKET",` +
				`"timeInForce":"POST_ONLY"}`, false},
		{"an unknown time in force", strings.Replace(plain, "{", `{"timeInForce":"DAY",`, 1), false},
		{"a trailing comma", strings.Replace(plain, "}", `,}`, 1), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if taken := checkQuick(t, tt.body); taken != tt.taken {
				t.Errorf("taken %v, want %v", taken, tt.taken)
			}
		})
	}
	for n := range len(plain) {
		if checkQuick(t, plain[:n]) {
			t.Errorf("%q was taken", plain[:n])
		}
	}
}

// TestQuickOrderAgreesWithTheReader changes bytes of orders at random.
func TestQuickOrderAgreesWithTheReader(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const alphabet = `{}[]":,.\ 0123456789-+eEaltxBS` + "\n\x7f\x80"
	bodies := []string{
		`{"clientOrderId":"c-1","accountId":42,"security":"AAA","side":"Sell","quantity":7,` +
			`"limitPrice":101.25,"type":"LIMIT","timeInForce":"IOC"}`,
		`{"accountId": 1, "security": "ABCDEFGHIJ", "side": "Buy", "quantity": 10, "type": "MARKET"}`,
	}
	taken := 0
	for range 40_000 {
		body := []byte(bodies[rng.IntN(len(bodies))])
		for range rng.IntN(3) {
			switch at := rng.IntN(len(body)); rng.IntN(3) {
			case 0:
				body[at] = alphabet[rng.IntN(len(alphabet))]
			case 1:
				body = append(body[:at], body[at+1:]...)
			default:
				body = append(body[:at], append([]byte{alphabet[rng.IntN(len(alphabet))]}, body[at:]...)...)
			}
		}
		if checkQuick(t, string(body)) {
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("%d of the orders were taken", taken)
	}
}

// FuzzQuickOrder compares quickOrder with the Reader.
func FuzzQuickOrder(f *testing.F) {
	f.Add(goodOrder)
	f.Add(
		`{"clientOrderId":"c","accountId": 1, "security":"A","side":"Sell","quantity":2,` +
			`"limitPrice":0.5,"timeInForce":"GTC"}`)
	f.Add(`{"accountId":1,"security":"A","side":"Buy","quantity":2,"type":"MARKET"}`)
	f.Fuzz(func(t *testing.T, body string) { checkQuick(t, body) })
}
