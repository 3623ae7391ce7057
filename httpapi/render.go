//perf:hot

package httpapi

import (
	"posttrade/matcher/strictjson"
	"posttrade/matcher/timetext"
)

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

// appendTime appends epoch milliseconds as a JSON string.
func appendTime(b []byte, millis int64) []byte {
	return append(timetext.Append(append(b, '"'), millis), '"')
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
