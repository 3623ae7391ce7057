package strictjson

import "errors"

// What can be wrong with a text; test by errors.Is. They carry no part of the
// input, so they can be shown to the caller and logged.
var (
	ErrTruncated    = errors.New("JSON ends too early")
	ErrSyntax       = errors.New("not JSON")
	ErrTrailing     = errors.New("bytes after the JSON value")
	ErrUTF8         = errors.New("not valid UTF-8")
	ErrBOM          = errors.New("byte order mark")
	ErrTooLong      = errors.New("JSON text too long")
	ErrDepth        = errors.New("JSON nested too deep")
	ErrDuplicateKey = errors.New("duplicate key")
	ErrTooManyKeys  = errors.New("too many keys")
	ErrKeyTooLong   = errors.New("key too long")
	ErrEscape       = errors.New("bad escape in a string")
	ErrSurrogate    = errors.New("lone surrogate in a string")
	ErrControl      = errors.New("control character in a string")
	ErrType         = errors.New("value of another type")
	ErrNumber       = errors.New("malformed number")
	ErrNotWhole     = errors.New("number is not whole")
	ErrRange        = errors.New("number out of range")
	ErrPrecision    = errors.New("number with more than 6 decimals")
	// ErrMisuse is a bug of the reading code: a value read where there is none,
	// or a key asked for while its predecessor's value has not been read.
	ErrMisuse = errors.New("JSON reader used out of order")
)

// NewReader returns a Reader of b. A Reader on the stack, or one that is kept, and Reset cost nothing.
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
