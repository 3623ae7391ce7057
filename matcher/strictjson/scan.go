//perf:hot

package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// The scanning functions read text as programs write it: no escapes, only printable ASCII within
// strings, short numbers. Each reads what starts at index i of b and returns the index behind it,
// or 0 when it meets anything else. A 0 is no verdict on the text: the caller has taken the text
// from Reader.Ahead and lets the Reader read it again, strictly, and report what is wrong.

// Ahead returns the unread text from the value that is due on, nil when none is due or after an
// error. The caller must not write to it. It is the whole rest of the input, not only the value.
func (r *Reader) Ahead() []byte {
	if r.err != nil || !r.due {
		return nil
	}
	r.space()
	return r.buf[r.pos:]
}

// Take continues behind the value that is due, after the caller has scanned its n bytes. Take
// believes the caller: the value must be one whole JSON value, with no key twice.
func (r *Reader) Take(n int) {
	if r.err != nil || !r.due || n > len(r.buf)-r.pos {
		r.fail(ErrMisuse)
		return
	}
	r.pos += n
	r.due = false
}

// ScanText reads a string and returns the text between its quotes, which is a part of b: printable
// ASCII without a quote or a backslash. Eight bytes a step.
func ScanText(b []byte, i int) (text []byte, end int) {
	const ones = 0x0101010101010101
	if i >= len(b) || b[i] != '"' {
		return nil, 0
	}
	start := i + 1
	for i = start; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		// First line: control characters, DEL and bytes that are not ASCII.
		special := (w - ones*' ') | (w + ones) | w |
			(quote-ones)&^quote | (slash-ones)&^slash
		if special &= ones << 7; special != 0 {
			i += bits.TrailingZeros64(special) / 8
			if b[i] != '"' {
				return nil, 0
			}
			return b[start:i:i], i + 1
		}
	}
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return b[start:i:i], i + 1
		case c < ' ' || c > '~' || c == '\\':
			return nil, 0
		}
	}
	return nil, 0
}

// ScanInt reads a whole number without a sign.
func ScanInt(b []byte, i int) (value int64, end int) { return scanNumber(b, i, 0) }

// ScanDecimal reads a number without sign or exponent as millionths. A number with more than six
// decimals is not scanned, also when the others are zeros: the Reader judges it.
func ScanDecimal(b []byte, i int) (value int64, end int) { return scanNumber(b, i, decimals) }

// scanNumber reads a number with 1 to 12 digits before the point and at most places digits behind
// it, and returns it times 10^places. 12 and 6 digits fit an int64, so nothing overflows. A number
// at the very end of b is not scanned: something must end it.
func scanNumber(b []byte, i, places int) (value int64, end int) {
	if i < len(b) && b[i] == '0' { // 0.5, but also 007
		return 0, 0
	}
	v, i := scanDigits(b, i, 12, 0)
	if i == 0 {
		return 0, 0
	}
	if b[i] == '.' && places > 0 {
		point := i
		if v, i = scanDigits(b, i+1, places, v); i == 0 {
			return 0, 0
		}
		places -= i - point - 1
	}
	if c := b[i]; c == '.' || c|0x20 == 'e' {
		return 0, 0
	}
	return int64(v * powers[places]), i
}

// scanDigits reads 1 to most decimal digits behind those of v. The index that it returns is one of
// b.
func scanDigits(b []byte, i, most int, v uint64) (value uint64, end int) {
	for from := i; i < len(b); i++ {
		d := b[i] - '0'
		switch {
		case d <= 9 && i-from < most:
			v = v*10 + uint64(d)
		case d <= 9 || i == from:
			return 0, 0
		default:
			return v, i
		}
	}
	return 0, 0
}
