//go:build !amd64 && !arm64

package ring

import "unsafe"

// Prefetch does nothing where we know no instruction for it.
func Prefetch(_, _, _, _ unsafe.Pointer) {}

// prefetchWrite does nothing either.
func prefetchWrite(unsafe.Pointer, int64) {}
