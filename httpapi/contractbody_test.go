package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"posttrade/matcher"
)

// TestEveryDayComesBack renders and reads every day that a record can carry.
func TestEveryDayComesBack(t *testing.T) {
	for day := range 1 << 16 {
		want := time.Unix(int64(day)*86_400, 0).UTC().Format(`"2006-01-02"`)
		text := appendDay(nil, uint16(day))
		if string(text) != want {
			t.Fatalf("day %d: %s, want %s", day, text, want)
		}
		if back, ok := parseDay(text[1 : len(text)-1]); !ok || int(back) != day {
			t.Fatalf("%s: %d %v, want %d", text, back, ok, day)
		}
	}
}

// TestDaysThatAreNone tries every day of every month of a range of years, also days that the months
// do not have, and texts that are no dates.
func TestDaysThatAreNone(t *testing.T) {
	for year := 1899; year <= 2401; year++ {
		for month := range 14 {
			for date := range 33 {
				text := fmt.Sprintf("%04d-%02d-%02d", year, month, date)
				at, err := time.Parse(time.DateOnly, text)
				want := err == nil && at.Unix() >= 0 && at.Unix() < 1<<16*86_400
				if _, ok := parseDay([]byte(text)); ok != want {
					t.Fatalf("%s: %v, want %v", text, ok, want)
				}
			}
		}
	}
	for _, text := range []string{"", "2026", "2026-03-4", "2026-3-04", "26-03-04", "02026-03-04",
		"2026-03-041", " 2026-03-04", "2026-03-04 ", "2026/03/04",
		"2026-03-0x", "2026-03-+4", "+026-03-04", "-026-03-04", "2026-03-04T00:00:00Z", "20260304",
		"2026-063", "2026-03–04", "９026-03-04", "0000-00-00", "9999-12-31"} {
		if day, ok := parseDay([]byte(text)); ok {
			t.Errorf("%q is day %d", text, day)
		}
	}
}

