//go:build !linux

package ring

// LargePages advises the kernel only on Linux.
func LargePages[T any](table []T) {}

// MakeResident leaves residence to the first write to a page.
func MakeResident[T any](table []T, first, end int) error { return nil }

// residentBytes takes all of the memory for resident: what is not known here.
func residentBytes(memory []byte) int64 { return int64(len(memory)) }
