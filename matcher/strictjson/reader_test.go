package strictjson

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// skip reads a whole text by Skip.
func skip(text string) error {
	var r Reader
	r.Reset([]byte(text))
	r.Skip()
	return r.End()
}

// read reads a whole text and uses every key and string in it.
func read(text string) error {
	var r Reader
	r.Reset([]byte(text))
	readValue(&r)
	return r.End()
}

func readValue(r *Reader) {
	switch r.Peek() {
	case KindObject:
		for r.BeginObject(); ; {
			if _, ok := r.NextKey(); !ok {
				return
			}
			readValue(r)
		}
	case KindArray:
		for r.BeginArray(); r.NextItem(); {
			readValue(r)
		}
	case KindString:
		r.String()
	default:
		r.Skip()
	}
}

func nested(open, inner, closing string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
}

func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",\"k%d\":%d", i, i)
	}
	return "{" + b.String()[1:] + "}"
}

func TestReaderTakesWellFormedText(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `""`, `"a"`, ` 1 `, "\t\r\n[ ]\n",
		`{"a":{"a":{"a":1}}}`, `[{"a":1},{"a":2}]`, `{"a":[],"b":{}}`,
		`"\"\\\/"`, `"\u00e9"`, `"\ud83d\ude00"`, `"😀é"`, `"` + "\x7f" + `"`,
		`1e5`, `1E+5`, `1.5e-5`, `-1.25`, `123456789012345678901234567890`,
		`{"":1}`, `{"a":1,"A":2}`, `{"s":1,"ſ":2}`,
		nested("[", "", "]", MaxDepth), nested(`{"a":`, "1", "}", MaxDepth), keys(MaxKeys),
		`[` + keys(MaxKeys) + `,` + keys(MaxKeys) + `]`,
		`{"` + strings.Repeat("k", MaxKeyBytes) + `":1}`,
		"\"\ufffd\"", `"\ufffd"`,
	} {
		if err := skip(text); err != nil {
			t.Errorf("skip %q: %v", text, err)
		}
		if err := read(text); err != nil {
			t.Errorf("read %q: %v", text, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	tests := []struct {
		text string
		want error
	}{
		{"", ErrTruncated}, {" \n", ErrTruncated}, {"{", ErrTruncated}, {"[", ErrTruncated},
		{`{"a"`, ErrTruncated},
		{`{"a":`, ErrTruncated}, {`{"a":1`, ErrTruncated}, {`{"a":1,`, ErrTruncated},
		{`[1`, ErrTruncated}, {`[1,`, ErrTruncated},
		{`"`, ErrTruncated}, {`"abc`, ErrTruncated}, {`"\`, ErrTruncated}, {`"\u12`, ErrTruncated},
		{`"\n`, ErrTruncated},
		{`"\ud83d\ude`, ErrTruncated},
		{`1 2`, ErrTrailing}, {`{}x`, ErrTrailing}, {`[]]`, ErrTrailing}, {`nullx`, ErrTrailing},
		{`01`, ErrNumber},
		{`1.5.2`, ErrTrailing}, {`""""`, ErrTrailing}, {"{}\x00", ErrTrailing}, {"1 //x", ErrTrailing},
		{`0x10`, ErrTrailing},
		{`NaN`, ErrSyntax}, {`Infinity`, ErrSyntax}, {`-Infinity`, ErrNumber}, {`+1`, ErrSyntax},
		{`.5`, ErrSyntax},
		{`nul`, ErrSyntax}, {`True`, ErrSyntax}, {`tru`, ErrSyntax}, {`fals0`, ErrSyntax},
		{`'a'`, ErrSyntax}, {`a`, ErrSyntax},
		{`{a:1}`, ErrSyntax}, {`{'a':1}`, ErrSyntax}, {`{1:1}`, ErrSyntax}, {`{"a" 1}`, ErrSyntax},
		{`{"a"::1}`, ErrSyntax},
		{`{"a":1,}`, ErrSyntax}, {`{,"a":1}`, ErrSyntax}, {`{"a":1 "b":2}`, ErrSyntax},
		{`{"a":1;"b":2}`, ErrSyntax},
		{`[1,]`, ErrSyntax}, {`[,1]`, ErrSyntax}, {`[1 2]`, ErrSyntax}, {`[1,,2]`, ErrSyntax},
		{`[1}`, ErrSyntax}, {`{"a":1]`, ErrSyntax},
		{`{"a":}`, ErrSyntax}, {`]`, ErrSyntax}, {`}`, ErrSyntax}, {`,`, ErrSyntax}, {`:`, ErrSyntax},
		{"\x00", ErrSyntax},
		{"/*x*/1", ErrSyntax}, {"\v1", ErrSyntax}, {"\u00a01", ErrSyntax}, {`[1,/**/2]`, ErrSyntax},
		{`{null:1}`, ErrSyntax},
		{`-`, ErrNumber}, {`1.`, ErrNumber}, {`1.e5`, ErrNumber}, {`1e`, ErrNumber}, {`1e+`, ErrNumber},
		{`--1`, ErrNumber}, {`-a`, ErrNumber},
		{`[1.]`, ErrNumber}, {`[-]`, ErrNumber}, {`1E-`, ErrNumber},
		{`{"a":1,"a":1}`, ErrDuplicateKey}, {`{"a":1,"\u0061":1}`, ErrDuplicateKey},
		{`{"\u0061":1,"a":1}`, ErrDuplicateKey},
		{`{"\u0061":1,"\u0061":1}`, ErrDuplicateKey}, {`{"":1,"":2}`, ErrDuplicateKey},
		{`{"x":{"b":1,"b":2}}`, ErrDuplicateKey},
		{`[{"b":1,"c":0,"b":2}]`, ErrDuplicateKey}, {`{"a":{"a":{}},"b":1,"a":2}`, ErrDuplicateKey},
		{`{"clientOrderIdX":1,"clientOrderIdY":1,"clientOrderIdX":1}`, ErrDuplicateKey},
		{`{"a\u0062c":1,"q":{"\u0078":1},"abc":1}`, ErrDuplicateKey},
		{`{"q":{"\u0078":1},"\u0078":1,"x":1}`, ErrDuplicateKey},
		{"\"\x80\"", ErrUTF8}, {"\"\xff\"", ErrUTF8}, {"\"\xc0\x80\"", ErrUTF8},
		{"\"\xed\xa0\x80\"", ErrUTF8},
		{"\"\xf4\x90\x80\x80\"", ErrUTF8}, {"\"\xe2\x82\"", ErrUTF8}, {"1\xff", ErrUTF8},
		{"{\"\xc3\":1}", ErrUTF8},
		{"\xef\xbb\xbf{}", ErrBOM}, {"\xfe\xff\x00{", ErrUTF8}, {"\ufeff", ErrBOM},
		{" \ufeff{}", ErrSyntax},
		{`"\x41"`, ErrEscape}, {`"\u00g0"`, ErrEscape}, {`"\'"`, ErrEscape}, {`"\U0041"`, ErrEscape},
		{`"\0"`, ErrEscape}, {`"\u+123"`, ErrEscape},
		{`"\ud83d\uzzzz"`, ErrEscape}, {`"\u 041"`, ErrEscape},
		{`"\ud800"`, ErrSurrogate}, {`"\udc00"`, ErrSurrogate}, {`"\udc00\udc00"`, ErrSurrogate},
		{`"\ud800\u0041"`, ErrSurrogate}, {`"\ud800\ud800"`, ErrSurrogate},
		{`"\udc00\ud800"`, ErrSurrogate}, {`"\ud800x"`, ErrSurrogate}, {`"\ud800\n00000"`, ErrSurrogate},
		{`{"\udfff":1}`, ErrSurrogate},
		{"\"\n\"", ErrControl}, {"\"\x00\"", ErrControl}, {"\"a\x1f\"", ErrControl},
		{"{\"\t\":1}", ErrControl}, {"\"\\\"\x01\"", ErrControl},
		{nested("[", "", "]", MaxDepth+1), ErrDepth}, {nested(`{"a":`, "1", "}", MaxDepth+1), ErrDepth},
		{nested("[", "", "", 100000), ErrDepth}, {nested(`{"a":[`, "", "", 100000), ErrDepth},
		{keys(MaxKeys + 1), ErrTooManyKeys}, {`{"x":` + keys(MaxKeys) + `}`, ErrTooManyKeys},
		{`{"` + strings.Repeat("k", MaxKeyBytes+1) + `":1}`, ErrKeyTooLong},
	}
	for _, tt := range tests {
		show := tt.text[:min(len(tt.text), 60)]
		if err := skip(tt.text); !errors.Is(err, tt.want) {
			t.Errorf("skip %q: got %v, want %v", show, err, tt.want)
		}
		if err := read(tt.text); !errors.Is(err, tt.want) {
			t.Errorf("read %q: got %v, want %v", show, err, tt.want)
		}
	}
}

// Escaped control characters are valid JSON, but a Reader does not return a string that holds one.
func TestReaderRefusesEscapedControlsOnlyWhereUsed(t *testing.T) {
	for _, text := range []string{`"\n"`, `"a\u0000"`, `"\u001f"`, `"\b"`, `"\t"`, `"\r"`, `"\f"`,
		`["\u0007"]`} {
		if err := skip(text); err != nil {
			t.Errorf("skip %q: %v", text, err)
		}
		if err := read(text); !errors.Is(err, ErrControl) {
			t.Errorf("read %q: got %v, want %v", text, err, ErrControl)
		}
	}
	if err := skip(`{"a\n":1}`); !errors.Is(err, ErrControl) {
		t.Errorf("key: got %v, want %v", err, ErrControl)
	}
}

// TestReaderNamesTheKeyThatIsThereTwice unescaped, and forgets it.
func TestReaderNamesTheKeyThatIsThereTwice(t *testing.T) {
	var r Reader
	for text, want := range map[string]string{
		`{"a":1,"ab":2,"a":3}`: "a", `{"q":{"x":1,"\u0078":2},"q":1}`: "x", `{"":1,"":2}`: "",
		`{"ab":1,"a\u0062":1}`: "ab", `{"a":1,"b":1}`: "",
	} {
		r.Reset([]byte(text))
		r.Skip()
		twice := errors.Is(r.End(), ErrDuplicateKey)
		if got := string(r.Duplicate()); got != want || (r.Duplicate() != nil) != twice {
			t.Errorf("%s: %q, want %q (%v)", text, got, want, r.End())
		}
	}
}

func TestReaderUnescapes(t *testing.T) {
	tests := []struct{ text, want string }{
		{`"plain"`, "plain"}, {`""`, ""}, {`"\"\\\/"`, `"\/`}, {`"a\u0062c"`, "abc"},
		{`"\u00E9\u00e9"`, "éé"},
		{`"\ud83d\ude00!"`, "😀!"}, {`"x\u2028y"`, "x\u2028y"}, {`"\ufffd"`, "\ufffd"},
		{`"\uD7FF\uE000"`, "\ud7ff\ue000"}, {`"\u007f"`, "\x7f"},
	}
	var r Reader
	for _, tt := range tests {
		r.Reset([]byte(tt.text))
		if got := string(r.String()); got != tt.want || r.End() != nil {
			t.Errorf("%s: got %q, %v, want %q", tt.text, got, r.End(), tt.want)
		}
	}
	// Strings read earlier do not change while later ones are unescaped, or skipped.
	r.Reset([]byte(`["\u0041\u0041",{"\u0042":"\u0043\u0043\u0043"},"\u0044",["\u0045"],"\u0046"]`))
	var got []string
	var held [][]byte
	r.BeginArray()
	for i := 0; r.NextItem(); i++ {
		if i%2 == 1 {
			r.Skip()
			continue
		}
		held = append(held, r.String())
	}
	for _, s := range held {
		got = append(got, string(s))
	}
	if want := []string{"AA", "D", "F"}; !slices.Equal(got, want) || r.End() != nil {
		t.Errorf("got %q, %v, want %q", got, r.End(), want)
	}
}

// A handler must check End; these are the ways in which it could miss an error.
func TestReaderErrorStays(t *testing.T) {
	r := NewReader([]byte(`{"a":"x","b":1}`))
	r.BeginObject()
	if key, ok := r.NextKey(); !ok || string(key) != "a" {
		t.Fatalf("got %q, %v", key, ok)
	}
	if n := r.Int(); n != 0 || !errors.Is(r.Err(), ErrType) {
		t.Fatalf("got %d, %v, want %v", n, r.Err(), ErrType)
	}
	if r.Offset() != 5 {
		t.Errorf("stopped at %d, want 5", r.Offset())
	}
	if key, ok := r.NextKey(); ok || key != nil {
		t.Errorf("a key after an error: %q", key)
	}
	if r.NextItem() || r.Bool() || r.Null() || r.Int() != 0 || r.Decimal() != 0 || r.String() != nil ||
		r.Peek() != KindInvalid {
		t.Error("a value after an error")
	}
	r.BeginObject()
	r.BeginArray()
	r.Skip()
	mine := errors.New("mine")
	r.Fail(mine)
	if err := r.End(); !errors.Is(err, ErrType) {
		t.Errorf("got %v, want the first error, %v", err, ErrType)
	}
	r.Reset([]byte(`1`))
	r.Fail(mine)
	if r.Int() != 0 || r.End() != mine {
		t.Errorf("got %v, want %v", r.End(), mine)
	}
}

func TestReaderTypesAreExact(t *testing.T) {
	calls := []struct {
		name string
		call func(*Reader)
		good []string
	}{
		{"Int", func(r *Reader) { r.Int() }, []string{`1`}},
		{"Decimal", func(r *Reader) { r.Decimal() }, []string{`1`, `"1"`}},
		{"Bool", func(r *Reader) { r.Bool() }, []string{`true`, `false`}},
		{"String", func(r *Reader) { r.String() }, []string{`"1"`, `"a"`}},
		{"BeginObject", func(r *Reader) { r.BeginObject(); r.NextKey() }, []string{`{}`}},
		{"BeginArray", func(r *Reader) { r.BeginArray(); r.NextItem() }, []string{`[]`}},
	}
	for _, c := range calls {
		for _, text := range []string{`1`, `"1"`, `"a"`, `true`, `false`, `null`, `{}`, `[]`} {
			var r Reader
			r.Reset([]byte(text))
			c.call(&r)
			err := r.End()
			want := ErrType
			switch {
			case slices.Contains(c.good, text):
				want = nil
			case c.name == "Decimal" && text == `"a"`:
				want = ErrNumber
			}
			if !errors.Is(err, want) {
				t.Errorf("%s of %s: got %v, want %v", c.name, text, err, want)
			}
		}
	}
	r := NewReader([]byte(`1`))
	if r.Null() || r.Int() != 1 || r.End() != nil {
		t.Error("Null reads what is not null")
	}
	r.Reset([]byte(`null`))
	if !r.Null() || r.End() != nil {
		t.Error("Null does not read null")
	}
	kinds := map[string]Kind{"1": KindNumber, `""`: KindString, "{": KindObject, "[": KindArray,
		"t": KindBool,
		"f": KindBool, "n": KindNull, "-": KindNumber, "x": KindInvalid, "": KindInvalid}
	for text, want := range kinds {
		r.Reset([]byte(text))
		if got := r.Peek(); got != want {
			t.Errorf("Peek of %q: got %v, want %v", text, got, want)
		}
	}
	if got := fmt.Sprint(KindNull, KindBool, KindNumber, KindString, KindArray, KindObject,
		KindInvalid); got !=
		"null boolean number string array object invalid" {
		t.Errorf("kinds are named %q", got)
	}
}

func TestReaderNoticesMisuse(t *testing.T) {
	uses := []struct {
		name string
		text string
		use  func(*Reader)
	}{
		{"two values at the top", `1 2`, func(r *Reader) { r.Int(); r.Int() }},
		{"value without NextItem", `[1]`, func(r *Reader) { r.BeginArray(); r.Int() }},
		{"value without NextKey", `{"a":1}`, func(r *Reader) { r.BeginObject(); r.String() }},
		{"key without reading the value", `{"a":1}`,
			func(r *Reader) { r.BeginObject(); r.NextKey(); r.NextKey() }},
		{"item without reading the value", `[1]`, func(r *Reader) {
			r.BeginArray()
			r.NextItem()
			r.NextItem()
		}},
		{"items of an object", `{"a":1}`, func(r *Reader) { r.BeginObject(); r.NextItem() }},
		{"keys of an array", `["a"]`, func(r *Reader) { r.BeginArray(); r.NextKey() }},
		{"keys of nothing", `{}`, func(r *Reader) { r.NextKey() }},
		{"keys behind the end", `{}`, func(r *Reader) { r.BeginObject(); r.NextKey(); r.NextKey() }},
		{"end before the value", `1`, func(r *Reader) {}},
		{"end inside", `[]`, func(r *Reader) { r.BeginArray() }},
		{"skip behind the end", `1`, func(r *Reader) { r.Skip(); r.Skip() }},
	}
	for _, u := range uses {
		var r Reader
		r.Reset([]byte(u.text))
		u.use(&r)
		if err := r.End(); !errors.Is(err, ErrMisuse) {
			t.Errorf("%s: got %v, want %v", u.name, err, ErrMisuse)
		}
	}
}

func TestReaderRefusesHugeInput(t *testing.T) {
	var r Reader
	r.Reset(make([]byte, MaxBytes+1))
	if err := r.Err(); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v, want %v", err, ErrTooLong)
	}
}

// orderBody is the usual body of a new order.
const orderBody = `{"clientOrderId":"c-000000000123","accountId":22214,"security":"MSFT",` +
	`"side":"Buy",` +
	`"quantity":100,"limitPrice":415.25,"type":"LIMIT","timeInForce":"GTC"}`

type order struct {
	id, security, side, kind, tif []byte
	account, qty, px              int64
}

func readOrder(r *Reader, body []byte) (o order, err error) {
	r.Reset(body)
	for r.BeginObject(); ; {
		key, ok := r.NextKey()
		if !ok {
			return o, r.End()
		}
		switch string(key) {
		case "clientOrderId":
			o.id = r.String()
		case "accountId":
			o.account = r.Int()
		case "security":
			o.security = r.String()
		case "side":
			o.side = r.String()
		case "quantity":
			o.qty = r.Int()
		case "limitPrice":
			o.px = r.Decimal()
		case "type":
			o.kind = r.String()
		case "timeInForce":
			o.tif = r.String()
		default:
			r.Skip()
		}
	}
}

func TestReaderReadsAnOrder(t *testing.T) {
	var r Reader
	o, err := readOrder(&r, []byte(orderBody))
	got := fmt.Sprintf("%s %d %s %s %d %d %s %s", o.id, o.account, o.security, o.side, o.qty, o.px,
		o.kind, o.tif)
	if want := "c-000000000123 22214 MSFT Buy 100 415250000 LIMIT GTC"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if _, err := readOrder(&r, []byte(orderBody[:len(orderBody)-1]+`,"side":"Sell"}`)); !errors.Is(err,
		ErrDuplicateKey) {
		t.Errorf("got %v, want %v", err, ErrDuplicateKey)
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	bodies := [][]byte{[]byte(orderBody), []byte(
		`{"security":"\u004dSFT","x":[1,{"y":"\n"}],"quantity":5}`), []byte(`{"a":1,"a":2}`)}
	var kept Reader
	for _, body := range bodies {
		readOrder(&kept, body) // a kept Reader already has its scratch
	}
	for _, body := range bodies {
		if n := testing.AllocsPerRun(100, func() { readOrder(&kept, body) }); n != 0 {
			t.Errorf("%s: %v allocations, want 0", body, n)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		var r Reader
		readOrder(&r, bodies[0])
	}); n != 0 {
		t.Errorf("a Reader on the stack: %v allocations, want 0", n)
	}
}

func BenchmarkReader(b *testing.B) {
	body := []byte(orderBody)
	b.Run("op=order/reader=kept", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		var r Reader
		for b.Loop() {
			if _, err := readOrder(&r, body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=order/reader=stack", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var r Reader
			if _, err := readOrder(&r, body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
