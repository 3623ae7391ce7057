package timetext

import "time"

// Parse reads an RFC 3339 time, with Z or with an offset, as epoch milliseconds. It is stricter
// than time.Parse, which accepts a comma for the point, an hour of one digit, and offsets of more
// than a day. Letters are upper case, and there is no second 60.
//
// exact is false when there is more behind the milliseconds than zeros: the time is then within the
// millisecond that is returned. It allocates nothing.
func Parse[T ~string | ~[]byte](s T) (millis int64, exact, ok bool) {
	const whole = "2006-01-02T15:04:05"
	if len(s) <= len(whole) || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
		s[13] != ':' || s[16] != ':' {
		return 0, false, false
	}
	ok = true
	number := func(from, to, most int) int {
		v := 0
		for at := from; at < to; at++ {
			ok = ok && '0' <= s[at] && s[at] <= '9'
			v = v*10 + int(s[at]-'0')
		}
		ok = ok && v <= most
		return v
	}
	year, month, day := number(0, 4, 9999), number(5, 7, 12), number(8, 10, 31)
	hour, minute, second := number(11, 13, 23), number(14, 16, 59), number(17, 19, 59)
	fraction, exact, at := parseFraction(s, len(whole))
	offset := 0
	switch rest := len(s) - at; {
	case rest == 1 && s[at] == 'Z':
	case rest == 6 && (s[at] == '+' || s[at] == '-') && s[at+3] == ':':
		offset = number(at+1, at+3, 23)*60 + number(at+4, at+6, 59)
		if s[at] == '-' {
			offset = -offset
		}
	default:
		return 0, false, false
	}
	if !ok || month == 0 || day == 0 {
		return 0, false, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	// time.Date turns a day that the month does not have into one of the next month
	return t.UnixMilli() + int64(fraction) - int64(offset)*60_000, exact, t.Day() == day
}

// parseFraction reads the milliseconds behind a point at s[at], if there is one, and returns where
// the digits end. A point without a digit behind it ends where it is, so that no zone follows.
func parseFraction[T ~string | ~[]byte](s T, at int) (millis int, exact bool, end int) {
	exact = true
	if s[at] != '.' {
		return 0, exact, at
	}
	for end, unit := at+1, 100; ; end++ {
		if end == len(s) || s[end] < '0' || s[end] > '9' {
			if end == at+1 {
				end = at
			}
			return millis, exact, end
		}
		digit := int(s[end] - '0')
		exact = exact && (unit > 0 || digit == 0)
		millis += digit * unit
		unit /= 10
	}
}
