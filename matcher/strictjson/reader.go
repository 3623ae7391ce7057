//perf:hot

package strictjson

import "unicode/utf8"

// Limits of what a Reader takes.
const (
	MaxDepth    = 16
	MaxKeys     = 64
	MaxKeyBytes = 256
	MaxBytes    = 32 << 20
)

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. KindInvalid is the end of the input, a byte that starts no value, or an earlier error.
const (
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNumber
	KindString
	KindArray
	KindObject
)

// Reader reads one JSON text; see the package comment. The zero Reader is empty: Reset first.
//
// Invariants: 0 <= pos <= len(buf); depth <= MaxDepth; keys[base[d]:] up to the
// next level's base are the keys met in the object open at depth d.
type Reader struct {
	buf     []byte
	scratch []byte // unescaped strings; only grows until the next Reset
	pos     int
	err     error
	depth   int
	nkeys   int
	objects uint32 // bit d: the container open at depth d is an object
	due     bool   // a value is due: at the start, behind a key, at an item
	fresh   bool   // the innermost container has shown no member yet
	base    [MaxDepth + 1]uint8
	keys    [MaxKeys]keyRef
}

// keyRef is a key that was met: where it lies and a mark that differs for most
// others. Two keys with one mark are compared byte by byte.
type keyRef struct {
	at   uint32 // in buf, or with inScratch in scratch
	n    uint16
	mark uint16
}

const inScratch = 1 << 31

// Reset starts over with b, which the Reader keeps and never writes. What
// earlier calls returned is no longer valid.
func (r *Reader) Reset(b []byte) {
	r.buf, r.scratch = b, r.scratch[:0]
	r.pos, r.depth, r.nkeys, r.objects = 0, 0, 0, 0
	r.err, r.due, r.fresh = nil, true, false
	switch {
	case len(b) > MaxBytes:
		r.fail(ErrTooLong)
	case len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF:
		r.fail(ErrBOM)
	case !utf8.Valid(b):
		r.fail(ErrUTF8)
	}
}

// Err is the first error, or nil so far.
func (r *Reader) Err() error { return r.err }

// Offset is where reading stands or, after an error, where it stopped.
func (r *Reader) Offset() int { return r.pos }

// Fail makes err the Reader's error unless it has one: for what the reading
// code refuses itself, such as an unknown field.
func (r *Reader) Fail(err error) { r.fail(err) }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// End checks that exactly one value was read, whole, and nothing stands behind
// it. It returns the first error of the whole reading.
func (r *Reader) End() error {
	if r.err != nil {
		return r.err
	}
	if r.due || r.depth != 0 {
		r.fail(ErrMisuse)
		return r.err
	}
	r.space()
	if r.pos != len(r.buf) {
		r.fail(ErrTrailing)
	}
	return r.err
}

// space skips white space.
func (r *Reader) space() {
	b, i := r.buf, r.pos
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	r.pos = i
}

// next skips white space and returns the byte there, 0 at the end of the text or after an error.
func (r *Reader) next() byte {
	if r.err != nil {
		return 0
	}
	r.space()
	if r.pos == len(r.buf) {
		r.fail(ErrTruncated)
		return 0
	}
	return r.buf[r.pos]
}

// value is next where a value must be due.
func (r *Reader) value() byte {
	if !r.due {
		r.fail(ErrMisuse)
		return 0
	}
	return r.next()
}

// kindOf tells a value by its first byte.
func kindOf(c byte) Kind {
	switch c {
	case '"':
		return KindString
	case '{':
		return KindObject
	case '[':
		return KindArray
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return KindNumber
	}
	return KindInvalid
}

// Peek returns the kind of the value that is due, without reading it.
func (r *Reader) Peek() Kind { return kindOf(r.value()) }

// mismatch notes why the value starting with c is not of the kind asked for.
func (r *Reader) mismatch(c byte) {
	if kindOf(c) == KindInvalid {
		r.fail(ErrSyntax)
	} else {
		r.fail(ErrType)
	}
}

// open enters an object or array.
func (r *Reader) open(bracket byte, object uint32) {
	c := r.value()
	if c != bracket {
		r.mismatch(c)
		return
	}
	if r.depth == MaxDepth {
		r.fail(ErrDepth)
		return
	}
	r.pos++
	r.depth++
	r.objects = r.objects&^(1<<r.depth) | object<<r.depth
	r.base[r.depth] = uint8(r.nkeys)
	r.due, r.fresh = false, true
}

// close leaves the innermost container.
func (r *Reader) close() {
	r.pos++
	r.nkeys = int(r.base[r.depth])
	r.depth--
	r.fresh = false
}

// member goes to the next member of the innermost container and reports whether
// there is one; at the closing bracket it leaves the container.
func (r *Reader) member(bracket byte, object uint32) bool {
	if r.err != nil {
		return false
	}
	if r.due || r.depth == 0 || r.objects>>r.depth&1 != object {
		r.fail(ErrMisuse)
		return false
	}
	c := r.next()
	if c == bracket {
		r.close()
		return false
	}
	if r.fresh {
		r.fresh = false
		return r.err == nil
	}
	if c != ',' {
		r.fail(ErrSyntax)
		return false
	}
	r.pos++
	return true
}

// BeginObject enters the object that is due; then call NextKey until it returns false.
func (r *Reader) BeginObject() { r.open('{', 1) }

// BeginArray enters the array that is due; then call NextItem until it returns false.
func (r *Reader) BeginArray() { r.open('[', 0) }

