package projection

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"posttrade/matcher"
	"posttrade/sidecars/store"
)

// oracle reads a message with encoding/json, regular expressions and unbounded arithmetic: slow and
// obviously right.
type oracle struct {
	members map[string]json.RawMessage
	ok      bool
}

var (
	idText     = regexp.MustCompile(`^trd-([1-9][0-9]{0,18})$`)
	outsideID  = regexp.MustCompile(`^ext-[A-Za-z0-9._-]{1,60}$`)
	orderText  = regexp.MustCompile(`^ord-([1-9][0-9]{0,9})$`)
	tickerText = regexp.MustCompile(`^[A-Z0-9.-]{1,16}$`)
	sideText   = regexp.MustCompile(`^(?:[Bb][Uu][Yy]|[Ss][Ee][Ll][Ll])$`)
	digitsText = regexp.MustCompile(`^[0-9]{1,20}$`)
	numberText = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE]([+-]?[0-9]+))?$`)
	dateText   = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)
	timeText   = regexp.MustCompile(
		`^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,` +
			`3})0*)?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])$`)
)

// read returns the trade of a message, or false if it is malformed.
func (o oracle) read(text []byte) (store.Trade, bool) {
	o.ok = len(text) <= MaxMessageBytes && utf8.Valid(text) &&
		json.Unmarshal(text, &o.members) == nil &&
		o.members != nil && !repeats(text)
	if !o.ok {
		return store.Trade{}, false
	}
	for name := range o.members {
		o.ok = o.ok &&
			strings.Contains(
				" id accountId security side quantity price timestamp tradeSeq orderId status settlementDate "+
					"updatedAt ", " "+name+" ")
	}
	var t store.Trade
	if id := idText.FindStringSubmatch(o.text("id")); id != nil {
		t.ID = id[0]
		t.Seq, _ = strconv.ParseUint(id[1], 10, 64)
	}
	outside := o.ok && outsideID.MatchString(o.text("id"))
	if outside {
		t.ID = o.text("id")
	}
	o.ok = o.ok && (outside || t.Seq > 0 && t.Seq < 1<<63)
	t.AccountID = uint32(o.whole("accountId", 1<<32-1))
	t.Security = o.match("security", tickerText)
	if strings.EqualFold(o.match("side", sideText), "sell") {
		t.Side = matcher.Sell
	}
	t.Quantity = o.whole("quantity", 1<<31-1)
	t.Price = o.price()
	t.ExecutedAt = o.time("timestamp")
	switch null := string(o.members["tradeSeq"]) == "null"; {
	case outside && o.has("tradeSeq"):
		o.ok = o.ok && null
	case o.has("tradeSeq"):
		o.ok = o.ok && uint64(o.whole("tradeSeq", 1<<63-1)) == t.Seq
	}
	if o.has("orderId") && string(o.members["orderId"]) != "null" {
		t.OrderID = o.match("orderId", orderText)
		n, err := strconv.ParseUint(strings.TrimPrefix(t.OrderID, "ord-"), 10, 32)
		o.ok = o.ok && err == nil && n > 0
	}
	if o.has("status") {
		o.match("status", regexp.MustCompile(`^(?:Processing|Settled)$`))
	}
	if o.has("settlementDate") {
		_, err := time.Parse(time.DateOnly, o.match("settlementDate", dateText))
		o.ok = o.ok && err == nil
	}
	if o.has("updatedAt") {
		o.time("updatedAt")
	}
	return t, o.ok
}

func (o *oracle) has(name string) bool { _, there := o.members[name]; return there }

// text is a member that must be a string. encoding/json replaces half a surrogate by a character
// that no grammar of a message accepts.
func (o *oracle) text(name string) (s string) {
	raw := o.members[name]
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		o.ok = false
	}
	return s
}

func (o *oracle) match(name string, grammar *regexp.Regexp) string {
	s := o.text(name)
	o.ok = o.ok && grammar.MatchString(s)
	return s
}

func (o *oracle) whole(name string, most int64) int64 {
	raw := string(o.members[name])
	n, err := strconv.ParseInt(raw, 10, 64)
	o.ok = o.ok && digitsText.MatchString(raw) && err == nil && 1 <= n && n <= most
	return n
}

func (o *oracle) price() int64 {
	text := string(o.members["price"])
	if strings.HasPrefix(text, `"`) {
		text = o.text("price")
	}
	number := numberText.FindStringSubmatch(text)
	if number == nil {
		o.ok = false
		return 0
	}
	if e, err := strconv.Atoi(number[1]); number[1] != "" && (err != nil || e > 99 || e < -99) {
		o.ok = false
		return 0
	}
	v, _ := new(big.Rat).SetString(text)
	v.Mul(v, big.NewRat(1_000_000, 1))
	o.ok = o.ok && v.IsInt() && v.Num().IsInt64() && v.Sign() > 0
	if !o.ok {
		return 0
	}
	return v.Num().Int64()
}

