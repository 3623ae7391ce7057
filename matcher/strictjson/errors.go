package strictjson

import "errors"

// The errors of a text; test by errors.Is. They carry no part of the input, so they can be shown to
// the caller and logged. Reader.Offset says where, Reader.Duplicate which key.
var (
	// Of the text as a whole.
	ErrTruncated = errors.New("JSON ends too early")
	ErrSyntax    = errors.New("not JSON")
	ErrTrailing  = errors.New("bytes after the JSON value")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrBOM       = errors.New("byte order mark")
	ErrTooLong   = errors.New("JSON text too long")
	// Of objects and arrays.
	ErrDepth        = errors.New("JSON nested too deep")
	ErrDuplicateKey = errors.New("duplicate key")
	ErrTooManyKeys  = errors.New("too many keys")
	ErrKeyTooLong   = errors.New("key too long")
	// Of strings.
	ErrEscape    = errors.New("bad escape in a string")
	ErrSurrogate = errors.New("lone surrogate in a string")
	ErrControl   = errors.New("control character in a string")
	// Of values: a value of JSON that is not the one asked for.
	ErrType      = errors.New("value of another type")
	ErrNumber    = errors.New("malformed number")
	ErrNotWhole  = errors.New("not a whole number in plain digits")
	ErrRange     = errors.New("number out of range")
	ErrPrecision = errors.New("number with more than 6 decimals")
	// ErrMisuse is a bug of the reading code: it reads a value where there is none, or asks for a key
	// before it has read the value of the key before.
	ErrMisuse = errors.New("JSON reader used out of order")
)

// NewReader returns a Reader of b. To Reset a Reader that is on the stack or kept costs nothing.
func NewReader(b []byte) *Reader {
	r := new(Reader)
	r.Reset(b)
	return r
}

// String returns the name of the kind, for messages.
func (k Kind) String() string {
	switch k {
	case KindNull:
		return "null"
	case KindBool:
		return "boolean"
	case KindNumber:
		return "number"
	case KindString:
		return "string"
	case KindArray:
		return "array"
	case KindObject:
		return "object"
	}
	return "invalid"
}
