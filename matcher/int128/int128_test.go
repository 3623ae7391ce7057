package int128

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// The bounds of an Int, and of what the checked operations return.
var (
	modulus = new(big.Int).Lsh(big.NewInt(1), 128)
	half    = new(big.Int).Lsh(big.NewInt(1), 127)
)

// seeded returns random numbers, and logs their seed.
func seeded(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 2))
}

// any64 returns an int64 of any size. Half of them are at an edge.
func any64(random *rand.Rand) int64 {
	edges := []int64{0, 1, -1, 1 << 32, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}
	if random.IntN(2) == 0 {
		return edges[random.IntN(len(edges))]
	}
	return int64(random.Uint64()) >> random.IntN(64)
}

// any128 returns an Int of any size.
func any128(random *rand.Rand) Int {
	v := Int{any64(random), uint64(any64(random))}
	if random.IntN(2) == 0 {
		v.Hi >>= random.IntN(64)
	}
	return v
}

func wrapped(b *big.Int) *big.Int {
	b.Add(b, half)
	b.Mod(b, modulus)
	return b.Sub(b, half)
}

func TestSumsWrapAround(t *testing.T) {
	random := seeded(t)
	for range 100_000 {
		a, b := any128(random), any128(random)
		for _, v := range []struct {
			of   string
			got  Int
			want *big.Int
		}{
			{"+", a.Add(b), new(big.Int).Add(a.Big(), b.Big())},
			{"-", a.Sub(b), new(big.Int).Sub(a.Big(), b.Big())},
			{"negative of the first;", a.Neg(), new(big.Int).Neg(a.Big())},
		} {
			if want := wrapped(v.want); v.got.Big().Cmp(want) != 0 {
				t.Fatalf("%v %s %v = %v, want %v", a, v.of, b, v.got, want)
			}
		}
		if got := FromBig(a.Big()); got != a {
			t.Fatalf("%v comes back as %v", a, got)
		}
		hi, lo := a.Magnitude()
		m := new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64)
		if m.Or(m, new(big.Int).SetUint64(lo)); m.CmpAbs(a.Big()) != 0 {
			t.Fatalf("the magnitude of %v is %v", a, m)
		}
	}
}

func TestProductsAreExact(t *testing.T) {
	random := seeded(t)
	for range 100_000 {
		a, b, n := any64(random), any64(random), random.Uint64()>>random.IntN(64)
		if want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b)); Product(a, b).Big().Cmp(want) != 0 {
			t.Fatalf("%d x %d = %v", a, b, Product(a, b))
		}
		if Of(a).Big().Cmp(big.NewInt(a)) != 0 {
			t.Fatalf("%d is %v", a, Of(a))
		}
		a &= math.MaxInt64
		want := new(big.Int).Mul(big.NewInt(a), new(big.Int).SetUint64(n))
		if Scaled(a, n).Big().Cmp(want) != 0 {
			t.Fatalf("%d x %d = %v", a, n, Scaled(a, n))
		}
	}
}

// TestWhatDoesNotFitIsSaid draws numbers on both sides of the bound, 2^127.
func TestWhatDoesNotFitIsSaid(t *testing.T) {
	random := seeded(t)
	fitted := map[bool]int{}
	compare := func(of string, got Int, fits bool, want *big.Int) {
		t.Helper()
		fitted[fits]++
		if fits != (want.CmpAbs(half) < 0) || fits && got.Big().Cmp(want) != 0 {
			t.Fatalf("%s = %v, fits: %t; want %v", of, got, fits, want)
		}
	}
	for range 100_000 {
		a, b, m := any128(random), any128(random), random.Uint32()>>random.IntN(32)
		got, fits := a.Difference(b)
		compare("a difference", got, fits, new(big.Int).Sub(a.Big(), b.Big()))
		got, fits = a.Times(m)
		compare("a product", got, fits, new(big.Int).Mul(a.Big(), new(big.Int).SetUint64(uint64(m))))
	}
	if fitted[true] == 0 || fitted[false] == 0 {
		t.Errorf("%d fitted, %d did not", fitted[true], fitted[false])
	}
	largest, least := Int{math.MaxInt64, math.MaxUint64}, Int{Hi: math.MinInt64}
	for _, tt := range []struct{ a, b Int }{
		{largest, Of(-1)}, {largest, largest}, {least, Int{}}, {Int{}, least}, {Of(-1), largest},
	} {
		got, fits := tt.a.Difference(tt.b)
		compare("an edge", got, fits, new(big.Int).Sub(tt.a.Big(), tt.b.Big()))
	}
	got, fits := least.Times(1)
	compare("the least", got, fits, least.Big())
}
