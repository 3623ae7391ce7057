package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"posttrade/ring/must"
)

// deliberate are the refusals of well-formed JSON that this package adds.
var deliberate = []error{ErrDuplicateKey, ErrDepth, ErrTooManyKeys, ErrKeyTooLong, ErrSurrogate,
	ErrControl}

// FuzzReader compares the Reader with encoding/json: what the Reader takes encoding/json takes with
// an equal value, and what it refuses encoding/json refuses, except for the reasons listed.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		orderBody, `[` + orderBody + `,{"a":[true,false,null,1e2,-0.5,"\u00e9\ud83d\ude00"]}]`,
		`{"sub":"a","accounts":[1,2,4294967295],"admin":true,"exp":1700000000}`, `{"a":1,"\u0061":2}`,
		`{"p":"101.25","q":1.0000000}`,
		`"\ud800"`, "\xef\xbb\xbf{}", `[1.5e-7,9223372036854.775807,1e99,-0]`, `{"k":"\n\u0000"}`,
		nested("[", "", "]", 17), "{\"\xff\":1}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		var r Reader
		r.Reset(text)
		r.Skip()
		err := r.End()
		if !bytes.Equal(before, text) {
			t.Fatal("the input was written to")
		}
		valid := json.Valid(text) && utf8.Valid(text)
		if err != nil {
			if valid && !oneOf(err, deliberate) {
				t.Fatalf("%q: refused with %v at %d, encoding/json takes it", text, err, r.Offset())
			}
			if errors.Is(err, ErrDuplicateKey) && valid && !duplicates(t, text) {
				t.Fatalf("%q: no duplicate key in it", text)
			}
			if errors.Is(err, ErrMisuse) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q: taken, encoding/json refuses it", text)
		}
		if duplicates(t, text) {
			t.Fatalf("%q: taken in spite of a duplicate key", text)
		}
		var want any
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		must.OK(t, decoder.Decode(&want))
		r.Reset(text)
		got := tree(t, &r)
		if err := r.End(); err != nil {
			if !errors.Is(err, ErrControl) {
				t.Fatalf("%q: skipped, but reading says %v", text, err)
			}
			return
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
	})
}

func oneOf(err error, list []error) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// tree reads a value as encoding/json does with UseNumber, and checks the
// typed readings of each number on the way.
func tree(t *testing.T, r *Reader) any {
	switch r.Peek() {
	case KindObject:
		out := map[string]any{}
		for r.BeginObject(); ; {
			key, ok := r.NextKey()
			if !ok {
				return out
			}
			name := string(key)
			out[name] = tree(t, r)
		}
	case KindArray:
		out := []any{}
		for r.BeginArray(); r.NextItem(); {
			out = append(out, tree(t, r))
		}
		return out
	case KindString:
		return string(r.String())
	case KindBool:
		return r.Bool()
	case KindNumber:
		start := r.pos
		asInt, asDecimal := *r, *r
		r.Skip()
		text := string(r.buf[start:r.pos])
		checkNumber(t, text, &asInt, &asDecimal)
		return json.Number(text)
	}
	r.Null()
	return nil
}

func checkNumber(t *testing.T, text string, asInt, asDecimal *Reader) {
	n, err := asInt.Int(), asInt.Err()
	wantInt, parseErr := strconv.ParseInt(text, 10, 64)
	switch {
	case strings.ContainsAny(text, ".eE"):
		if !errors.Is(err, ErrNotWhole) {
			t.Fatalf("Int of %s: %d, %v", text, n, err)
		}
	case (err == nil) != (parseErr == nil) || n != wantInt && err == nil:
		t.Fatalf("Int of %s: got %d, %v, want %d, %v", text, n, err, wantInt, parseErr)
	}
	if len(text) > 1000 {
		return // math/big is too slow beyond
	}
	d, err := asDecimal.Decimal(), asDecimal.Err()
	want, wantErr := exact(text)
	if d != want || !sameRefusal(err, wantErr) {
		t.Fatalf("Decimal of %s: got %d, %v, want %d, %v", text, d, err, want, wantErr)
	}
	if err == nil {
		if again, err := ParseDecimal(FormatDecimal(nil, d)); again != d || err != nil {
			t.Fatalf("%s is %d, but written and read again %d, %v", text, d, again, err)
		}
	}
}

// sameRefusal: a number that is both too large and too fine may be refused as either.
func sameRefusal(got, want error) bool {
	return (got == nil) == (want == nil)
}

// duplicates reports whether an object of the valid text has a key twice, by the tokens of
// encoding/json.
func duplicates(t *testing.T, text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var stack []map[string]bool // nil for an array
	key := false
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			return false
		}
		must.OK(t, err)
		inObject := len(stack) > 0 && stack[len(stack)-1] != nil
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				stack = append(stack, map[string]bool{})
				key = true
				continue
			case '[':
				stack = append(stack, nil)
				continue
			}
			stack = stack[:len(stack)-1]
			key = len(stack) > 0 && stack[len(stack)-1] != nil
			continue
		case string:
			if inObject && key {
				if stack[len(stack)-1][v] {
					return true
				}
				stack[len(stack)-1][v] = true
				key = false
				continue
			}
		}
		key = inObject
	}
}

// FuzzDecimal compares the fixed-point reading with exact arithmetic.
func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"101.25", "-0.000001", "1e-6", "9223372036854.775808", "0e99",
		"1.0000000", "12345678901234567890e-7"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseDecimal([]byte(text))
		if json.Valid([]byte(text)) && strings.TrimSpace(text) == text &&
			strings.ContainsAny(text[:1], "-0123456789") {
			if len(text) > 1000 {
				return
			}
			want, wantErr := exact(text)
			if got != want || !sameRefusal(err, wantErr) {
				t.Fatalf("%s: got %d, %v, want %d, %v", text, got, err, want, wantErr)
			}
			return
		}
		if !errors.Is(err, ErrNumber) {
			t.Fatalf("%q: got %d, %v, want %v", text, got, err, ErrNumber)
		}
	})
}
