package ringtest

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"posttrade/ring/must"
)

// Resident is the resident memory of this process in bytes.
func Resident(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	must.OK(t, err)
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// Pages counts the pages that hold the elements [first, end) of a table: of is their number, there
// is how many of them are resident.
func Pages[T any](t testing.TB, table []T, first, end int) (there, of int) {
	t.Helper()
	page := uintptr(os.Getpagesize())
	start := unsafe.Pointer(&table[first:end][0])
	before := uintptr(start) & (page - 1)
	bytes := before + uintptr(end-first)*unsafe.Sizeof(table[0])
	states := make([]byte, (bytes+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Add(start, -int(before))), bytes,
		uintptr(unsafe.Pointer(&states[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, s := range states {
		there += int(s & 1)
	}
	return there, len(states)
}

// Politely runs f on a thread of low priority, which ends with f.
func Politely(t testing.TB, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		err := unix.Setpriority(unix.PRIO_PROCESS, 0, 15)
		if err == nil {
			f()
		}
		done <- err
	}()
	must.OK(t, <-done)
}