// TestBookingBodiesThatCannotBeRead lists a booking's 400s. Each body is tried at both endpoints
// where that is useful.
func TestBookingBodiesThatCannotBeRead(t *testing.T) {
	with := func(old, new string) string {
		if !strings.Contains(goodSwaption, old) {
			t.Fatalf("%q is not in the body", old)
		}
		return strings.Replace(goodSwaption, old, new, 1)
	}
	long := strings.Repeat("x", 65)
	tests := []struct{ name, body, detail string }{
		{"nothing", ``, ""}, {"an array", `[` + goodSwaption + `]`, ""}, {"null", `null`, ""},
		{"an empty object", `{}`, "field accountId: required"},
		{"two objects", goodSwaption + goodSwaption, ""}, {"half", goodSwaption[:50], ""},
		{"a member twice", with(`{`, `{"accountId":1,`), ""},
		{"an unknown member", with(`{`, `{"security":"AAA",`), `"security": unknown member`},
		{"a member in another case", with(`notional`, `Notional`), `"Notional": unknown member`},
		{"account -1", with(`Id":1`, `Id":-1`), "field accountId"},
		{"account 2^32", with(`Id":1`, `Id":4294967296`), "field accountId"},
		{"account as text", with(`Id":1`, `Id":"1"`), "field accountId"},
		{"account of null", with(`Id":1`, `Id":null`), "field accountId"},
		{"Buy for a direction", with(`"Receive"`, `"Buy"`), "field payReceive"},
		{"PAY_FIXED", with(`"Receive"`, `"PAY_FIXED"`), "field payReceive"},
		{"a direction of null", with(`"Receive"`, `null`), "field payReceive"},
		{"no direction", with(`"Receive"`, `""`), "field payReceive"},
		{"notional 0", with(`250000`, `0`), "field notional"},
		{"notional -1", with(`250000`, `-1`), "field notional"},
		{"notional 2^31", with(`250000`, `2147483648`), "field notional"},
		{"notional 1.5", with(`250000`, `1.5`), "field notional"},
		{"notional 1e6", with(`250000`, `1e6`), "field notional"},
		{"notional as text", with(`250000`, `"250000"`), "field notional"},
		{"notional of null", with(`250000`, `null`), "field notional"},
		{"notional 2^64+1", with(`250000`, `18446744073709551617`), "field notional"},
		{"rate 0", with(`-0.001`, `0`), "field fixedRate"},
		{"rate -0.000000", with(`-0.001`, `-0.000000`), "field fixedRate"},
		{"rate 0 as text", with(`-0.001`, `"0.0"`), "field fixedRate"},
		{"7 decimals", with(`-0.001`, `0.0000001`), "field fixedRate"},
		{"7 decimals behind a rate", with(`-0.001`, `4.2500001`), "field fixedRate"},
		{"too high a rate", with(`-0.001`, `9223372036854.775808`), "field fixedRate"},
		{"too low a rate", with(`-0.001`, `-9223372036854.775809`), "field fixedRate"},
		{"rate NaN", with(`-0.001`, `NaN`), ""},
		{"rate of null", with(`-0.001`, `null`), "field fixedRate"},
		{"rate with %", with(`-0.001`, `"1%"`), "field fixedRate"},
		{"effective of null", with(`"2026-09-04"`, `null`), "field effectiveDate"},
		{"effective as a number", with(`"2026-09-04"`, `20700`), "field effectiveDate"},
		{"effective before 1970", with(`"2026-09-04"`, `"1969-12-31"`), "field effectiveDate"},
		{"maturity after 2149", with(`"2036-09-04"`, `"2149-06-07"`), "field maturityDate"},
		{"effective on 30 February", with(`"2026-09-04"`, `"2026-02-30"`), "field effectiveDate"},
		{"maturity without zeros", with(`"2036-09-04"`, `"2036-9-4"`), "field maturityDate"},
		{"maturity on the effective date", with(`"2036-09-04"`, `"2026-09-04"`),
			"field maturityDate: the maturity must"},
		{"maturity before", with(`"2036-09-04"`, `"2026-09-03"`),
			"field maturityDate: the maturity must"},
		{"unknown conventions", with(`ESTR`, `EONIA`), "field conventions"},
		{"conventions in another case", with(`EUR-ESTR-1Y-ACT360`, `eur-estr-1y-act360`),
			"field conventions"},
		{"conventions with a space", with(`ACT360"`, `ACT360 "`), "field conventions"},
		{"no conventions", with(`EUR-ESTR-1Y-ACT360`, ``), "field conventions"},
		{"conventions by index", with(`"EUR-ESTR-1Y-ACT360"`, `2`), "field conventions"},
		{"conventions of null", with(`"EUR-ESTR-1Y-ACT360"`, `null`), "field conventions"},
		{"a client id of null", with(`{`, `{"clientOrderId":null,`), "field clientOrderId"},
		{"a client id of 65 bytes", with(`{`, `{"clientOrderId":"`+long+`",`), "field clientOrderId"},
		{"an empty client id", with(`{`, `{"clientOrderId":"",`), "field clientOrderId"},
		{"nesting", with(`250000`, strings.Repeat("[", 17)), ""},
		{"invalid UTF-8", with(`ESTR`, "ES\xff"), "UTF-8"},
		{"expiry after effective", with(`"2026-09-02"`, `"2026-09-05"`),
			"field expiryDate: the expiry must"},
		{"expiry of null", with(`"2026-09-02"`, `null`), "field expiryDate"},
		{"expiry before 1970", with(`"2026-09-02"`, `"1969-12-31"`), "field expiryDate"},
		{"style in another case", with(`Bermudan`, `BERMUDAN`), "field exerciseStyle"},
		{"an unknown style", with(`Bermudan`, `Asian`), "field exerciseStyle"},
		{"a style of null", with(`"Bermudan"`, `null`), "field exerciseStyle"},
	}
	for _, name := range termNames { // each member left out
		_, rest, _ := strings.Cut(goodSwaption, `"`+name+`":`)
		value, _, more := strings.Cut(rest, ",")
		if !more {
			value = strings.TrimSuffix(rest, "}")
		}
		body := strings.Replace(goodSwaption, `"`+name+`":`+value, "", 1)
		body = strings.NewReplacer(",,", ",", "{,", "{", ",}", "}").Replace(body)
		if !json.Valid([]byte(body)) {
			t.Fatalf("%s", body)
		}
		tests = append(tests, struct{ name, body, detail string }{"no " + name, body,
			"field " + name + ": required"})
	}
	r := newRig(t)
	for _, tt := range tests {
		a := r.post("/swaptions", tt.body, "")
		if a.status != 400 || a.field(t, "code") != string(CodeMalformedBody) ||
			!strings.Contains(a.field(t, "detail").(string), tt.detail) {
			t.Errorf("swaption, %s: %d %s", tt.name, a.status, a.body)
		}
		if strings.Contains(tt.name, "expiry") || strings.Contains(tt.name, "style") ||
			strings.Contains(tt.name, "exercise") {
			continue
		}
		body := strings.Replace(tt.body, `,"expiryDate":"2026-09-02","exerciseStyle":"Bermudan"`, "", 1)
		a = r.post("/swaps", body, "")
		if a.status != 400 || a.field(t, "code") != string(CodeMalformedBody) ||
			!strings.Contains(a.field(t, "detail").(string), tt.detail) {
			t.Errorf("swap, %s: %d %s\n%s", tt.name, a.status, a.body, body)
		}
	}
	for _, option := range []string{`"expiryDate":"2026-03-04"`, `"exerciseStyle":"European"`,
		`"expiryDate":null`} {
		a := r.post("/swaps", `{`+option+`,`+goodSwap[1:], "").want(t, 400, CodeMalformedBody)
		if name, _, _ := strings.Cut(option, ":"); a.field(t, "detail") != name+": unknown member" {
			t.Errorf("%s: %s", option, a.body)
		}
	}
	if r.sequence() != 0 {
		t.Errorf("sequence %d after bodies that cannot be read", r.sequence())
	}
}

