package ring

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Errors of regions; test them by errors.Is.
var (
	ErrSize     = errors.New("unusable region size")
	ErrUnsealed = errors.New("region is not sealed against shrinking")
	// ErrUnsupported is what this platform cannot do: only Linux shares memory between processes
	// and binds threads here.
	ErrUnsupported = errors.New("not supported on this platform")
)

const (
	pageBytes = 4096
	// maxRegionBytes keeps every offset inside an int on every platform.
	maxRegionBytes = 1 << 46
	// raceHeapBytes is the largest private region taken from the Go heap under
	// the race detector, which marks all of an allocation at once.
	raceHeapBytes = 256 << 20
)

// Region is one mapped range of memory, zero when new. The owner that made it closes it, when no
// ring or slice over it is in use any more.
type Region struct {
	mem      []byte
	fd       int
	readOnly bool
	heap     bool // mem is Go memory: in race builds, and where nothing is mapped
	closing  sync.Once
	closeErr error
}

// HeapPages returns zeroed, page-aligned Go memory without pointers. It is for memory that a thread
// may still use when its owner has closed.
func HeapPages(bytes int) []byte {
	words := make([]uint64, (bytes+pageBytes)/8)
	all := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	skip := -int(uintptr(unsafe.Pointer(&words[0]))) & (pageBytes - 1)
	return all[skip : skip+bytes : skip+bytes]
}

func usable(kind string, bytes int) error {
	if bytes < 1 || bytes > maxRegionBytes {
		return fmt.Errorf("ring: map %s bytes=%d: %w", kind, bytes, ErrSize)
	}
	return nil
}

// Bytes is the mapped memory, nil after Close. Slices of it must not outlive the region.
func (r *Region) Bytes() []byte { return r.mem }

// Fd is the descriptor behind the region, -1 when there is none. The region keeps owning it.
func (r *Region) Fd() int { return r.fd }

// Close unmaps the memory and closes the descriptor. Later calls return the result of the first. No
// ring, slice or pointer into the region may be used afterwards.
func (r *Region) Close() error {
	r.closing.Do(func() {
		err := r.release()
		r.mem, r.fd = nil, -1
		if err != nil {
			r.closeErr = fmt.Errorf("ring: close region: %w", err)
		}
	})
	return r.closeErr
}
