package control

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"posttrade/ring/must"
)

// canonical is an independent RFC 8785 writer for the JSON objects of this package. It sorts the
// members of maps, and escapes by the table of the RFC.
func canonical(v any) string {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys) // ASCII: UTF-16 order is byte order
		parts := make([]string, len(keys))
		for i, k := range keys {
			parts[i] = canonical(k) + ":" + canonical(v[k])
		}
		return "{" + strings.Join(parts, ",") + "}"
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = canonical(v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range v {
			if short, ok := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\t': `\t`, '\n': `\n`,
				'\f': `\f`, '\r': `\r`}[r]; ok {
				b.WriteString(short)
			} else if r < ' ' {
				fmt.Fprintf(&b, `\u%04x`, r)
			} else {
				b.WriteRune(r)
			}
		}
		b.WriteByte('"')
		return b.String()
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	panic(fmt.Sprintf("canonical: %T", v))
}

// members reads a JSON object into maps, with numbers as they are written.
func members(t *testing.T, text []byte) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

var names = []string{"Plain", "Ünïcødé ☃ 😀", `quote " and \ slash /`, "", "<a href='x'>&</a>",
	"line\u2028separator", "D'Arcy  & Sons"}

// randomSnapshot returns a snapshot of n records in order.
func randomSnapshot(rng *rand.Rand, s Source, n int) Snapshot {
	snap := Snapshot{Source: s, Epoch: 1 + rng.Uint64N(MaxEpoch),
		Watermark: uint64(n) + rng.Uint64N(1000)}
	for i := range n {
		r := Record{Name: names[rng.IntN(len(names))], Enabled: rng.IntN(2) == 0,
			Version: 1 + rng.Uint64N(snap.Watermark)}
		if s == Account {
			r.ID = uint32(i*7 + 1)
		} else {
			r.Ticker, r.Halted = fmt.Sprintf("T%05d.X-%d", i, rng.IntN(9)), rng.IntN(2) == 0
		}
		if rng.IntN(3) == 0 && r.Version > 1 {
			r.EnabledVersion = 1 + rng.Uint64N(r.Version-1)
		}
		if s == Security && rng.IntN(3) == 0 && r.Version > 1 {
			r.HaltedVersion = 1 + rng.Uint64N(r.Version-1)
		}
		snap.Records = append(snap.Records, r)
	}
	return snap
}

func TestChecksumIsThatOfAnIndependentCanonicaliser(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 400 {
		snap := randomSnapshot(rng, Sources()[round%2], rng.IntN(20))
		text := snap.AppendJSON(nil)
		m := members(t, text)
		if got := m["count"].(json.Number).String(); got != strconv.Itoa(len(snap.Records)) {
			t.Fatalf("count %s of %d records", got, len(snap.Records))
		}
		given := m["checksum"].(string)
		delete(m, "count")
		delete(m, "checksum")
		sum := sha256.Sum256([]byte(canonical(m)))
		if want := "sha256:" + hex.EncodeToString(sum[:]); given != want {
			t.Fatalf("round %d: checksum %s, want %s of %s", round, given, want, canonical(m))
		}
		got, err := ParseSnapshot(snap.Source, text)
		if err != nil {
			t.Fatalf("round %d: %v in %s", round, err, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(snap) {
			t.Fatalf("round %d: read %v, want %v", round, got, snap)
		}
	}
}

func TestDeltaIsReadAsWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 0))
	for round := range 400 {
		snap := randomSnapshot(rng, Sources()[round%2], 1)
		want := Delta{Source: snap.Source, Epoch: snap.Epoch,
			Version: snap.Records[0].Version, Record: snap.Records[0]}
		text := want.AppendJSON(nil)
		if got := canonical(members(t, text)); got != string(text) {
			t.Fatalf("%s is not canonical: %s", text, got)
		}
		got, err := ParseDelta(snap.Source, text)
		if err != nil || got != want {
			t.Fatalf("read %v, %v; want %v", got, err, want)
		}
		if _, err := ParseDelta(Sources()[1-round%2], text); !errors.Is(err, ErrMalformed) {
			t.Fatalf("a delta of %s read as one of the other source: %v", snap.Source, err)
		}
	}
}

