//perf:hot

package httpapi

import "posttrade/matcher/strictjson"

// appendEach appends the documents of rows with commas between them.
//
// The caller writes the brackets. document must not keep the row.
func appendEach[T any](b []byte, rows []T, document func([]byte, *T) []byte) []byte {
	for i := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = document(b, &rows[i])
	}
	return b
}

// appendDecimal appends millionths as a number without trailing zeros.
func appendDecimal(b []byte, v int64) []byte { return strictjson.FormatDecimal(b, v) }

// pairs are the numbers of two digits, one after the other.
const pairs = "00010203040506070809" + "10111213141516171819" + "20212223242526272829" +
	"30313233343536373839" + "40414243444546474849" + "50515253545556575859" +
	"60616263646566676869" + "70717273747576777879" + "80818283848586878889" + "90919293949596979899"

// appendUint appends a decimal number.
//
// Two digits at a time: half the divisions of the plain way.
func appendUint(b []byte, n uint64) []byte {
	var digits [20]byte
	at := len(digits)
	for n >= 100 {
		pair := n % 100 * 2
		n /= 100
		at -= 2
		digits[at], digits[at+1] = pairs[pair], pairs[pair+1]
	}
	if n >= 10 {
		at--
		digits[at] = byte('0' + n%10)
		n /= 10
	}
	at--
	digits[at] = byte('0' + n)
	return append(b, digits[at:]...)
}

// appendInt appends a decimal number; the smallest int64 as well.
func appendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendUint(append(b, '-'), -uint64(n))
	}
	return appendUint(b, uint64(n))
}

// appendString appends text as a JSON string.
func appendString[T string | []byte](b []byte, text T) []byte {
	return strictjson.AppendString(b, text)
}

// appendTime appends epoch milliseconds as an RFC 3339 UTC string with milliseconds. Years from 0
// to 9999 have four digits; other times are clipped.
//
// It writes what time.Format would, without an allocation.
func appendTime(b []byte, millis int64) []byte {
	const (
		earliest = -62167219200000 // 0000-01-01T00:00:00Z
		latest   = 253402300799999 // 9999-12-31T23:59:59.999Z
		dayMs    = 86_400_000
	)
	millis = min(max(millis, earliest), latest)
	days := millis / dayMs
	rest := millis % dayMs
	if rest < 0 {
		days, rest = days-1, rest+dayMs
	}
	year, month, day := civil(days)
	b = append(b, '"', byte('0'+year/1000), byte('0'+year/100%10), byte('0'+year/10%10),
		byte('0'+year%10), '-')
	b = append2(b, month)
	b = append2(append(b, '-'), day)
	b = append2(append(b, 'T'), rest/3_600_000)
	b = append2(append(b, ':'), rest/60_000%60)
	b = append2(append(b, ':'), rest/1000%60)
	ms := rest % 1000
	return append(b, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z', '"')
}

// timeText keeps the text of the times of the order that was appended last, up to the next member:
// the orders of a batch share their times. The zero timeText is ready for use.
//
// One goroutine uses it. The key of the cache is both times together.
type timeText struct {
	created, updated int64
	text             []byte // empty: nothing was appended yet
}

// append appends the text from the value of createdAt to the name of the member sequence.
func (t *timeText) append(b []byte, created, updated int64) []byte {
	if created != t.created || updated != t.updated || len(t.text) == 0 {
		t.created, t.updated = created, updated
		t.text = appendTime(t.text[:0], created)
		one := t.text
		t.text = append(t.text, `,"updatedAt":`...)
		if updated == created {
			t.text = append(t.text, one...)
		} else {
			t.text = appendTime(t.text, updated)
		}
		t.text = append(t.text, `,"sequence":`...)
	}
	return append(b, t.text...)
}

// civil is the date of an epoch day, with years that start in March (H. Hinnant's algorithm).
func civil(days int64) (year, month, day int64) {
	days += 719468
	era := days / 146097
	if days < 0 {
		era = (days - 146096) / 146097
	}
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	day = dayOfYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	year = yearOfEra + era*400
	if month > 12 {
		month, year = month-12, year+1
	}
	return year, month, day
}

// append2 appends a number of 0 to 99 as two digits.
func append2(b []byte, n int64) []byte {
	return append(b, byte('0'+n/10), byte('0'+n%10))
}
