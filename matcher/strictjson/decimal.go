//perf:hot

package strictjson

import "math/bits"

// Values are whole millionths, as everywhere in this module. The bound of the exponent keeps sums
// of exponent and digits far from overflow.
const (
	decimals    = 6  // digits behind the point that a value in millionths holds
	maxExponent = 99 // larger ones, positive or negative, are out of range whatever the digits
)

// powers are the powers of ten that fit 64 bits.
var powers = [20]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// ParseDecimal converts a number in JSON's grammar (no sign +, no leading zeros, no white space) to
// millionths, exactly: "101.25" is 101250000. The range is that of int64, so about 9.2e12 whole
// units on either side of zero.
//
// Errors: ErrNumber, ErrPrecision, ErrRange. No allocation.
func ParseDecimal(n []byte) (int64, error) {
	if end := numberEnd(n); end == 0 || end != len(n) {
		return 0, ErrNumber
	}
	return decimal(n)
}

// decimal is ParseDecimal of a text after the check of its grammar.
//
// It collects the significant digits without the zeros behind the last of them, so that the rest
// below a millionth is never zero. power is the power of ten that turns the digits read so far into
// millionths; an overflow is noted and not reported at once, because a digit below a millionth is
// the error that comes first.
func decimal(n []byte) (int64, error) {
	i, negative := 0, false
	if n[0] == '-' {
		i, negative = 1, true
	}
	var (
		value    uint64 // the significant digits so far
		zeros    int    // zeros behind them so far
		power    = decimals
		fraction bool
		overflow bool
	)
	for ; i < len(n); i++ {
		c := n[i]
		if c == '.' {
			fraction = true
			continue
		}
		if c == 'e' || c == 'E' {
			break
		}
		if fraction {
			power--
		}
		if c == '0' {
			zeros++
			continue
		}
		if !overflow {
			value, overflow = shift(value, zeros+1, uint64(c-'0'))
		}
		zeros = 0
	}
	if i < len(n) {
		e, err := exponent(n[i+1:])
		if err != nil {
			return 0, err
		}
		power += e
	}
	power += zeros
	switch {
	case value == 0 && !overflow:
		return 0, nil
	case power < 0:
		return 0, ErrPrecision
	}
	if !overflow {
		value, overflow = shift(value, power, 0)
	}
	limit := uint64(1)<<63 - 1
	if negative {
		limit++
	}
	switch {
	case overflow || value > limit:
		return 0, ErrRange
	case negative:
		return -int64(value), nil
	}
	return int64(value), nil
}

// shift returns value * 10^by + digit, or true if 64 bits do not hold it. A value of 0 stays 0 for
// any shift, so leading zeros never overflow.
func shift(value uint64, by int, digit uint64) (uint64, bool) {
	if value == 0 {
		return digit, false
	}
	if by >= len(powers) {
		return 0, true
	}
	high, low := bits.Mul64(value, powers[by])
	low, carry := bits.Add64(low, digit, 0)
	return low, high+carry != 0
}

// exponent reads the digits behind an e. ErrRange beyond maxExponent, whatever the digits before
// it. The grammar has been checked, so there is at least one digit.
func exponent(n []byte) (int, error) {
	negative := n[0] == '-'
	if negative || n[0] == '+' {
		n = n[1:]
	}
	e := 0
	for _, c := range n {
		if e = e*10 + int(c-'0'); e > maxExponent {
			return 0, ErrRange
		}
	}
	if negative {
		return -e, nil
	}
	return e, nil
}

// FormatDecimal appends v millionths as a JSON number without trailing zeros: 101250000 is 101.25.
// It does not allocate when dst has room for 21 bytes. ParseDecimal reads exactly the same value
// back, also the lowest int64.
func FormatDecimal(dst []byte, v int64) []byte {
	const one = 1_000_000
	u := uint64(v)
	if v < 0 {
		dst, u = append(dst, '-'), -u
	}
	var text [21]byte
	at, end := len(text)-decimals, len(text)-decimals
	if rest := uint32(u % one); rest != 0 {
		for i := len(text) - 1; i >= at; i-- {
			text[i] = byte('0' + rest%10)
			rest /= 10
		}
		for end = len(text); text[end-1] == '0'; {
			end--
		}
		at--
		text[at] = '.'
	}
	for whole := u / one; ; {
		at--
		text[at] = byte('0' + whole%10)
		if whole /= 10; whole == 0 {
			return append(dst, text[at:end]...)
		}
	}
}
