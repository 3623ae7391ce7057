//perf:hot

package matcher

import "math/bits"

// The rules that engine, gate and sessions share. Each of them judges by itself, from its own
// state; the arithmetic is here once.

// BeyondCollar reports whether a limit is further from the last price than the collar allows,
// whatever the age of that price. A last price or a collar of 0 is none. The products are compared
// in 128 bits.
func (l *RiskLimits) BeyondCollar(limit, last int64) bool {
	if last == 0 || l[LimitCollar] == 0 {
		return false
	}
	offHi, offLo := bits.Mul64(uint64(abs(limit-last)), 10_000)
	maxHi, maxLo := bits.Mul64(uint64(last), uint64(l[LimitCollar]))
	return offHi > maxHi || offHi == maxHi && offLo > maxLo
}

// CollarOff returns how far the collar reaches from a price, at most to the end of the range; 0
// without a collar. The product is computed in 128 bits. It rounds down: the bound is never beyond
// the collar.
func (l *RiskLimits) CollarOff(px int64) int64 {
	hi, lo := bits.Mul64(uint64(px), uint64(l[LimitCollar]))
	if hi >= 10_000 {
		return maxInt64
	}
	off, _ := bits.Div64(hi, lo, 10_000)
	return int64(min(off, maxInt64))
}

// Stale reports whether a price of time at is too old at time now, by event times alone. A time
// before the price's counts as age 0. The difference is taken unsigned, so it cannot overflow.
func (l *RiskLimits) Stale(now, at int64) bool {
	return now > at && uint64(now)-uint64(at) > uint64(l[LimitPriceAge])
}

// Coherent reports that the flags of an order do not contradict each other: at most one of IOC, FOK
// and post-only, and no post-only market order, which never rests.
func Coherent(flags uint16, market bool) bool {
	force := flags & (FlagIOC | FlagFOK | FlagPostOnly)
	return force&(force-1) == 0 && !(market && force == FlagPostOnly)
}
