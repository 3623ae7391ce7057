package ring

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// largePage is the size of a large page where there are some.
const largePage = 2 << 20

// LargePages advises the kernel to back a table with large pages: one of many megabytes
// that is walked at random spends more time on address translation than on data. The first
// write to a large page costs some hundreds of microseconds; MakeResident has somebody else
// pay them. Advice that is not taken changes nothing but the speed.
func LargePages[T any](table []T) {
	if memory := bytesOf(table); len(memory) >= largePage {
		_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)
	}
}

// smallPages advises the kernel to clear the memory of a table bit by bit.
func smallPages[T any](table []T) { _ = unix.Madvise(bytesOf(table), unix.MADV_NOHUGEPAGE) }

// MakeResident gives the elements of a table from first up to end, which is left out and
// may lie behind the table's, the memory that they need, so that who writes to them next is
// not held up by it. Any goroutine may call it, whatever others do with the elements.
//
// What is missing afterwards is brought by the first write to it, as always, so an error of
// a kernel that cannot do it (before 5.14) may be left alone.
func MakeResident[T any](table []T, first, end int) error {
	end = min(end, len(table))
	if first >= end {
		return nil
	}
	memory := bytesOf(table[first:end])
	// Whole pages: the one in which the first element begins, too.
	start := unsafe.Pointer(&memory[0])
	before := uintptr(start) & (pageBytes - 1)
	memory = unsafe.Slice((*byte)(unsafe.Add(start, -int(before))), len(memory)+int(before))
	if err := unix.Madvise(memory, unix.MADV_POPULATE_WRITE); err != nil {
		return fmt.Errorf("ring: make resident bytes=%d: %w", len(memory), err)
	}
	return nil
}

// MakeLapResident does so for the places of the numbers from first up to end in a table that is
// used in laps: a number's place is what is left of it when it is divided by the table's length.
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
