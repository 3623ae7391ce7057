package riskextract

import (
	"math/bits"
	"strconv"

	"posttrade/matcher/int128"
)

// appendMillionths appends w millionths as a number with six decimals.
//
// At least one digit comes before the point. 127 bits have at most 39 digits: a chunk of 19 and up
// to 20 above it.
func appendMillionths(b []byte, w int128.Int) []byte {
	const chunk, chunkDigits, decimals = 1e19, 19, 6
	if w.Hi < 0 {
		b = append(b, '-')
	}
	hi, lo := w.Magnitude()
	var room [48]byte
	high, low := bits.Div64(hi, lo, chunk)
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
	return appendMillionths(b, int128.Of(millionths))
}
