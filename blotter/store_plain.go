//go:build !race

//perf:hot

package blotter

// store writes one field of a row that readers may be copying, between its lock's Begin
// and End. T is a number of at most eight bytes.
//
// The writer writes a row field by field and reads it in the same pieces. A load that is wider than
// the stores before it waits until they have left the core, and those stores wait for every line
// that earlier stores have missed.
func store[T any](field *T, v T) { *field = v }

// storeBytes is store for text. len(text) <= len(field); the rest of the field stays as it is.
func storeBytes(field *[MaxClientID]byte, text []byte) { copy(field[:], text) }

// move is copy for fields of a row that readers may be copying.
func move[T any](to, from []T) { copy(to, from) }
