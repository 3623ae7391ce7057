// Package strictjson reads JSON from callers that may be careless or hostile. Every request body
// and the payload of every token goes through it. It also writes strings and decimals
// (AppendString, FormatDecimal).
//
// A Reader reads one value after the other from a byte slice. It allocates nothing, except for
// strings with escapes, which go into a scratch that a reused Reader keeps. It builds no tree and
// never turns a number into a float:
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
// The first error stays: from then on every call returns a zero value, NextKey and NextItem return
// false, and End returns that error. So a handler checks once, at End, and must not act on values
// before that check.
//
// The Reader refuses what RFC 8259 leaves open: a duplicate key (after unescaping) in any object,
// invalid UTF-8, lone surrogates, a byte order mark, anything behind the value. NaN, Infinity,
// comments and trailing commas are not JSON in any case. A string that is read (String, a key) may
// hold no control character, not even an escaped one; in a skipped value an escaped one passes.
//
// Limits: MaxDepth open objects and arrays, MaxKeys members of all objects that are open at one
// moment, MaxKeyBytes of a key, MaxBytes of input. Work is linear in the input, except for the
// search for duplicates, which MaxKeys bounds.
//
// Numbers: Int takes whole numbers written with digits only (1.0 and 1e2 are ErrNotWhole). Decimal
// takes a number, or a string that holds one, as a whole number of millionths: exact or refused. It
// reads zeros behind the sixth decimal; any other digit there is ErrPrecision. It reads an exponent
// when the value is exact and in range; an exponent beyond 99 or -99 is ErrRange.
//
// A caller that reads the same shape of object all the time may scan it (Ahead, ScanText, ScanInt,
// ScanDecimal), and Take it when it has the usual form and all of it is right. Scanning never
// refuses anything: the Reader reads what a scan does not recognise.
//
// A Reader belongs to one goroutine. The package imports nothing of this module.
package strictjson
