// Package strictjson reads JSON from callers who may be careless or hostile:
// every request body and the payload of every token goes through it.
//
// A Reader pulls one value after the other out of a byte slice. It allocates
// nothing (but for strings with escapes, into a scratch that a reused Reader
// keeps), builds no tree and never turns a number into a float:
//
//	var r strictjson.Reader
//	r.Reset(body)
//	for r.BeginObject(); ; {
//		key, ok := r.NextKey()
//		if !ok {
//			break
//		}
//		switch string(key) {
//		case "quantity":
//			qty = r.Int()
//		case "limitPrice":
//			px = r.Decimal()
//		default:
//			r.Skip() // or refuse the field
//		}
//	}
//	if err := r.End(); err != nil { ... }
//
// The first error stays: from then on every call returns a zero value, NextKey
// and NextItem return false, and End returns that error. So a handler checks
// once, at End, and must not act on what it read before that.
//
// What RFC 8259 leaves open is refused here: a duplicate key (after unescaping)
// in any object, invalid UTF-8, lone surrogates, a byte order mark, anything
// behind the value. NaN, Infinity, comments and trailing commas are no JSON to
// begin with. A string that is read (String, a key) may hold no control
// character, not even an escaped one; in a skipped value an escaped one passes.
//
// Limits: MaxDepth open objects and arrays, MaxKeys members of all objects that
// are open at one moment, MaxKeyBytes of a key, MaxBytes of input. Work is
// linear in the input but for the search for duplicates, which MaxKeys bounds.
//
// Numbers: Int takes whole numbers written with digits only (1.0 and 1e2 are
// ErrNotWhole). Decimal takes a number, or a string that holds one, as a whole
// number of millionths: exact or refused. Zeros behind the sixth decimal are
// read, any other digit there is ErrPrecision; an exponent is read when the
// value is exact and in range, and beyond 99 either way it is ErrRange.
//
// Who reads one shape of object all day may scan it (Ahead, ScanText, ScanInt,
// ScanDecimal) and Take it when it is written in the usual way and all of it is
// right. Scanning never refuses anything: what it does not know, the Reader reads.
//
// A Reader belongs to one goroutine. The package imports nothing of this module.
package strictjson
