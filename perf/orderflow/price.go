package orderflow

import (
	"fmt"
	"strconv"
	"strings"

	"posttrade/matcher"
)

// ParsePrice reads a decimal above 0 with at most 6 decimals into millionths. It takes no sign, no
// exponent and no blanks, and a point only between digits. Any other text, and a price above what
// 63 bits hold, is an error without the text; the caller names it.
func ParsePrice(s string) (int64, error) {
	whole, fraction, dotted := strings.Cut(s, ".")
	if dotted && fraction == "" || len(fraction) > 6 {
		return 0, errNumber
	}
	units, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || units > (1<<63-1)/matcher.PriceScale {
		return 0, errNumber
	}
	micros, err := strconv.ParseUint((fraction + "000000")[:6], 10, 32)
	if err != nil {
		return 0, errNumber
	}
	px := units*matcher.PriceScale + micros
	if px == 0 || px > 1<<63-1 {
		return 0, errNumber
	}
	return int64(px), nil
}

// AppendPrice appends millionths to b as a decimal without trailing zeros, 1.5 for 1,500,000.
// ParsePrice reads the same number back, but for 0, which it refuses. A negative price is a bug of
// the caller and panics.
func AppendPrice(b []byte, px int64) []byte {
	if px < 0 {
		panic(fmt.Sprintf("orderflow: price %d", px))
	}
	b = strconv.AppendInt(b, px/matcher.PriceScale, 10)
	micros := px % matcher.PriceScale
	if micros == 0 {
		return b
	}
	b = append(b, '.')
	for scale := int64(matcher.PriceScale / 10); micros > 0; scale /= 10 {
		b = append(b, byte('0'+micros/scale))
		micros %= scale
	}
	return b
}
