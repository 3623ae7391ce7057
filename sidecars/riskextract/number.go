package riskextract

import (
	"math/bits"
	"strconv"
)

// wide is an exact whole number of at most 127 bits and a sign, for money in
// millionths. Zero is not negative.
//
// The zero wide is 0. No method changes its receiver.
type wide struct {
	negative bool
	hi, lo   uint64 // the magnitude; hi is less than 2^63
}

// product returns a x b, which always fits.
func product(a, b int64) wide {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	return wide{negative: (a < 0) != (b < 0) && hi|lo != 0, hi: hi, lo: lo}
}

// magnitude is |a|, also for the least int64.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// times returns w x m; false when it does not fit.
func (w wide) times(m uint32) (wide, bool) {
	carry, lo := bits.Mul64(w.lo, uint64(m))
	over, hi := bits.Mul64(w.hi, uint64(m))
	hi, c := bits.Add64(hi, carry, 0)
	return wide{negative: w.negative && hi|lo != 0, hi: hi, lo: lo}, over|c == 0 && hi>>63 == 0
}

// minus returns w - v; false when it does not fit.
//
// Two numbers of one sign always fit.
func (w wide) minus(v wide) (wide, bool) {
	if w.negative != v.negative {
		lo, carry := bits.Add64(w.lo, v.lo, 0)
		hi, _ := bits.Add64(w.hi, v.hi, carry) // both less than 2^63
		return wide{negative: w.negative && hi|lo != 0, hi: hi, lo: lo}, hi>>63 == 0
	}
	negative := w.negative
	if w.hi < v.hi || w.hi == v.hi && w.lo < v.lo {
		w, v, negative = v, w, !negative
	}
	lo, borrow := bits.Sub64(w.lo, v.lo, 0)
	hi, _ := bits.Sub64(w.hi, v.hi, borrow)
	return wide{negative: negative && hi|lo != 0, hi: hi, lo: lo}, true
}

// appendMillionths appends w millionths as a number with six decimals.
//
// At least one digit comes before the point. 127 bits have at most 39 digits: a chunk of 19 and up
// to 20 above it.
func appendMillionths(b []byte, w wide) []byte {
	const chunk, chunkDigits, decimals = 1e19, 19, 6
	if w.negative {
		b = append(b, '-')
	}
	var room [48]byte
	high, low := bits.Div64(w.hi, w.lo, chunk)
	digits := room[:0]
	if high > 0 {
		digits = appendPadded(strconv.AppendUint(digits, high, 10), low, chunkDigits)
	} else {
		digits = appendPadded(digits, low, decimals+1)
	}
	whole := len(digits) - decimals
	b = append(append(b, digits[:whole]...), '.')
	return append(b, digits[whole:]...)
}

// appendPadded appends n with zeros before it up to width digits.
func appendPadded(b []byte, n uint64, width int) []byte {
	var room [20]byte
	digits := strconv.AppendUint(room[:0], n, 10)
	for pad := width - len(digits); pad > 0; pad-- {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// appendDecimal appends a number of millionths with six decimals.
func appendDecimal(b []byte, millionths int64) []byte {
	return appendMillionths(b, product(millionths, 1))
}
