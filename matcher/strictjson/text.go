//perf:hot

package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// String reads a string, and returns nil after an error. The bytes are valid until Reset and must
// not be written: they are the input itself, or the scratch for a string with escapes.
func (r *Reader) String() []byte {
	c := r.value()
	if c != '"' {
		r.mismatch(c)
		return nil
	}
	s, control := r.text()
	if control {
		r.fail(ErrControl)
	}
	if r.err != nil {
		return nil
	}
	r.due = false
	return s
}

// text reads the string with its opening quote at pos, and leaves pos behind its closing one.
// control: it holds an escaped control character. A string without escapes is a part of the input,
// and costs no copy.
func (r *Reader) text() (s []byte, control bool) {
	b, start := r.buf, r.pos+1
	i := plain(b, start)
	if i == len(b) {
		r.pos = i
		r.fail(ErrTruncated)
		return nil, false
	}
	switch b[i] {
	case '"':
		r.pos = i + 1
		return b[start:i:i], false
	case '\\':
		return r.unescape(start, i)
	}
	r.pos = i
	r.fail(ErrControl)
	return nil, false
}

// plain returns the index, from i on, of the first byte that does not stand for itself within a
// string, len(b) if there is none: a quote, a backslash or a control character. It tests eight
// bytes at a time. The lowest byte with its upper bit set in special is such a byte; a mark on a
// byte above it may be false.
func plain(b []byte, i int) int {
	const ones = 0x0101010101010101
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		special := ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & (ones << 7)
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// unescape continues behind the first backslash, at i, of the string that begins at start. It
// copies the string into scratch. An escaped control character is only reported: String refuses it,
// Skip does not.
func (r *Reader) unescape(start, i int) (s []byte, control bool) {
	b, from := r.buf, len(r.scratch)
	out := append(r.scratch, b[start:i]...)
	for i < len(b) {
		c := b[i]
		if c == '"' {
			r.pos, r.scratch = i+1, out
			return out[from:len(out):len(out)], control
		}
		if c < ' ' {
			r.pos = i
			r.fail(ErrControl)
			return nil, false
		}
		i++
		if c != '\\' {
			out = append(out, c)
			continue
		}
		if i == len(b) {
			break
		}
		e := b[i]
		i++
		switch e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b', 'f', 'n', 'r', 't':
			out, control = append(out, ' '), true // the caller gets control
		case 'u':
			u, width, err := rune16(b[i:])
			if err != nil {
				r.pos = i
				r.fail(err)
				return nil, false
			}
			i += width
			control = control || u < ' '
			out = utf8.AppendRune(out, u)
		default:
			r.pos = i - 1
			r.fail(ErrEscape)
			return nil, false
		}
	}
	r.pos = len(b)
	r.fail(ErrTruncated)
	return nil, false
}

// rune16 reads the digits behind \u and, for a surrogate, the other half of the pair. width is how
// many bytes it has read. Half a pair is ErrSurrogate: it stands for no character and could not be
// written in UTF-8.
func rune16(b []byte) (u rune, width int, err error) {
	u, err = hex4(b)
	if err != nil || u < 0xD800 || u > 0xDFFF {
		return u, 4, err
	}
	if u > 0xDBFF || len(b) < 6 || b[4] != '\\' || b[5] != 'u' {
		return 0, 0, ErrSurrogate
	}
	low, err := hex4(b[6:])
	if err != nil {
		return 0, 0, err
	}
	if low < 0xDC00 || low > 0xDFFF {
		return 0, 0, ErrSurrogate
	}
	return (u-0xD800)<<10 + (low - 0xDC00) + 0x10000, 10, nil
}

// hex4 reads four hexadecimal digits of either case.
func hex4(b []byte) (u rune, err error) {
	if len(b) < 4 {
		return 0, ErrTruncated
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, ErrEscape
		}
		u = u<<4 | rune(c)
	}
	return u, nil
}
