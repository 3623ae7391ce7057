//go:build !race

package ring

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// TestForgottenSlabIsUnmapped is about mapped slabs: under the race detector
// they are Go memory, which the collector itself takes back.
func TestForgottenSlabIsUnmapped(t *testing.T) {
	s := must.Get(NewSlab[uint64](1 << 20))(t)
	at := uintptr(unsafe.Pointer(&s.Slice()[0]))
	runtime.KeepAlive(s)
	s = nil
	for range 1000 {
		runtime.GC()
		runtime.Gosched()
		var resident [1 << 23 / pageBytes]byte
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, at, 1<<23, uintptr(unsafe.Pointer(&resident[0])))
		if errno == unix.ENOMEM { // not mapped any more
			return
		}
	}
	t.Error("the slab is still mapped after 1000 collections")
}
