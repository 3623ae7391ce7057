package projection

import "time"

// endMillis is the end of 2149-06-06, day 65535 of the epoch: the last date of the product. The
// first date is 1970-01-01.
const endMillis = 65536 * 24 * 60 * 60 * 1000

// parseTime reads an RFC 3339 time, with Z or with an offset, exactly to the millisecond: digits
// after the third decimal must be zeros. It is stricter than time.Parse, which accepts a comma for
// the point, an hour of one digit, and offsets of more than a day. Letters are upper case, and
// there is no second 60.
//
// The result is UTC, in milliseconds since 1970; a time outside of the product's dates is refused.
// It allocates nothing.
func parseTime(s []byte) (millis int64, ok bool) {
	const whole = "2006-01-02T15:04:05"
	if len(s) <= len(whole) || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
		s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	ok = true
	number := func(from, to, most int) int {
		v := 0
		for _, c := range s[from:to] {
			ok = ok && '0' <= c && c <= '9'
			v = v*10 + int(c-'0')
		}
		ok = ok && v <= most
		return v
	}
	year, month, day := number(0, 4, 9999), number(5, 7, 12), number(8, 10, 31)
	hour, minute, second := number(11, 13, 23), number(14, 16, 59), number(17, 19, 59)
	fraction, at, exact := parseFraction(s, len(whole))
	ok = ok && exact
	offset := 0
	switch rest := len(s) - at; {
	case rest == 1 && s[at] == 'Z':
	case rest == 6 && (s[at] == '+' || s[at] == '-') && s[at+3] == ':':
		offset = number(at+1, at+3, 23)*60 + number(at+4, at+6, 59)
		if s[at] == '-' {
			offset = -offset
		}
	default:
		return 0, false
	}
	if !ok || month == 0 || day == 0 {
		return 0, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second,
		fraction*int(time.Millisecond), time.UTC)
	// time.Date turns a day that the month does not have into one of the next month
	if t.Day() != day {
		return 0, false
	}
	millis = t.UnixMilli() - int64(offset)*60_000
	return millis, 0 <= millis && millis < endMillis
}

// parseFraction reads the milliseconds behind a point at s[at], if there is one, and returns where
// they end. They must be exact.
//
// A point without a digit behind it is not ok.
func parseFraction(s []byte, at int) (millis, end int, ok bool) {
	if s[at] != '.' {
		return 0, at, true
	}
	first := at + 1
	ok = true
	for at, unit := first, 100; ; at++ {
		if at == len(s) || s[at] < '0' || s[at] > '9' {
			return millis, at, ok && at > first
		}
		digit := int(s[at] - '0')
		ok = ok && (unit > 0 || digit == 0)
		millis += digit * unit
		unit /= 10
	}
}
