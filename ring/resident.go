package ring

import (
	"errors"
	"unsafe"
)

// largePage is the size of a large page on systems that have them.
const largePage = 2 << 20

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

// Resident is how many bytes of the slab are resident.
func (s *Slab[T]) Resident() int64 { return residentBytes(bytesOf(s.slice)) }
