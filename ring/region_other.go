//go:build !linux

package ring

import "fmt"

// Anonymous takes private memory from the Go heap.
func Anonymous(bytes int) (*Region, error) {
	if err := usable("anonymous", bytes); err != nil {
		return nil, err
	}
	return &Region{mem: HeapPages(bytes), fd: -1, heap: true}, nil
}

// Memfd, File, FileReadOnly, Attach and AttachReadOnly share memory between processes: Linux only.
func Memfd(name string, bytes int) (*Region, error) { return unshared("memfd", bytes) }

func File(path string, bytes int) (*Region, error) { return unshared("file", bytes) }

func FileReadOnly(path string, bytes int) (*Region, error) { return unshared("file", bytes) }

func Attach(fd int, bytes int) (*Region, error) { return unshared("attached", bytes) }

func AttachReadOnly(fd int, bytes int) (*Region, error) { return unshared("attached", bytes) }

func unshared(kind string, bytes int) (*Region, error) {
	if err := usable(kind, bytes); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("ring: map %s bytes=%d: %w", kind, bytes, ErrUnsupported)
}

// Populate does nothing: memory from the heap is there.
func (r *Region) Populate() error { return nil }

func (r *Region) release() error { return nil }