func (o *oracle) time(name string) int64 {
	part := timeText.FindStringSubmatch(o.text(name))
	if part == nil {
		o.ok = false
		return 0
	}
	at, err := time.Parse("2006-01-02T15:04:05.000Z07:00", part[1]+"."+(part[2] + "000")[:3]+part[3])
	last := time.Date(2149, time.June, 6, 23, 59, 59, 999e6, time.UTC)
	o.ok = o.ok && err == nil && at.UnixMilli() >= 0 && !at.After(last)
	return at.UnixMilli()
}

// repeats reports whether the outermost object of valid JSON names a member twice.
func repeats(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	met, depth, key := map[string]bool{}, 0, false
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			key = depth == 1
			continue
		case json.Delim('}'), json.Delim(']'):
			depth--
			key = depth == 1
			continue
		}
		if depth != 1 {
			continue
		}
		if key {
			name := token.(string)
			if met[name] {
				return true
			}
			met[name] = true
		}
		key = !key
	}
}

// FuzzLegacyTrade compares the reader of messages with the oracle, both ways, and checks that no
// reason contains text of the message.
func FuzzLegacyTrade(f *testing.F) {
	for _, seed := range []string{
		plain, strings.Replace(plain, "trd-42", "ext-a.B_c-9", 1),
		strings.Replace(plain, "trd-42", `ext-42","tradeSeq":null,"status":"Settled`, 1),
		strings.Replace(plain, "trd-42", `ext-42","tradeSeq":0,"status":"Settled`, 1),
		`{}`, `{"id":"trd-1"}`, `[]`, `null`, `{"id":"trd-1","id":"trd-1"}`,
		plain[:len(plain)-1] +
			`,"tradeSeq":42,"orderId":"ord-17","status":"Settled","settlementDate":"2026-03-03",` +
			`"updatedAt":"2026-03-03T05:00:00Z"}`,
		plain[:len(plain)-1] + `,"orderId":null,"status":"\ud800"}`,
		plain[:len(plain)-1] + `,"pric\u0065":"1"}`,
		strings.Replace(plain, "101.25", `"9223372036854.775807000"`, 1),
		strings.Replace(plain, "101.25", `1e-6`, 1), strings.Replace(plain, "101.25", `1e99`, 1),
		strings.Replace(plain, ".123Z", "-23:59", 1), strings.Replace(plain, ".123Z", ".1234+00:00", 1),
		strings.Replace(plain, "Buy", "ſell", 1),
		strings.Replace(plain, "03-02", "02-29", 1),
		strings.Replace(plain, "trd-42", "trd-9223372036854775808", 1),
		strings.Replace(plain, "AAPL", "\xff", 1),
	} {
		f.Add([]byte(seed))
	}
	var m message
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		err := m.read(text)
		if !bytes.Equal(before, text) {
			t.Fatal("the message was written to")
		}
		want, ok := oracle{}.read(text)
		if err == nil != ok || ok && m.trade != want {
			t.Fatalf("%q:\n got %+v, %v\nwant %+v, %v", text, m.trade, err, want, ok)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, ErrMalformed) {
			t.Fatalf("%q: %v", text, err)
		}
		if words := err.Error(); len(words) > 120 || !worded(words) {
			t.Fatalf("%q: the reason is %q", text, words)
		}
	})
}

// worded reports whether a reason consists of the package's own words only.
func worded(reason string) bool {
	rest, ok := strings.CutPrefix(reason, "projection: "+ErrMalformed.Error()+": ")
	for _, name := range fieldNames {
		if cut, found := strings.CutPrefix(rest, name+": "); found {
			rest = cut
		}
	}
	for _, c := range rest {
		ok = ok && (c >= 'a' && c <= 'z' || strings.ContainsRune("JSONUTFID-678 ", c))
	}
	return ok
}
