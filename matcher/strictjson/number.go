//perf:hot

package strictjson

// Int reads a whole number, written with digits only, and 0 after an error. Errors: ErrNotWhole for
// a fraction or an exponent, also of a whole value; ErrRange beyond int64; ErrType for another kind
// of value. No allocation.
func (r *Reader) Int() int64 {
	if v, end := r.short(0); end != 0 {
		r.pos, r.due = end, false
		return v
	}
	c := r.value()
	if kindOf(c) != KindNumber {
		r.mismatch(c)
		return 0
	}
	n := r.number()
	if n == nil {
		return 0
	}
	v, err := parseInt(n)
	if err != nil {
		r.fail(err)
		return 0
	}
	r.due = false
	return v
}

// short scans the number that is due, if it is written in the short form (scan.go). Otherwise it
// reads nothing and returns the index 0; the strict path then reads the same text.
func (r *Reader) short(places int) (value int64, end int) {
	if !r.due || r.err != nil {
		return 0, 0
	}
	return scanNumber(r.buf, r.pos, places)
}

// parseInt converts a number in JSON's grammar to an integer: ErrNotWhole or ErrRange. -0 is 0.
func parseInt(n []byte) (int64, error) {
	negative := n[0] == '-'
	if negative {
		n = n[1:]
	}
	limit := uint64(1)<<63 - 1
	if negative {
		limit++
	}
	var v uint64
	for _, c := range n {
		if c < '0' || c > '9' {
			return 0, ErrNotWhole
		}
		d := uint64(c - '0')
		if v > (limit-d)/10 {
			// A fraction may follow the digits: that error comes first.
			for _, c := range n {
				if c < '0' || c > '9' {
					return 0, ErrNotWhole
				}
			}
			return 0, ErrRange
		}
		v = v*10 + d
	}
	if negative {
		return -int64(v), nil
	}
	return int64(v), nil
}

// Decimal reads a number, or a string that holds one in the same grammar, as millionths; 0 after an
// error. The package comment says which values are exact enough. Errors: ErrPrecision, ErrRange,
// ErrNumber for a string that holds none, ErrType. No allocation, except for a string with escapes.
func (r *Reader) Decimal() int64 {
	if v, end := r.short(decimals); end != 0 {
		r.pos, r.due = end, false
		return v
	}
	c := r.value()
	var n []byte
	switch kindOf(c) {
	case KindNumber:
		n = r.number()
	case KindString:
		s, control := r.text()
		if r.err == nil && (control || numberEnd(s) != len(s) || len(s) == 0) {
			r.fail(ErrNumber)
		}
		n = s
	default:
		r.mismatch(c)
	}
	if r.err != nil {
		return 0
	}
	v, err := decimal(n)
	if err != nil {
		r.fail(err)
		return 0
	}
	r.due = false
	return v
}

// number reads the number at pos and returns its text, nil if it is malformed.
func (r *Reader) number() []byte {
	rest := r.buf[r.pos:]
	end := numberEnd(rest)
	if end == 0 {
		r.fail(ErrNumber)
		return nil
	}
	r.pos += end
	return rest[:end]
}

// numberEnd returns the length of the number that b starts with, 0 if it starts with none. It does
// not check letters right behind the number: whatever follows must be a separator, and the next
// call finds out.
func numberEnd(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i == len(b) || b[i] < '0' || b[i] > '9':
		return 0
	case b[i] == '0':
		if i++; digits(b, i) != i {
			return 0 // a leading zero
		}
	default:
		i = digits(b, i)
	}
	if i < len(b) && b[i] == '.' {
		end := digits(b, i+1)
		if end == i+1 {
			return 0
		}
		i = end
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := digits(b, i)
		if end == i {
			return 0
		}
		i = end
	}
	return i
}

// digits returns the index behind the decimal digits of b from i on.
func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
