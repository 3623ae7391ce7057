package tca

import (
	"math/big"
	"math/bits"
)

// wide is a signed 128-bit integer in two's complement. It holds values that 64 bits do not: price
// times time, and a slippage against a benchmark close to zero.
type wide struct {
	hi int64
	lo uint64
}

// add, sub and neg wrap around at 128 bits; no value here comes near that.
func (w wide) add(v wide) wide {
	lo, carry := bits.Add64(w.lo, v.lo, 0)
	return wide{w.hi + v.hi + int64(carry), lo}
}

func (w wide) sub(v wide) wide {
	lo, borrow := bits.Sub64(w.lo, v.lo, 0)
	return wide{w.hi - v.hi - int64(borrow), lo}
}

func (w wide) neg() wide { return wide{}.sub(w) }

// small reports that w is a non-negative int64.
func (w wide) small() bool { return w.hi == 0 && w.lo>>63 == 0 }

func (w wide) big() *big.Int {
	b := big.NewInt(w.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w.lo))
}

// wideOf is the inverse of big, for a value that fits.
func wideOf(b *big.Int) wide {
	m := new(big.Int).Abs(b)
	lo := new(big.Int).And(m, new(big.Int).SetUint64(1<<64-1))
	w := wide{int64(m.Rsh(m, 64).Uint64()), lo.Uint64()}
	if b.Sign() < 0 {
		return w.neg()
	}
	return w
}

// weigh is px x millis. px is not negative, and millis is the span of two int64 times.
func weigh(px int64, millis uint64) wide {
	hi, lo := bits.Mul64(uint64(px), millis)
	return wide{int64(hi), lo}
}

// span is the time from one millisecond to a later one, also where the
// difference does not fit an int64.
func span(from, to int64) uint64 { return uint64(to) - uint64(from) }

// quotient is num/den rounded to a whole number, half up: a tie goes towards plus
// infinity. den is above zero.
func quotient(num, den *big.Int) *big.Int {
	n := new(big.Int).Lsh(num, 1)
	n.Add(n, den)
	return n.Div(n, new(big.Int).Lsh(den, 1)) // Euclidean: the floor, since den is positive
}

// average is sum/count to the nearest whole number, half up.
func average(sum wide, count uint64) wide {
	return wideOf(quotient(sum.big(), new(big.Int).SetUint64(count)))
}

// mean is num/den, a weighted average of prices, in whole millionths, half up. num is not negative
// and num/den fits a price, so the division cannot overflow.
//
// den is above 0.
func mean(num wide, den uint64) int64 {
	q, r := bits.Div64(uint64(num.hi), num.lo, den)
	if r >= den-r {
		q++
	}
	return int64(q)
}

// slippage is (px - benchmark) / benchmark in hundredths of a basis point, rounded half up; for a
// sale it is negated before it is rounded. The benchmark is the rational number num/den above zero.
//
// The first part covers the usual numbers in 64 and 128 bits without an allocation; the second part
// is the same in big integers, for all others.
func slippage(px int64, num wide, den uint64, sell bool) wide {
	const hundredthsOfBps = 1_000_000 // one hundred per cent
	if hi, lo := bits.Mul64(uint64(px), den); px >= 0 && hi == 0 && lo>>63 == 0 && num.small() {
		diff, down := int64(lo)-int64(num.lo), sell
		if diff < 0 {
			diff, down = -diff, !down
		}
		hi, lo := bits.Mul64(uint64(diff), hundredthsOfBps)
		if hi < num.lo {
			if q, r := bits.Div64(hi, lo, num.lo); q>>63 == 0 && q != 1<<63-1 {
				return rounded(q, r, num.lo, down)
			}
		}
	}
	diff := new(big.Int).Mul(big.NewInt(px), new(big.Int).SetUint64(den))
	diff.Sub(diff, num.big())
	if sell {
		diff.Neg(diff)
	}
	return wideOf(quotient(diff.Mul(diff, big.NewInt(hundredthsOfBps)), num.big()))
}

// rounded is q + r/den, or its negative, to the nearest whole number, half up.
// den is below 2^63 and r below den.
func rounded(q, r, den uint64, negative bool) wide {
	switch twice := 2 * r; {
	case negative && twice > den, !negative && twice >= den:
		q++
	}
	if negative {
		return wide{0, q}.neg()
	}
	return wide{0, q}
}
