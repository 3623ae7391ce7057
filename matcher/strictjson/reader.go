//perf:hot

package strictjson

import "unicode/utf8"

// Limits of the input of a Reader. A Reader has a fixed size, so it holds the keys of all open
// objects itself: MaxKeys bounds both its memory and the search for duplicates. Nothing that this
// program reads comes near them.
const (
	MaxDepth    = 16
	MaxKeys     = 64
	MaxKeyBytes = 256
	MaxBytes    = 32 << 20
)

// Kind is the type of a JSON value, as its first byte shows it.
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

// Reader reads one JSON text; see the package comment. The zero Reader is empty: call Reset first.
//
// Invariants: 0 <= pos <= len(buf); depth <= MaxDepth; keys[base[d]:] up to the next level's base
// are the keys read so far in the object open at depth d. A Reader is some 800 bytes and can be
// kept or lie on the stack.
type Reader struct {
	buf     []byte
	scratch []byte // unescaped strings; only grows until the next Reset
	pos     int
	err     error
	depth   int
	nkeys   int
	objects uint32 // bit d: the container open at depth d is an object
	due     bool   // a value is due: at the start, behind a key, at an item
	fresh   bool   // no member of the innermost container has been read yet
	base    [MaxDepth + 1]uint8
	twice   []byte               // the key that ended the reading because it is there twice
	met     [MaxDepth + 1]uint64 // bit m of an object's: a key of mark m has been read
	keys    [MaxKeys]keyRef
}

// keyRef says where a key that has been read lies.
type keyRef struct {
	at uint32 // in buf, or with inScratch in scratch
	n  uint32
}

// inScratch marks a key that had escapes: it lies in scratch. MaxBytes keeps every index below it.
const inScratch = 1 << 31

// Reset starts again with b, which the Reader keeps and never writes; b must not change until the
// reading ends. The results of earlier calls become invalid. It looks at the whole text once,
// because text that is not UTF-8 is refused before any of it is read.
func (r *Reader) Reset(b []byte) {
	r.buf, r.scratch = b, r.scratch[:0]
	r.pos, r.depth, r.nkeys, r.objects = 0, 0, 0, 0
	r.err, r.twice, r.due, r.fresh = nil, nil, true, false
	switch {
	case len(b) > MaxBytes:
		r.fail(ErrTooLong)
	case len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF:
		r.fail(ErrBOM)
	case !utf8.Valid(b):
		r.fail(ErrUTF8)
	}
}

// Err returns the first error, nil if there is none so far.
func (r *Reader) Err() error { return r.err }

// Offset returns the read position or, after an error, the position where reading stopped.
func (r *Reader) Offset() int { return r.pos }

// Fail makes err the Reader's error unless it has one already. It is for what the reading code
// itself refuses, such as an unknown field. The reading then ends like after any other error.
func (r *Reader) Fail(err error) { r.fail(err) }

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// End checks that exactly one whole value was read and that nothing but white space follows it. It
// returns the first error of the whole reading. ErrMisuse is a bug of the reading code, not a fault
// of the text.
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
	if r.err == nil && r.pos < len(r.buf) {
		if c := r.buf[r.pos]; c > ' ' {
			return c
		}
	}
	return r.look()
}

// look is the slow path of next: at white space, at the end of the text or after an error.
func (r *Reader) look() byte {
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

// value is next where a value must be due: at the start, behind a key, at an item. Anything else is
// ErrMisuse.
func (r *Reader) value() byte {
	if !r.due {
		r.fail(ErrMisuse)
		return 0
	}
	return r.next()
}

// kindOf returns the kind of a value from its first byte.
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

// Peek returns the kind of the value that is due, without reading it. It judges by the first byte:
// the value may still turn out malformed.
func (r *Reader) Peek() Kind { return kindOf(r.value()) }

// mismatch sets the error for a value that starts with c and is not of the kind asked for.
func (r *Reader) mismatch(c byte) {
	if kindOf(c) == KindInvalid {
		r.fail(ErrSyntax)
	} else {
		r.fail(ErrType)
	}
}

// open enters an object or array. object is 1 for an object, 0 for an array.
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
	r.base[r.depth], r.met[r.depth] = uint8(r.nkeys), 0
	r.due, r.fresh = false, true
}

// close leaves the innermost container, at its bracket. The keys of an object are forgotten:
// another one may have the same.
func (r *Reader) close() {
	r.pos++
	r.nkeys = int(r.base[r.depth])
	r.depth--
	r.fresh = false
}

// member goes to the next member of the innermost container and reports whether there is one. At
// the closing bracket it leaves the container. A comma before the first member or behind the last
// one is refused by what comes next: neither a key nor a value starts with it, nor with a bracket.
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

// Members yields the keys of the object that is due. The loop must take the value of each, or fail,
// before it asks for the next one.
func (r *Reader) Members(yield func(key []byte) bool) {
	for r.BeginObject(); ; {
		if key, ok := r.NextKey(); !ok || !yield(key) {
			return
		}
	}
}

// BeginArray enters the array that is due; then call NextItem until it returns false.
func (r *Reader) BeginArray() { r.open('[', 0) }

// NextItem goes to the array's next item; its value is then due. It returns false
// behind the last one, or after an error.
func (r *Reader) NextItem() bool {
	r.due = r.member(']', 0)
	return r.due
}

// NextKey returns the object's next key; its value is then due. It returns false
// behind the last one, or after an error. The key is valid until Reset.
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

// remember records a key of the innermost object, or fails if the object already has it. Few keys
// of one object share a mark, and only those are compared. A caller that chooses keys of one mark
// makes MaxKeys comparisons a key, no more.
func (r *Reader) remember(key []byte, at uint32) {
	mark := uint(len(key))
	if n := len(key); n > 0 {
		mark += uint(key[0])*3 + uint(key[n/2])*5 + uint(key[n-1])*11
	}
	bit := uint64(1) << (mark % 64)
	if met := &r.met[r.depth]; *met&bit == 0 {
		*met |= bit
	} else if r.has(key) {
		r.twice = key
		r.fail(ErrDuplicateKey)
		return
	}
	r.keys[r.nkeys] = keyRef{at: at, n: uint32(len(key))}
	r.nkeys++
}

// Duplicate returns the key that an object has twice, when the error is ErrDuplicateKey. It is
// valid until Reset.
func (r *Reader) Duplicate() []byte { return r.twice }

// has reports that the innermost object has already had a key.
func (r *Reader) has(key []byte) bool {
	for _, k := range r.keys[r.base[r.depth]:r.nkeys] {
		if string(r.key(k)) == string(key) {
			return true
		}
	}
	return false
}

// key returns a remembered key's text.
func (r *Reader) key(k keyRef) []byte {
	if k.at&inScratch != 0 {
		at := k.at &^ inScratch
		return r.scratch[at : at+k.n]
	}
	return r.buf[k.at : k.at+k.n]
}
