package int128

import (
	"math/big"
	"math/bits"
)

// Int is a signed 128-bit integer in two's complement. The zero Int is 0. No method changes its
// receiver.
type Int struct {
	Hi int64
	Lo uint64
}

// Of is n.
func Of(n int64) Int { return Int{n >> 63, uint64(n)} }

// Product is a x b, which always fits.
func Product(a, b int64) Int {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	return signed(hi, lo, (a < 0) != (b < 0))
}

// Scaled is a x n, which always fits. a is not negative.
func Scaled(a int64, n uint64) Int {
	hi, lo := bits.Mul64(uint64(a), n)
	return Int{int64(hi), lo}
}

// magnitude is |a|, also for the least int64.
func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// signed is a magnitude of at most 2^127 with its sign.
func signed(hi, lo uint64, negative bool) Int {
	v := Int{int64(hi), lo}
	if negative {
		return v.Neg()
	}
	return v
}

// Add is v + w. It wraps around at 128 bits.
func (v Int) Add(w Int) Int {
	lo, carry := bits.Add64(v.Lo, w.Lo, 0)
	return Int{v.Hi + w.Hi + int64(carry), lo}
}

// Sub is v - w. It wraps around at 128 bits.
func (v Int) Sub(w Int) Int {
	lo, borrow := bits.Sub64(v.Lo, w.Lo, 0)
	return Int{v.Hi - w.Hi - int64(borrow), lo}
}

// Neg is -v. The least Int is its own negative.
func (v Int) Neg() Int { return Int{}.Sub(v) }

// Magnitude is |v| as two words.
func (v Int) Magnitude() (hi, lo uint64) {
	if v.Hi < 0 {
		v = v.Neg()
	}
	return uint64(v.Hi), v.Lo
}

// Difference is v - w; false when its magnitude is 2^127 or more.
func (v Int) Difference(w Int) (Int, bool) {
	d := v.Sub(w)
	over := (v.Hi < 0) != (w.Hi < 0) && (d.Hi < 0) != (v.Hi < 0)
	return d, !over && d != Int{Hi: -1 << 63}
}

// Times is v x m; false when its magnitude is 2^127 or more.
func (v Int) Times(m uint32) (Int, bool) {
	hi, lo := v.Magnitude()
	carry, lo := bits.Mul64(lo, uint64(m))
	over, hi := bits.Mul64(hi, uint64(m))
	hi, c := bits.Add64(hi, carry, 0)
	return signed(hi, lo, v.Hi < 0), over|c|hi>>63 == 0
}

// Big is v as a big.Int.
func (v Int) Big() *big.Int {
	b := big.NewInt(v.Hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(v.Lo))
}

// FromBig is the inverse of Big, for a value that fits.
func FromBig(b *big.Int) Int {
	m := new(big.Int).Abs(b)
	lo := new(big.Int).And(m, new(big.Int).SetUint64(1<<64-1)).Uint64()
	return signed(m.Rsh(m, 64).Uint64(), lo, b.Sign() < 0)
}
