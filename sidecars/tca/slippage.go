package tca

import (
	"math/big"
	"math/bits"

	"posttrade/matcher/int128"
)

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
func average(sum int128.Int, count uint64) int128.Int {
	return int128.FromBig(quotient(sum.Big(), new(big.Int).SetUint64(count)))
}

// mean is num/den, a weighted average of prices, in whole millionths, half up. num is not negative
// and num/den fits a price, so the division cannot overflow.
//
// den is above 0.
func mean(num int128.Int, den uint64) int64 {
	q, r := bits.Div64(uint64(num.Hi), num.Lo, den)
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
func slippage(px int64, num int128.Int, den uint64, sell bool) int128.Int {
	const hundredthsOfBps = 1_000_000 // one hundred per cent
	hi, lo := bits.Mul64(uint64(px), den)
	if px >= 0 && hi == 0 && lo>>63 == 0 && num.Hi == 0 && num.Lo>>63 == 0 {
		diff, down := int64(lo)-int64(num.Lo), sell
		if diff < 0 {
			diff, down = -diff, !down
		}
		hi, lo := bits.Mul64(uint64(diff), hundredthsOfBps)
		if hi < num.Lo {
			if q, r := bits.Div64(hi, lo, num.Lo); q>>63 == 0 && q != 1<<63-1 {
				return rounded(q, r, num.Lo, down)
			}
		}
	}
	diff := new(big.Int).Mul(big.NewInt(px), new(big.Int).SetUint64(den))
	diff.Sub(diff, num.Big())
	if sell {
		diff.Neg(diff)
	}
	return int128.FromBig(quotient(diff.Mul(diff, big.NewInt(hundredthsOfBps)), num.Big()))
}

// rounded is q + r/den, or its negative, to the nearest whole number, half up.
// den is below 2^63 and r below den.
func rounded(q, r, den uint64, negative bool) int128.Int {
	switch twice := 2 * r; {
	case negative && twice > den, !negative && twice >= den:
		q++
	}
	if negative {
		return int128.Of(int64(q)).Neg()
	}
	return int128.Of(int64(q))
}
