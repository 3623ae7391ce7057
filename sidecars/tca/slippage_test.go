package tca

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"posttrade/matcher"
	"posttrade/matcher/int128"
)

// number returns a non-negative int64 of any size; small ones are as likely as large ones.
func number(rnd *rand.Rand) int64 { return int64(rnd.Uint64()) & math.MaxInt64 >> rnd.IntN(63) }

func TestMeanAndSlippageAreExactForAnyNumbers(t *testing.T) {
	rnd := seeded(t)
	beyond := 0
	for range scaled(100_000) {
		px, low, den := number(rnd), 1+number(rnd)>>1, 1+rnd.Uint64()>>(1+rnd.IntN(62))
		switch rnd.IntN(4) {
		case 0: // small numbers have ties often
			px, low, den = rnd.Int64N(50), 1+rnd.Int64N(400), 1+rnd.Uint64N(4)
		case 1: // near one another, as in a market
			px = max(0, low+rnd.Int64N(2001)-1000)
		}
		// between low and low+1 times den
		num := int128.Scaled(low, den).Add(int128.Int{Lo: rnd.Uint64N(den)})
		sell := rnd.IntN(2) == 1
		benchmark := new(big.Rat).SetFrac(num.Big(), new(big.Int).SetUint64(den))
		if got, want := mean(num, den), halfUp(benchmark); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("mean %v / %d = %d, want %v", num.Big(), den, got, want)
		}
		side := matcher.Buy
		if sell {
			side = matcher.Sell
		}
		if rnd.IntN(20) == 0 {
			px = -px // a row written by hand
		}
		want := hundredths(side, px, benchmark)
		p := Bps{true, slippage(px, num, den, sell)}
		if p.hundredths.Big().Cmp(want) != 0 {
			t.Fatalf("slippage of %d against %v, sell %v: got %v, want %v", px, benchmark, sell,
				p.hundredths.Big(), want)
		}
		if got, want := p.String(), decimal(want, 2); got != want {
			t.Fatalf("got text %s, want %s", got, want)
		}
		n, fits := p.Hundredths()
		if fits != want.IsInt64() || fits && n != want.Int64() {
			t.Fatalf("hundredths %d, %v; want %v", n, fits, want)
		}
		if !fits {
			beyond++
		}
	}
	t.Logf("%d of them beyond 64 bits", beyond)
	if beyond == 0 {
		t.Error("no slippage beyond 64 bits was drawn")
	}
}

func TestAverageRoundsHalfUp(t *testing.T) {
	for _, tt := range []struct {
		sum   int64
		count uint64
		want  int64
	}{{1, 2, 1}, {-1, 2, 0}, {-3, 2, -1}, {3, 2, 2}, {10, 3, 3}, {11, 3, 4}, {-10, 3, -3}, {-11, 3,
		-4}, {0, 7, 0}} {
		got := average(int128.FromBig(big.NewInt(tt.sum)), tt.count)
		if n, ok := (Bps{true, got}).Hundredths(); !ok || n != tt.want {
			t.Errorf("average of %d over %d is %d, want %d", tt.sum, tt.count, n, tt.want)
		}
	}
}

func TestAbsentBpsIsNull(t *testing.T) {
	var p Bps
	if _, ok := p.Hundredths(); ok || p.String() != "null" {
		t.Errorf("got %v %q, want an absent number", p, p.String())
	}
}
