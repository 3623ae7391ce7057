package projection

import (
	"errors"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
	"posttrade/matcher/strictjson"
	"posttrade/sidecars/store"
)

// plain is a message with the required fields only; a test replaces parts of it.
const plain = `{"id":"trd-42","accountId":7,"security":"AAPL","side":"Buy","quantity":100,` +
	`"price":101.25,"timestamp":"2026-03-02T14:30:00.123Z"}`

// with is plain with one part replaced.
func with(t *testing.T, part, by string) string {
	t.Helper()
	if strings.Count(plain, part) != 1 {
		t.Fatalf("%q is not once in the message", part)
	}
	return strings.Replace(plain, part, by, 1)
}

// also is plain with more members.
func also(members string) string { return plain[:len(plain)-1] + "," + members + "}" }

func TestReadMessage(t *testing.T) {
	want := store.Trade{
		ID: "trd-42", Seq: 42, AccountID: 7, Security: "AAPL", Side: matcher.Buy, Quantity: 100,
		Price:      101_250_000,
		ExecutedAt: time.Date(2026, time.March, 2, 14, 30, 0, 123e6, time.UTC).UnixMilli(),
	}
	changed := func(change func(*store.Trade)) store.Trade {
		row := want
		change(&row)
		return row
	}
	sell := changed(func(r *store.Trade) { r.Side = matcher.Sell })
	ordered := changed(func(r *store.Trade) { r.OrderID = "ord-4294967295" })
	tests := []struct {
		name string
		body string
		want store.Trade
	}{
		{"required fields", plain, want},
		{"white space", " \r\n\t" + strings.ReplaceAll(plain, ",", " ,\n ") + "\n", want},
		{"Trade JSON as it is answered", also(
			`"tradeSeq":42,"status":"Settled","settlementDate":"2026-03-03","orderId":"ord-4294967295",` +
				`"updatedAt":"2026-03-03T05:00:00Z"`), ordered},
		{"no order", also(`"orderId":null`), want},
		{"settled is not taken", also(`"status":"Settled"`), want},
		{"settlement date is not taken", also(`"settlementDate":"1999-12-31"`), want},
		{"side in lower case", with(t, `"Buy"`, `"buy"`), want},
		{"side in upper case", with(t, `"Buy"`, `"SELL"`), sell},
		{"side in mixed case", with(t, `"Buy"`, `"sElL"`), sell},
		{"price as a string", with(t, `101.25`, `"101.25"`), want},
		{"price with an exponent", with(t, `101.25`, `10125e-2`), want},
		{"zeros behind the sixth decimal", with(t, `101.25`, `101.2500000000`), want},
		{"least price", with(t, `101.25`, `0.000001`), changed(func(r *store.Trade) { r.Price = 1 })},
		{"most price", with(t, `101.25`, `9223372036854.775807`),
			changed(func(r *store.Trade) { r.Price = 1<<63 - 1 })},
		{"most quantity", with(t, `:100`, `:2147483647`),
			changed(func(r *store.Trade) { r.Quantity = 2147483647 })},
		{"most account", with(t, `:7,`, `:4294967295,`),
			changed(func(r *store.Trade) { r.AccountID = 4294967295 })},
		{"most id", with(t, `trd-42`, `trd-9223372036854775807`),
			changed(func(r *store.Trade) { r.ID, r.Seq = "trd-9223372036854775807", 1<<63-1 })},
		{"longest security", with(t, `AAPL`, `A.B-C.0123456789`),
			changed(func(r *store.Trade) { r.Security = "A.B-C.0123456789" })},
		{"escaped letters", with(t, `"AAPL"`, `"A\u0041P\u004c"`), want},
		{"escaped name", with(t, `"price"`, `"pr\u0069ce"`), want},
		{"offset", with(t, `14:30:00.123Z`, `09:30:00.123-05:00`), want},
		{"from outside", with(t, `trd-42`, `ext-a.B_c-9`),
			changed(func(r *store.Trade) { r.ID, r.Seq = "ext-a.B_c-9", 0 })},
		{"longest id from outside", with(t, `trd-42`, "ext-"+strings.Repeat("x", 60)),
			changed(func(r *store.Trade) { r.ID, r.Seq = "ext-"+strings.Repeat("x", 60), 0 })},
		{"from outside as it is answered", strings.Replace(also(`"tradeSeq":null`), "trd-42", "ext-1", 1),
			changed(func(r *store.Trade) { r.ID, r.Seq = "ext-1", 0 })},
		{"first order", also(`"orderId":"ord-1"`), changed(func(r *store.Trade) { r.OrderID = "ord-1" })},
	}
	var m message
	for _, tt := range tests {
		if err := m.read([]byte(tt.body)); err != nil || m.trade != tt.want {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", tt.name, m.trade, err, tt.want)
		}
	}
}

