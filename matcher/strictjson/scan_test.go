package strictjson

import (
	"errors"
	"testing"
)

// checkScan asserts that a Reader also reads what the scanning functions read at the start of text,
// with the same value and the same end.
func checkScan(t *testing.T, text []byte) {
	t.Helper()
	var r Reader
	if s, end := ScanText(text, 0); end != 0 {
		if r.Reset(text); r.err == nil {
			if got := r.String(); r.err != nil || string(got) != string(s) || r.pos != end {
				t.Fatalf("%q: scanned %q up to %d, read %q up to %d, %v", text, s, end, got, r.pos, r.err)
			}
		}
	}
	for places, scan := range map[int]func([]byte, int) (int64, int){0: ScanInt,
		decimals: ScanDecimal} {
		v, end := scan(text, 0)
		if end == 0 {
			continue
		}
		if got := numberEnd(text); got != end {
			t.Fatalf("%q: a number of %d bytes, scanned %d", text, got, end)
		}
		want, err := decimal(text[:end])
		if places == 0 {
			want, err = parseInt(text[:end])
		}
		if err != nil || v != want {
			t.Fatalf("%q: scanned %d, want %d, %v", text, v, want, err)
		}
	}
}

func TestScanReadsWhatIsWrittenAsUsual(t *testing.T) {
	for _, tt := range []struct {
		text               string
		str, whole, number int // the index behind; 0: not read
	}{
		{`"abc"`, 5, 0, 0},
		{`"abcdefgh"`, 10, 0, 0},
		{`"abcdefghij", 1`, 12, 0, 0},
		{`""`, 2, 0, 0},
		{`"abc`, 0, 0, 0},
		{`"abcdefgh`, 0, 0, 0},
		{`"a\"b"`, 0, 0, 0},
		{`"abcdefg\\"`, 0, 0, 0},
		{"\"abcdefgh\x1fi\"", 0, 0, 0},
		{"\"abc\x7fdefghijk\"", 0, 0, 0},
		{"\"abc\x80defghijk\"", 0, 0, 0},
		{"\"abc\xffdefghijk\"", 0, 0, 0},
		{"\"\x7f\"", 0, 0, 0},
		{`abc`, 0, 0, 0},
		{``, 0, 0, 0},
		{`5,`, 0, 1, 1},
		{`5`, 0, 0, 0}, // more may follow
		{`0,`, 0, 0, 0},
		{`07,`, 0, 0, 0},
		{`-5,`, 0, 0, 0},
		{`123456789012,`, 0, 12, 12},
		{`1234567890123,`, 0, 0, 0},
		{`1.5,`, 0, 0, 3},
		{`1.,`, 0, 0, 0},
		{`1.123456}`, 0, 0, 8},
		{`1.1234567}`, 0, 0, 0},
		{`1.2.3,`, 0, 0, 0},
		{`1e5,`, 0, 0, 0},
		{`1.5E5,`, 0, 0, 0},
		{`999999999999.999999 `, 0, 0, 19},
	} {
		_, str := ScanText([]byte(tt.text), 0)
		_, whole := ScanInt([]byte(tt.text), 0)
		_, number := ScanDecimal([]byte(tt.text), 0)
		if str != tt.str || whole != tt.whole || number != tt.number {
			t.Errorf("%q: text up to %d, int up to %d, decimal up to %d, want %d, %d, %d",
				tt.text, str, whole, number, tt.str, tt.whole, tt.number)
		}
		checkScan(t, []byte(tt.text))
	}
}

func TestTakeGoesOnBehindTheValue(t *testing.T) {
	var r Reader
	r.Reset([]byte(`[ 12,13]`))
	r.BeginArray()
	if r.Ahead() != nil {
		t.Error("there is something ahead where nothing is due")
	}
	r.NextItem()
	if _, end := ScanInt(r.Ahead(), 0); end != 2 {
		t.Errorf("ahead is %q", r.Ahead())
	}
	r.Take(2)
	if !r.NextItem() || r.Int() != 13 || r.NextItem() || r.End() != nil {
		t.Errorf("read on with %v", r.Err())
	}
	r.Reset([]byte(`12`))
	r.Take(3)
	if !errors.Is(r.Err(), ErrMisuse) || r.Ahead() != nil {
		t.Errorf("more than there is: %v", r.Err())
	}
}

// FuzzScan compares the scanning functions with the Reader.
func FuzzScan(f *testing.F) {
	for _, text := range []string{`"abc"`, `"abcdefghi" `, `12.5,`, `7}`, "\"a\x7f\"", `1e5`, `007`} {
		f.Add([]byte(text))
	}
	f.Fuzz(checkScan)
}
