package ringtest

import (
	"fmt"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Resident is how much memory of this process is there, in bytes.
func Resident(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// Pages is how many of the pages that hold the elements of a table from first up to end,
// which is left out, are there, and how many those are.
func Pages[T any](t testing.TB, table []T, first, end int) (there, of int) {
	t.Helper()
	page := uintptr(os.Getpagesize())
	start := unsafe.Pointer(&table[first:end][0])
	before := uintptr(start) & (page - 1)
	bytes := before + uintptr(end-first)*unsafe.Sizeof(table[0])
	states := make([]byte, (bytes+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Add(start, -int(before))), bytes, uintptr(unsafe.Pointer(&states[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, s := range states {
		there += int(s & 1)
	}
	return there, len(states)
}
