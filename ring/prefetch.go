//go:build amd64 || arm64

package ring

import "unsafe"

// Prefetch asks for four cache lines and waits for none. Any address is allowed, even nil: a line
// that cannot be loaded is not an error.
//
//go:noescape
func Prefetch(a, b, c, d unsafe.Pointer)

// prefetchWrite asks for the lines of bytes from p on, to write to them, and waits for none.
//
//go:noescape
func prefetchWrite(p unsafe.Pointer, bytes int64)