const (
	goodAccount  = `{"displayName":"A","enabled":true,"id":7,"version":3}`
	goodSecurity = `{"companyName":"A","enabled":true,"halted":false,"ticker":"AAPL","version":3}`
)

func TestMalformedDeltasAreRefused(t *testing.T) {
	good := `{"epoch":5,"record":` + goodAccount + `,"schemaVersion":1,"source":"account","version":3}`
	must.Get(ParseDelta(Account, []byte(good)))(t)
	goodSec := `{"epoch":5,"record":` + goodSecurity +
		`,"schemaVersion":1,"source":"security","version":3}`
	must.Get(ParseDelta(Security, []byte(goodSec)))(t)
	replaced := func(text, old, with string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return strings.Replace(text, old, with, 1)
	}
	for _, bad := range []struct {
		source Source
		text   string
	}{
		{Account, ""}, {Account, "null"}, {Account, "[]"}, {Account, good + " x"},
		{Account, good[:len(good)-1]},
		{Account, replaced(good, `"epoch":5,`, ``)}, {Account, replaced(good, `"epoch":5`, `"epoch":0`)},
		{Account, replaced(good, `"epoch":5`, `"epoch":"5"`)},
		{Account, replaced(good, `"epoch":5`, `"epoch":9007199254740992`)},
		{Account, replaced(good, `"epoch":5`, `"epoch":5,"epoch":5`)},
		{Account, replaced(good, `"epoch":5`, `"epoch":5,"more":1`)},
		{Account, replaced(good, `"schemaVersion":1`, `"schemaVersion":2`)},
		{Account, replaced(good, `,"schemaVersion":1`, ``)},
		{Account, replaced(good, `"source":"account"`, `"source":"security"`)},
		{Account, replaced(good, `,"version":3}`, `,"version":4}`)},
		{Account, replaced(good, `"version":3}`, `"version":0}`)},
		{Account, replaced(good, `"id":7`, `"id":0`)},
		{Account, replaced(good, `"id":7`, `"id":4294967296`)},
		{Account, replaced(good, `"id":7`, `"id":-7`)},
		{Account, replaced(good, `"id":7`, `"ticker":"A"`)},
		{Account, replaced(good, `"enabled":true`, `"enabled":1`)},
		{Account, replaced(good, `"enabled":true`, `"enabled":null`)},
		{Account, replaced(good, `"displayName":"A"`,
			`"displayName":"`+strings.Repeat("n", MaxName+1)+`"`)},
		{Account, replaced(good, `"displayName":"A",`, ``)},
		{Account, replaced(good, `"displayName":"A"`, `"displayName":"\ud800"`)},
		{Account, replaced(good, `"enabled":true`, `"enabled":true,"enabledVersion":3`)},
		{Account, replaced(good, `"enabled":true`, `"enabled":true,"enabledVersion":0`)},
		{Account, replaced(good, `"enabled":true`, `"enabled":true,"haltedVersion":1`)},
		{Security, replaced(goodSec, `"halted":false`, `"halted":false,"haltedVersion":4`)},
		{Security, replaced(goodSec, `"AAPL"`, `"aapl"`)}, {Security, replaced(goodSec, `"AAPL"`, `""`)},
		{Security, replaced(goodSec, `"AAPL"`, `"A1234567890123456"`)},
		{Security, replaced(goodSec, `"halted":false,`, ``)},
	} {
		if d, err := ParseDelta(bad.source, []byte(bad.text)); !errors.Is(err, ErrMalformed) ||
			d != (Delta{}) {
			t.Errorf("%s: read %v, %v", bad.text, d, err)
		}
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	snap := Snapshot{Source: Account, Epoch: 5, Watermark: 9, Records: []Record{
		{ID: 1, Name: "A", Enabled: true, Version: 4}, {ID: 2, Name: "B", Version: 9},
	}}
	text := string(snap.AppendJSON(nil))
	swapped := snap
	swapped.Records = []Record{snap.Records[1], snap.Records[0]}
	twice := snap
	twice.Records = []Record{snap.Records[0], snap.Records[0]}
	above := snap
	above.Watermark = 8
	for _, bad := range []struct {
		what, text string
		want       error
	}{
		{"a changed flag", strings.Replace(text, `"enabled":false`, `"enabled":true`, 1), ErrChecksum},
		{"another watermark", strings.Replace(text, `"watermark":9`, `"watermark":10`, 1), ErrChecksum},
		{"another epoch", strings.Replace(text, `"sourceEpoch":5`, `"sourceEpoch":6`, 1), ErrChecksum},
		{"a checksum of another kind", strings.Replace(text, `"sha256:`, `"sha512:`, 1), ErrChecksum},
		{"a checksum in capitals", strings.Replace(text, `"sha256:`, `"SHA256:`, 1), ErrChecksum},
		{"a count too high", strings.Replace(text, `"count":2`, `"count":3`, 1), ErrCount},
		{"a record lost", strings.Replace(text,
			`,{"displayName":"B","enabled":false,"id":2,"version":9}`, ``, 1), ErrCount},
		{"records out of order", string(swapped.AppendJSON(nil)), ErrMalformed},
		{"a record twice", string(twice.AppendJSON(nil)), ErrMalformed},
		{"a version above the watermark", string(above.AppendJSON(nil)), ErrMalformed},
		{"another schema", strings.Replace(text, `"schemaVersion":1`, `"schemaVersion":2`, 1),
			ErrMalformed},
		{"a lost end", text[:len(text)-1], ErrMalformed},
		{"a member missing", strings.Replace(text, `"count":2,`, ``, 1), ErrMalformed},
		{"nothing", "", ErrMalformed},
	} {
		if bad.text == text {
			t.Fatalf("%s: nothing was changed", bad.what)
		}
		if _, err := ParseSnapshot(Account, []byte(bad.text)); !errors.Is(err, bad.want) {
			t.Errorf("%s: %v, want %v", bad.what, err, bad.want)
		}
	}
	if _, err := ParseSnapshot(Security, []byte(text)); !errors.Is(err, ErrMalformed) {
		t.Errorf("accounts read as securities: %v", err)
	}
}

// FuzzDelta: what is read is written again as a text that reads the same.
func FuzzDelta(f *testing.F) {
	f.Add([]byte(`{"epoch":5,"record":`+goodAccount+
		`,"schemaVersion":1,"source":"account","version":3}`), true)
	f.Add([]byte(`{"epoch":5,"record":`+goodSecurity+
		`,"schemaVersion":1,"source":"security","version":3}`), false)
	f.Fuzz(func(t *testing.T, text []byte, account bool) {
		s := Security
		if account {
			s = Account
		}
		d, err := ParseDelta(s, text)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := ParseDelta(s, d.AppendJSON(nil))
		if err != nil || again != d {
			t.Fatalf("%v is written as %s, and read as %v, %v", d, d.AppendJSON(nil), again, err)
		}
		if got := canonical(members(t, text)); got != string(d.AppendJSON(nil)) {
			t.Fatalf("%s is %s in canonical form, written was %s", text, got, d.AppendJSON(nil))
		}
	})
}

// FuzzSnapshot: what is read is written again as a text that reads the same.
func FuzzSnapshot(f *testing.F) {
	rng := rand.New(rand.NewPCG(13, 0))
	for i := range 4 {
		s := randomSnapshot(rng, Sources()[i%2], i)
		f.Add(s.AppendJSON(nil), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, account bool) {
		s := Security
		if account {
			s = Account
		}
		snap, err := ParseSnapshot(s, text)
		if err != nil {
			return
		}
		again, err := ParseSnapshot(s, snap.AppendJSON(nil))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(snap) {
			t.Fatalf("%v reads as %v, %v", snap, again, err)
		}
	})
}
