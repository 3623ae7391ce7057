package riskextract

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"posttrade/matcher/int128"
)

// TestMillionthsOfAnyNumber compares with the rendering of a fraction.
func TestMillionthsOfAnyNumber(t *testing.T) {
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	for range 10_000 {
		v := int128.Int{Hi: int64(random.Uint64()) >> random.IntN(64), Lo: random.Uint64()}
		want := new(big.Rat).SetFrac(v.Big(), big.NewInt(1_000_000)).FloatString(6)
		if got := string(appendMillionths(nil, v)); got != want {
			t.Fatalf("%+v is %s, want %s", v, got, want)
		}
	}
}

func TestMillionths(t *testing.T) {
	largest := int128.Int{Hi: math.MaxInt64, Lo: math.MaxUint64}
	for _, tt := range []struct {
		v    int128.Int
		want string
	}{
		{int128.Int{}, "0.000000"},
		{int128.Product(-1, 1), "-0.000001"},
		{int128.Product(-999_999, 1), "-0.999999"},
		{int128.Product(1_000_000, 1), "1.000000"},
		{int128.Product(10_000_000_000_000, 1_000_000), "10000000000000.000000"},
		{int128.Int{Lo: 9_999_999_999_999_999_999}, "9999999999999.999999"},
		{int128.Int{Lo: 10_000_000_000_000_000_000}, "10000000000000.000000"},
		{int128.Int{Lo: 10_000_000_000_000_000_001}, "10000000000000.000001"},
		{int128.Product(math.MinInt64, math.MinInt64), "85070591730234615865843651857942.052864"},
		{largest, "170141183460469231731687303715884.105727"},
	} {
		if got := string(appendMillionths(nil, tt.v)); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.v, got, tt.want)
		}
	}
	if strings.HasPrefix(string(appendDecimal(nil, math.MinInt64)), "--") {
		t.Error("two signs")
	}
}