func TestMalformedMessages(t *testing.T) {
	tests := []struct {
		name string
		body string
		why  error
		at   string // the field that the reason names
	}{
		{"nothing", ``, strictjson.ErrTruncated, ""},
		{"white space", `  `, strictjson.ErrTruncated, ""},
		{"no object", `"trd-42"`, strictjson.ErrType, ""},
		{"an array of it", `[` + plain + `]`, strictjson.ErrType, ""},
		{"null", `null`, strictjson.ErrType, ""},
		{"no JSON", `@trd-42`, strictjson.ErrSyntax, ""},
		{"cut off", plain[:len(plain)-1], strictjson.ErrTruncated, ""},
		{"cut off in a value", plain[:40], strictjson.ErrTruncated, "security"},
		{"bytes behind it", plain + "x", strictjson.ErrTrailing, ""},
		{"twice", plain + plain, strictjson.ErrTrailing, ""},
		{"trailing comma", with(t, `Z"}`, `Z",}`), strictjson.ErrSyntax, ""},
		{"byte order mark", "\xef\xbb\xbf" + plain, strictjson.ErrBOM, ""},
		{"not UTF-8", with(t, "AAPL", "AA\xff"), strictjson.ErrUTF8, ""},
		{"too long", plain + strings.Repeat(" ", MaxMessageBytes), errLong, ""},
		{"empty object", `{}`, errMissing, "id"},
		{"unknown field", also(`"secret":1`), errUnknown, ""},
		{"field in another case", with(t, `"price"`, `"Price"`), errUnknown, ""},
		{"input sequence", also(`"sequence":12`), errUnknown, ""},
		{"empty name", also(`"":1`), errUnknown, ""},
		{"duplicate field", also(`"price":101.25`), strictjson.ErrDuplicateKey, ""},
		{"duplicate by an escape", also(`"pric\u0065":101.25`), strictjson.ErrDuplicateKey, ""},
		{"id missing", with(t, `"id":"trd-42",`, ``), errMissing, "id"},
		{"account missing", with(t, `"accountId":7,`, ``), errMissing, "accountId"},
		{"security missing", with(t, `"security":"AAPL",`, ``), errMissing, "security"},
		{"side missing", with(t, `"side":"Buy",`, ``), errMissing, "side"},
		{"quantity missing", with(t, `"quantity":100,`, ``), errMissing, "quantity"},
		{"price missing", with(t, `"price":101.25,`, ``), errMissing, "price"},
		{"timestamp missing", with(t, `,"timestamp":"2026-03-02T14:30:00.123Z"`, ``), errMissing,
			"timestamp"},
		{"id is a number", with(t, `"trd-42"`, `42`), strictjson.ErrType, "id"},
		{"id is null", with(t, `"trd-42"`, `null`), strictjson.ErrType, "id"},
		{"id without its prefix", with(t, `trd-42`, `42`), errValue, "id"},
		{"id in another case", with(t, `trd-42`, `TRD-42`), errValue, "id"},
		{"id 0", with(t, `trd-42`, `trd-0`), errValue, "id"},
		{"id with a zero in front", with(t, `trd-42`, `trd-042`), errValue, "id"},
		{"id negative", with(t, `trd-42`, `trd--42`), errValue, "id"},
		{"id with a sign", with(t, `trd-42`, `trd-+42`), errValue, "id"},
		{"id with a space", with(t, `trd-42`, `trd-42 `), errValue, "id"},
		{"id beyond a bigint", with(t, `trd-42`, `trd-9223372036854775808`), errValue, "id"},
		{"id with a control character", with(t, `trd-42`, `trd-4\u0000`), strictjson.ErrControl, "id"},
		{"account 0", with(t, `:7,`, `:0,`), strictjson.ErrRange, "accountId"},
		{"account negative", with(t, `:7,`, `:-7,`), strictjson.ErrRange, "accountId"},
		{"account beyond 32 bits", with(t, `:7,`, `:4294967296,`), strictjson.ErrRange, "accountId"},
		{"account is a string", with(t, `:7,`, `:"7",`), strictjson.ErrType, "accountId"},
		{"account with a fraction", with(t, `:7,`, `:7.0,`), strictjson.ErrNotWhole, "accountId"},
		{"security empty", with(t, `AAPL`, ``), errValue, "security"},
		{"security in lower case", with(t, `AAPL`, `aapl`), errValue, "security"},
		{"security too long", with(t, `AAPL`, `ABCDEFGHIJKLMNOPQ`), errValue, "security"},
		{"security with a space", with(t, `AAPL`, `AAPL `), errValue, "security"},
		{"security with a slash", with(t, `AAPL`, `BRK/B`), errValue, "security"},
		{"security not ASCII", with(t, `AAPL`, `ÄÄPL`), errValue, "security"},
		{"side unknown", with(t, `"Buy"`, `"Hold"`), errValue, "side"},
		{"side empty", with(t, `"Buy"`, `""`), errValue, "side"},
		{"side with a long s", with(t, `"Buy"`, `"ſell"`), errValue, "side"},
		{"side with a long s that fits", with(t, `"Buy"`, `"ſel"`), errValue, "side"},
		{"side padded", with(t, `"Buy"`, `"Buy "`), errValue, "side"},
		{"side is a number", with(t, `"Buy"`, `0`), strictjson.ErrType, "side"},
		{"quantity 0", with(t, `:100`, `:0`), strictjson.ErrRange, "quantity"},
		{"quantity negative", with(t, `:100`, `:-100`), strictjson.ErrRange, "quantity"},
		{"quantity beyond 31 bits", with(t, `:100`, `:2147483648`), strictjson.ErrRange, "quantity"},
		{"quantity beyond 64 bits", with(t, `:100`, `:99999999999999999999`),
			strictjson.ErrRange, "quantity"},
		{"quantity with an exponent", with(t, `:100`, `:1e2`), strictjson.ErrNotWhole, "quantity"},
		{"quantity is a string", with(t, `:100`, `:"100"`), strictjson.ErrType, "quantity"},
		{"price 0", with(t, `101.25`, `0`), errValue, "price"},
		{"price negative", with(t, `101.25`, `-101.25`), errValue, "price"},
		{"price with a seventh decimal", with(t, `101.25`, `101.2500001`),
			strictjson.ErrPrecision, "price"},
		{"price out of range", with(t, `101.25`, `9223372036854.775808`), strictjson.ErrRange, "price"},
		{"price with a huge exponent", with(t, `101.25`, `1e400`), strictjson.ErrRange, "price"},
		{"price is no number", with(t, `101.25`, `"101,25"`), strictjson.ErrNumber, "price"},
		{"price is NaN", with(t, `101.25`, `NaN`), strictjson.ErrSyntax, "price"},
		{"price is null", with(t, `101.25`, `null`), strictjson.ErrType, "price"},
		{"timestamp is a number", with(t, `"2026-03-02T14:30:00.123Z"`, `1772461800123`),
			strictjson.ErrType, "timestamp"},
		{"timestamp without a zone", with(t, `.123Z`, `.123`), errValue, "timestamp"},
		{"timestamp with microseconds", with(t, `.123Z`, `.123456Z`), errValue, "timestamp"},
		{"timestamp on no day", with(t, `03-02`, `02-30`), errValue, "timestamp"},
		{"trade sequence of another", also(`"tradeSeq":43`), errOtherID, "tradeSeq"},
		{"trade sequence 0", also(`"tradeSeq":0`), errOtherID, "tradeSeq"},
		{"trade sequence negative", also(`"tradeSeq":-42`), errOtherID, "tradeSeq"},
		{"trade sequence is null", also(`"tradeSeq":null`), errOtherID, "tradeSeq"},
		{"trade sequence from outside", strings.Replace(also(`"tradeSeq":42`), "trd-42", "ext-42", 1),
			errOtherID, "tradeSeq"},
		{"trade sequence 0 from outside", strings.Replace(also(`"tradeSeq":0`), "trd-42", "ext-42", 1),
			errOtherID, "tradeSeq"},
		{"id from outside without a name", with(t, `trd-42`, `ext-`), errValue, "id"},
		{"id from outside too long", with(t, `trd-42`, "ext-"+strings.Repeat("x", 61)), errValue, "id"},
		{"id from outside with a slash", with(t, `trd-42`, `ext-a/b`), errValue, "id"},
		{"id from outside not ASCII", with(t, `trd-42`, `ext-ä`), errValue, "id"},
		{"id from outside in another case", with(t, `trd-42`, `EXT-42`), errValue, "id"},
		{"id of a row given up", with(t, `trd-42`, `void-0-trd-42`), errValue, "id"},
		{"trade sequence is a string", also(`"tradeSeq":"42"`), strictjson.ErrType, "tradeSeq"},
		{"order id empty", also(`"orderId":""`), errValue, "orderId"},
		{"order id is a number", also(`"orderId":17`), strictjson.ErrType, "orderId"},
		{"order id 0", also(`"orderId":"ord-0"`), errValue, "orderId"},
		{"order id of a contract", also(`"orderId":"SW-17"`), errValue, "orderId"},
		{"order id without a number", also(`"orderId":"ord-"`), errValue, "orderId"},
		{"order id with a letter", also(`"orderId":"ord-1a"`), errValue, "orderId"},
		{"order id beyond 48 bits", also(`"orderId":"ord-281474976710656"`), errValue, "orderId"},
		{"status unknown", also(`"status":"Pending"`), errValue, "status"},
		{"status in another case", also(`"status":"settled"`), errValue, "status"},
		{"status is null", also(`"status":null`), strictjson.ErrType, "status"},
		{"settlement date is a time", also(`"settlementDate":"2026-03-03T00:00:00Z"`), errValue,
			"settlementDate"},
		{"settlement date is no date", also(`"settlementDate":"2026-02-30"`), errValue, "settlementDate"},
		{"updated at is a date", also(`"updatedAt":"2026-03-03"`), errValue, "updatedAt"},
		{"updated at is null", also(`"updatedAt":null`), strictjson.ErrType, "updatedAt"},
		{"nested too deep", also(`"secret":` + strings.Repeat("[", 40)), errUnknown, ""},
	}
	t.Logf("%d messages", len(tests))
	var m message
	for _, tt := range tests {
		err := m.read([]byte(tt.body))
		if !errors.Is(err, ErrMalformed) || !errors.Is(err, tt.why) {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.why)
			continue
		}
		want := "projection: malformed trade message: "
		if tt.at != "" {
			want += tt.at + ": "
		}
		if want += tt.why.Error(); err.Error() != want {
			t.Errorf("%s: worded %q, want %q", tt.name, err, want)
		}
	}
	if err := m.read([]byte(plain)); err != nil { // the messages before have left no trace
		t.Error(err)
	}
}
