//go:build !amd64 && !arm64

package ring

import "unsafe"

// Prefetch does nothing on processors without an implementation here.
func Prefetch(_, _, _, _ unsafe.Pointer) {}

// prefetchWrite does nothing on them.
func prefetchWrite(unsafe.Pointer, int64) {}
