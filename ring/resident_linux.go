package ring

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// LargePages advises the kernel to back a table with large pages. Random access to a table of many
// megabytes otherwise spends more time on address translation than on data. The first write to a
// large page costs some hundreds of microseconds; MakeResident lets another goroutine spend them.
// If the kernel ignores the advice, only the speed changes.
func LargePages[T any](table []T) {
	if memory := bytesOf(table); len(memory) >= largePage {
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	}
}

// MakeResident makes the memory of the elements [first, end) of a table resident, so that it does
// not hold up the goroutine that writes to them next. end may lie beyond the end of the table. Any
// goroutine may call it, also while others use the elements.
//
// The first write to a page that is still missing makes it resident, as always. So the caller may
// ignore the error of a kernel before 5.14, which cannot do this.
func MakeResident[T any](table []T, first, end int) error {
	end = min(end, len(table))
	if first >= end {
		return nil
	}
	memory := bytesOf(table[first:end])
	// Whole pages, including the one in which the first element begins.
	start := unsafe.Pointer(&memory[0])
	before := uintptr(start) & (pageBytes - 1)
	memory = unsafe.Slice((*byte)(unsafe.Add(start, -int(before))), len(memory)+int(before))
	if err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("ring: make resident bytes=%d: %w", len(memory), err)
	}
	return nil
}

// residentBytes is how much of the memory is resident. It costs some microseconds a megabyte.
func residentBytes(memory []byte) (n int64) {
	const window = 64 << 20
	pages := make([]byte, (min(len(memory), window)+pageBytes-1)/pageBytes)
	for len(memory) > 0 {
		part := memory[:min(len(memory), window)]
		memory = memory[len(part):]
		if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&part[0])),
			uintptr(len(part)), uintptr(unsafe.Pointer(&pages[0]))); errno != 0 {
			return n
		}
		for _, page := range pages[:(len(part)+pageBytes-1)/pageBytes] {
			n += int64(page&1) * pageBytes
		}
	}
	return n
}
