package riskextract

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// bigOf is w as a big.Int.
func bigOf(w wide) *big.Int {
	n := new(big.Int).Lsh(new(big.Int).SetUint64(w.hi), 64)
	n.Or(n, new(big.Int).SetUint64(w.lo))
	if w.negative {
		n.Neg(n)
	}
	return n
}

// text is the obvious rendering of millionths.
func text(n *big.Int) string {
	return new(big.Rat).SetFrac(n, big.NewInt(1_000_000)).FloatString(6)
}

func TestWideIsExact(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	edges := []int64{0, 1, -1, 9, 10, 999_999, 1_000_000, -1_000_000, 1 << 32, math.MaxInt64,
		math.MinInt64, math.MaxInt64 - 1}
	number := func() int64 {
		if random.IntN(2) == 0 {
			return edges[random.IntN(len(edges))]
		}
		return int64(random.Uint64()) >> random.IntN(64)
	}
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	over := 0
	for range 100_000 {
		a, b, c, d := number(), number(), number(), number()
		m, n := random.Uint32()>>random.IntN(32), random.Uint32()>>random.IntN(32)
		want1 := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want1.Mul(want1, big.NewInt(int64(m)))
		want2 := new(big.Int).Mul(big.NewInt(c), big.NewInt(d))
		want2.Mul(want2, big.NewInt(int64(n)))
		x, fits1 := product(a, b).times(m)
		y, fits2 := product(c, d).times(n)
		if fits1 != (want1.CmpAbs(limit) < 0) || fits2 != (want2.CmpAbs(limit) < 0) {
			t.Fatalf("%d x %d x %d fits: %t; %d x %d x %d fits: %t", a, b, m, fits1, c, d, n, fits2)
		}
		if !fits1 || !fits2 {
			over++
			continue
		}
		difference, fits3 := x.minus(y)
		want3 := new(big.Int).Sub(want1, want2)
		if fits3 != (want3.CmpAbs(limit) < 0) {
			t.Fatalf("%v - %v fits: %t", want1, want2, fits3)
		}
		if !fits3 {
			over++
			continue
		}
		for _, v := range []struct {
			got  wide
			want *big.Int
		}{{x, want1}, {y, want2}, {difference, want3}} {
			if bigOf(v.got).Cmp(v.want) != 0 || string(appendMillionths(nil, v.got)) != text(v.want) {
				t.Fatalf("%+v is %s, want %s", v.got, appendMillionths(nil, v.got), text(v.want))
			}
		}
	}
	if over == 0 {
		t.Error("nothing overflowed")
	}
}

func TestMillionths(t *testing.T) {
	largest := wide{hi: 1<<63 - 1, lo: math.MaxUint64}
	for _, tt := range []struct {
		w    wide
		want string
	}{
		{wide{}, "0.000000"},
		{product(-1, 1), "-0.000001"},
		{product(-999_999, 1), "-0.999999"},
		{product(1_000_000, 1), "1.000000"},
		{product(10_000_000_000_000, 1_000_000), "10000000000000.000000"},
		{wide{lo: 9_999_999_999_999_999_999}, "9999999999999.999999"},
		{wide{lo: 10_000_000_000_000_000_000}, "10000000000000.000000"},
		{wide{lo: 10_000_000_000_000_000_001}, "10000000000000.000001"},
		{product(math.MinInt64, math.MinInt64), "85070591730234615865843651857942.052864"},
		{largest, "170141183460469231731687303715884.105727"},
	} {
		if got := string(appendMillionths(nil, tt.w)); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.w, got, tt.want)
		}
	}
	if _, fits := largest.minus(wide{negative: true, lo: 1}); fits {
		t.Error("the largest and one fit")
	}
	if _, fits := largest.times(2); fits {
		t.Error("twice the largest fits")
	}
	if zero, fits := largest.minus(largest); !fits || zero != (wide{}) {
		t.Errorf("the largest less itself is %+v", zero)
	}
	if strings.HasPrefix(string(appendDecimal(nil, math.MinInt64)), "--") {
		t.Error("two signs")
	}
}