func TestBookingBodiesAtTheirLimits(t *testing.T) {
	for body, want := range map[string]matcher.ContractTerms{
		`{"accountId":4294967295,"payReceive":"rEcEiVe","notional":2147483647,` +
			`"fixedRate":"9223372036854.775807","effectiveDate":"1970-01-01",` +
			`"maturityDate":"2149-06-06","conventions":"JPY-TONA-1Y-ACT365F","expiryDate":"1970-01-01",` +
			`"exerciseStyle":"American"}`: {
			AccountID: 1<<32 - 1, Side: matcher.Buy, Notional: math.MaxInt32, FixedRate: math.MaxInt64,
			Maturity:   math.MaxUint16,
			Convention: 4, Swaption: true, Style: matcher.American},
		` { "exerciseStyle" : "European" , "expiryDate":"2149-06-05",` +
			`"conventions":"USD-SOFR-1Y-ACT360",` +
			`"maturityDate":"2149-06-06",` +
			`"effectiveDate":"2149-06-05","fixedRate":-9223372036854.775808,"notional":1,` +
			`"payReceive":"PAY","accountId":0}`: {
			Side: matcher.Sell, Notional: 1, FixedRate: math.MinInt64, Effective: math.MaxUint16 - 1,
			Maturity: math.MaxUint16,
			Swaption: true, Expiry: math.MaxUint16 - 1},
	} {
		var d decoder
		var got contractRequest
		d.reset([]byte(body))
		if d.contract(&got, true); d.end() != nil || got.terms != want {
			t.Errorf("%s\n%v %+v, want\n%+v", body, d.end(), got.terms, want)
		}
	}
}

// FuzzContractBody compares the decoder with encoding/json: encoding/json accepts every body that
// the decoder accepts, with the same values, and the record carries them.
func FuzzContractBody(f *testing.F) {
	for _, body := range []string{goodSwap, goodSwaption, keyed(goodSwaption, "k"), `{}`, `[]`, `null`,
		`{"notional":1e6}`, `{"expiryDate":null}`,
		strings.Replace(goodSwap, "0.0425", `"-4.25e-2"`, 1), strings.Replace(goodSwaption, "Bermudan",
			`\u0041merican`, 1)} {
		f.Add([]byte(body), true)
		f.Add([]byte(body), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, swaption bool) {
		var d decoder
		d.reset(body)
		d.extract()
		d.reset(body)
		d.mark()
		var c contractRequest
		d.reset(body)
		d.contract(&c, swaption)
		if err := d.end(); err != nil {
			if p := d.bodyProblem(err, -1); p.status != 400 || !json.Valid(append(p.append(nil), '}')) {
				t.Fatalf("%+v", p)
			}
			return
		}
		var want struct {
			ClientOrderID string      `json:"clientOrderId"`
			AccountID     uint32      `json:"accountId"`
			PayReceive    string      `json:"payReceive"`
			Notional      int32       `json:"notional"`
			FixedRate     json.Number `json:"fixedRate"`
			EffectiveDate string      `json:"effectiveDate"`
			MaturityDate  string      `json:"maturityDate"`
			Conventions   string      `json:"conventions"`
			ExpiryDate    string      `json:"expiryDate"`
			ExerciseStyle string      `json:"exerciseStyle"`
		}
		strict := json.NewDecoder(bytes.NewReader(body))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&want); err != nil {
			t.Fatalf("accepted, and encoding/json says %v: %q", err, body)
		}
		terms := &c.terms
		millionths, ok := new(big.Rat).SetString(string(want.FixedRate))
		if !ok || millionths.Mul(millionths,
			big.NewRat(matcher.PriceScale, 1)).Cmp(new(big.Rat).SetInt64(terms.FixedRate)) != 0 {
			t.Fatalf("rate %d, encoding/json reads %s: %q", terms.FixedRate, want.FixedRate, body)
		}
		day := func(d uint16) string { return strings.Trim(string(appendDay(nil, d)), `"`) }
		convention, _ := matcher.ConventionAt(terms.Convention)
		if want.ClientOrderID != string(c.clientID) || want.AccountID != terms.AccountID ||
			want.Notional != terms.Notional ||
			strings.EqualFold(want.PayReceive, "pay") != (terms.Side == matcher.Sell) ||
			want.EffectiveDate != day(terms.Effective) ||
			want.MaturityDate != day(terms.Maturity) || want.Conventions != convention.Name ||
			terms.Swaption != swaption {
			t.Fatalf("%+v, encoding/json reads %+v: %q", terms, want, body)
		}
		if swaption && (want.ExpiryDate != day(terms.Expiry) ||
			want.ExerciseStyle != terms.Style.String()) || !terms.Representable() {
			t.Fatalf("%+v, encoding/json reads %+v: %q", terms, want, body)
		}
		cmd := c.command(testStart)
		if back, ok := cmd.ContractTerms(); !ok || back != *terms || cmd.Verify() != nil {
			t.Fatalf("the record carries %+v, the body %+v: %v", back, terms, cmd.Verify())
		}
	})
}
