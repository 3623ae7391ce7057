package store

import "posttrade/matcher/timetext"

// endMillis is the end of 2149-06-06, day 65535 of the epoch: the last date of the product. The
// first date is 1970-01-01.
const endMillis = 65536 * 24 * 60 * 60 * 1000

// ParseExactTime reads the time of a booking, RFC 3339, exactly to the millisecond: digits after
// the third decimal must be zeros. A time outside of the product's dates is refused.
func ParseExactTime[T ~string | ~[]byte](s T) (millis int64, ok bool) {
	millis, exact, ok := timetext.Parse(s)
	return millis, ok && exact && 0 <= millis && millis < endMillis
}
