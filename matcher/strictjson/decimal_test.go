package strictjson

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  error
	}{
		{"0", 0, nil}, {"-0", 0, nil}, {"0.0", 0, nil}, {"0e5", 0, nil}, {"0.000000000", 0, nil},
		{"-0.0e-99", 0, nil}, {"0e99", 0, nil},
		{"1", 1_000_000, nil}, {"-1", -1_000_000, nil}, {"101.25", 101_250_000, nil},
		{"0.000001", 1, nil}, {"-0.000001", -1, nil},
		{"0.1", 100_000, nil}, {"415.250000", 415_250_000, nil}, {"415.2500000000", 415_250_000, nil},
		{"100", 100_000_000, nil},
		{"1e2", 100_000_000, nil}, {"1E+2", 100_000_000, nil}, {"1.5e3", 1_500_000_000, nil},
		{"1e-6", 1, nil}, {"10e-7", 1, nil},
		{"1000000e-12", 1, nil}, {"0.00000001e2", 1, nil}, {"12.34e-2", 123_400, nil},
		{"123456e-6", 123_456, nil}, {"1e012", 1e18, nil},
		{"9223372036854.775807", math.MaxInt64, nil}, {"-9223372036854.775808", math.MinInt64, nil},
		{"9223372036854775807e-6", math.MaxInt64, nil},
		{"9223372036854.7758070", math.MaxInt64, nil},
		{"0.0000010000000000000000000000000000000000", 1, nil},
		{"100000000000000000000000000000e-29", 1_000_000, nil},
		{"0.00000000000000000000000000001e+29", 1_000_000, nil},
		{"9223372036854.775808", 0, ErrRange}, {"-9223372036854.775809", 0, ErrRange},
		{"9223372036855", 0, ErrRange},
		{"10000000000000", 0, ErrRange}, {"18446744073709.551616", 0, ErrRange},
		{"18446744073709551616", 0, ErrRange},
		{"1e13", 0, ErrRange}, {"1e99", 0, ErrRange}, {"1e100", 0, ErrRange}, {"0e100", 0, ErrRange},
		{"1e-100", 0, ErrRange},
		{"1e99999999999999999999999", 0, ErrRange}, {"-1e13", 0, ErrRange},
		{"123456789012345678901234567890", 0, ErrRange},
		{"340282366920938463463374607431768211456", 0, ErrRange},
		{"36893488147419103232e-6", 0, ErrRange},
		{"0.0000001", 0, ErrPrecision}, {"1.0000001", 0, ErrPrecision}, {"1e-7", 0, ErrPrecision},
		{"101.2500001", 0, ErrPrecision},
		{"1.23456789e1", 0, ErrPrecision}, {"0.00000000000000000000000000001", 0, ErrPrecision},
		{"1e-99", 0, ErrPrecision},
		{"1.00000000000000000000000000000000000001", 0, ErrPrecision},
		{"99999999999999999999.9999999", 0, ErrPrecision},
		{"", 0, ErrNumber}, {"-", 0, ErrNumber}, {"+1", 0, ErrNumber}, {"01", 0, ErrNumber},
		{"-01", 0, ErrNumber}, {"1.", 0, ErrNumber},
		{".5", 0, ErrNumber}, {"1e", 0, ErrNumber}, {"1e+", 0, ErrNumber}, {" 1", 0, ErrNumber},
		{"1 ", 0, ErrNumber}, {"1_000", 0, ErrNumber},
		{"1,5", 0, ErrNumber}, {"0x1", 0, ErrNumber}, {"NaN", 0, ErrNumber}, {"Infinity", 0, ErrNumber},
		{"1.5.2", 0, ErrNumber},
		{"1e5e5", 0, ErrNumber}, {"--1", 0, ErrNumber}, {"１", 0, ErrNumber}, {"1\x00", 0, ErrNumber},
		{"1.e5", 0, ErrNumber},
	}
	for _, tt := range tests {
		got, err := ParseDecimal([]byte(tt.text))
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ParseDecimal %q: got %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.err)
		}
		var r Reader
		r.Reset([]byte(`"` + strings.ReplaceAll(tt.text, "\x00", `\u0000`) + `"`))
		got, err = r.Decimal(), r.End()
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Decimal of string %q: got %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.err)
		}
		if errors.Is(tt.err, ErrNumber) {
			continue
		}
		r.Reset([]byte(tt.text))
		got, err = r.Decimal(), r.End()
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Decimal of number %s: got %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestReaderInt(t *testing.T) {
	tests := []struct {
		text string
		want int64
		err  error
	}{
		{"0", 0, nil}, {"-0", 0, nil}, {"7", 7, nil}, {"-7", -7, nil}, {"2147483647", math.MaxInt32, nil},
		{"4294967295", math.MaxUint32, nil},
		{"9223372036854775807", math.MaxInt64, nil}, {"-9223372036854775808", math.MinInt64, nil},
		{"9223372036854775808", 0, ErrRange}, {"-9223372036854775809", 0, ErrRange},
		{"18446744073709551616", 0, ErrRange},
		{"18446744073709551617", 0, ErrRange}, {"99999999999999999999999999", 0, ErrRange},
		{"1.0", 0, ErrNotWhole}, {"1e2", 0, ErrNotWhole}, {"1.5", 0, ErrNotWhole},
		{"99999999999999999999999999.5", 0, ErrNotWhole},
		{`"1"`, 0, ErrType}, {"true", 0, ErrType}, {"null", 0, ErrType}, {"01", 0, ErrNumber},
		{"1.", 0, ErrNumber}, {"-", 0, ErrNumber},
	}
	for _, tt := range tests {
		var r Reader
		r.Reset([]byte(tt.text))
		got, err := r.Int(), r.End()
		if err != nil {
			got = 0
		}
		if got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("Int of %q: got %d, %v, want %d, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestFormatDecimal(t *testing.T) {
	tests := []struct {
		v    int64
		want string
	}{
		{0, "0"}, {1, "0.000001"}, {-1, "-0.000001"}, {1_000_000, "1"}, {-1_000_000, "-1"},
		{101_250_000, "101.25"}, {100_000, "0.1"},
		{999_999, "0.999999"}, {1_000_001, "1.000001"}, {1_010_000, "1.01"}, {1e12, "1000000"},
		{math.MaxInt64, "9223372036854.775807"}, {math.MinInt64, "-9223372036854.775808"},
	}
	for _, tt := range tests {
		if got := string(FormatDecimal([]byte("x"), tt.v)); got != "x"+tt.want {
			t.Errorf("FormatDecimal(%d): got %q, want %q behind x", tt.v, got, tt.want)
		}
	}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	var room [21]byte
	for range 100_000 {
		v := int64(random.Uint64()) >> random.IntN(64)
		text := FormatDecimal(room[:0], v)
		if got, err := ParseDecimal(text); got != v || err != nil || len(text) > len(room) {
			t.Fatalf("seed %d: %d is written %s and read %d, %v", seed, v, text, got, err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { FormatDecimal(room[:0], math.MinInt64) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// exact returns the millionths of a number in JSON's grammar, by arithmetic without bounds.
func exact(text string) (int64, error) {
	if _, e, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		e, _ := new(big.Int).SetString(e, 10)
		if e.CmpAbs(big.NewInt(maxExponent)) > 0 {
			return 0, ErrRange
		}
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, ErrNumber
	}
	v.Mul(v, big.NewRat(1_000_000, 1))
	switch {
	case !v.IsInt():
		return 0, ErrPrecision
	case !v.Num().IsInt64():
		return 0, ErrRange
	}
	return v.Num().Int64(), nil
}

// TestDecimalMatchesExactArithmetic compares with math/big over random numbers near every edge.
func TestDecimalMatchesExactArithmetic(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 2))
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0000012345678999"[random.IntN(16)]
		}
		return string(b)
	}
	for range 50_000 {
		text := strings.TrimLeft(digits(random.IntN(16)), "0")
		if text == "" {
			text = "0"
		}
		if random.IntN(2) == 0 {
			text = "-" + text
		}
		if random.IntN(3) > 0 {
			text += "." + digits(1+random.IntN(12))
		}
		if random.IntN(3) == 0 {
			text += []string{"e", "E-", "e+"}[random.IntN(3)] + digits(1+random.IntN(2))
		}
		got, err := ParseDecimal([]byte(text))
		want, wantErr := exact(text)
		if got != want || !errors.Is(err, wantErr) {
			t.Fatalf("seed %d: %s: got %d, %v, want %d, %v", seed, text, got, err, want, wantErr)
		}
	}
}

func BenchmarkDecimal(b *testing.B) {
	for _, text := range []string{"415.25", "9223372036854.775807"} {
		b.Run("op=parse/text="+text, func(b *testing.B) {
			n := []byte(text)
			for b.Loop() {
				if _, err := ParseDecimal(n); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("op=format/text="+text, func(b *testing.B) {
			v, _ := ParseDecimal([]byte(text))
			var room [32]byte
			for b.Loop() {
				FormatDecimal(room[:0], v)
			}
		})
	}
}
