package ring

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of a large page on systems that have them.
const largePage = 2 << 20

// LargePages advises the kernel to back a table with large pages. Random access to a table of many
// megabytes otherwise spends more time on address translation than on data. The first write to a
// large page costs some hundreds of microseconds; MakeResident lets another goroutine spend them.
// If the kernel ignores the advice, only the speed changes.
func LargePages[T any](table []T) {
	if memory := bytesOf(table); len(memory) >= largePage {
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	}
}

// smallPages advises the kernel to back a table with small pages, which it clears one at a time.
func smallPages[T any](table []T) { _ = unix.Madvise(bytesOf(table), unix.MADV_NOHUGEPAGE) }

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

// MakeLapResident is MakeResident for the places of the numbers [first, end) in a table that is
// used in laps: the place of a number is the number modulo the length of the table.
func MakeLapResident[T any](table []T, first, end uint64) error {
	places := uint64(len(table))
	end = min(end, first+places)
	at := first % places
	whole := MakeResident(table, int(at), int(at+end-first))
	if at+end-first <= places {
		return whole
	}
	return errors.Join(whole, MakeResident(table, 0, int(at+end-first-places)))
}

// bytesOf is the memory of a table.
func bytesOf[T any](table []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(table))),
		len(table)*int(unsafe.Sizeof(*new(T))))
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

// Resident is how many bytes of the slab are resident.
func (s *Slab[T]) Resident() int64 { return residentBytes(bytesOf(s.slice)) }