// NextItem goes to the array's next item, whose value is then due. It returns
// false behind the last one, or after an error.
func (r *Reader) NextItem() bool {
	r.due = r.member(']', 0)
	return r.due
}

// NextKey returns the object's next key, whose value is then due. It returns
// false behind the last one, or after an error. The key is valid until Reset.
func (r *Reader) NextKey() (key []byte, ok bool) {
	if !r.member('}', 1) {
		return nil, false
	}
	if c := r.next(); c != '"' {
		r.fail(ErrSyntax)
		return nil, false
	}
	start, mark := r.pos+1, len(r.scratch)
	key, control := r.text()
	if r.err != nil {
		return nil, false
	}
	at := uint32(start)
	if len(r.scratch) > mark {
		at = uint32(mark) | inScratch
	}
	switch {
	case control:
		r.fail(ErrControl)
	case len(key) > MaxKeyBytes:
		r.fail(ErrKeyTooLong)
	case r.nkeys == MaxKeys:
		r.fail(ErrTooManyKeys)
	default:
		r.remember(key, at)
	}
	if r.next() != ':' {
		r.fail(ErrSyntax)
	}
	if r.err != nil {
		return nil, false
	}
	r.pos++
	r.due = true
	return key, true
}

// remember notes a key of the innermost object, or fails if the object has it.
func (r *Reader) remember(key []byte, at uint32) {
	k := keyRef{at: at, n: uint16(len(key)), mark: uint16(len(key)) << 8}
	if len(key) > 0 {
		k.mark ^= uint16(key[0])<<5 ^ uint16(key[len(key)/2])<<3 ^ uint16(key[len(key)-1])
	}
	for i := int(r.base[r.depth]); i < r.nkeys; i++ {
		if o := r.keys[i]; o.mark == k.mark && o.n == k.n && string(r.key(o)) == string(key) {
			r.fail(ErrDuplicateKey)
			return
		}
	}
	r.keys[r.nkeys] = k
	r.nkeys++
}

// key is a remembered key's text.
func (r *Reader) key(k keyRef) []byte {
	if k.at&inScratch != 0 {
		at := k.at &^ inScratch
		return r.scratch[at : at+uint32(k.n)]
	}
	return r.buf[k.at : k.at+uint32(k.n)]
}

// String reads a string. The bytes are valid until Reset and must not be written.
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

// text reads the string whose quote is at pos. control: it holds an escaped control character.
func (r *Reader) text() (s []byte, control bool) {
	b, start := r.buf, r.pos+1
	for i := start; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			r.pos = i + 1
			return b[start:i:i], false
		case c == '\\':
			return r.unescape(start, i)
		case c < ' ':
			r.pos = i
			r.fail(ErrControl)
			return nil, false
		}
	}
	r.pos = len(b)
	r.fail(ErrTruncated)
	return nil, false
}

// unescape reads on behind the first backslash, at i, of the string from start.
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
			out, control = append(out, ' '), true // whoever reads it is told
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

// rune16 reads the digits behind \u and, for a surrogate, the pair's other half.
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

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch c := r.value(); c {
	case 't':
		return r.word("true")
	case 'f':
		r.word("false")
	default:
		r.mismatch(c)
	}
	return false
}

// Null reads a null and returns true; before any other value it reads nothing and returns false.
func (r *Reader) Null() bool {
	return r.value() == 'n' && r.word("null")
}

// word reads a literal name.
func (r *Reader) word(w string) bool {
	if rest := r.buf[r.pos:]; len(rest) < len(w) || string(rest[:len(w)]) != w {
		r.fail(ErrSyntax)
		return false
	}
	r.pos += len(w)
	r.due = false
	return true
}

// Int reads a whole number, written with digits only.
func (r *Reader) Int() int64 {
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

// parseInt turns a number in JSON's grammar into an integer.
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
			// The digits may yet be followed by a fraction: that error comes first.
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

// Decimal reads a number, or a string that holds one in the same grammar, as
// millionths; see the package comment for what is exact enough.
func (r *Reader) Decimal() int64 {
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

// numberEnd is the length of the number that b starts with, 0 if it starts with
// none. Digits or letters right behind a number are not looked at.
func numberEnd(b []byte) int {
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i == len(b) || b[i] < '0' || b[i] > '9':
		return 0
	case b[i] == '0':
		i++
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

// digits is the index behind the decimal digits of b from i on.
func digits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}

// Skip reads the value that is due, whatever it is, as strictly as if it were
// used, but for escaped control characters, which it lets pass.
func (r *Reader) Skip() {
	mark, depth := len(r.scratch), r.depth
	for r.skipOne(); r.err == nil && r.depth > depth; {
		if r.objects>>r.depth&1 == 1 {
			if _, ok := r.NextKey(); ok {
				r.skipOne()
			}
		} else if r.NextItem() {
			r.skipOne()
		}
	}
	r.scratch = r.scratch[:mark]
}

// skipOne reads a scalar or enters a container.
func (r *Reader) skipOne() {
	switch c := r.value(); kindOf(c) {
	case KindObject:
		r.BeginObject()
	case KindArray:
		r.BeginArray()
	case KindString:
		r.text()
		r.due = false
	case KindNumber:
		r.number()
		r.due = false
	case KindBool:
		r.Bool()
	case KindNull:
		r.Null()
	default:
		r.fail(ErrSyntax)
	}
}
