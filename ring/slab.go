package ring

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"runtime"
	"unsafe"
)

// ErrPointers reports an element type that holds pointers: the collector does
// not look into regions, and another process could not follow them.
var ErrPointers = errors.New("element type holds pointers")

// Slab is a slice outside the Go heap: zeroed, page aligned, resident only where
// touched, invisible to the collector. Hot tables live in slabs.
//
// The slice must not outlive the Slab: when the Slab is collected, its memory is unmapped. Keep the
// *Slab beside the slice, in the same struct.
type Slab[T any] struct {
	slice   []T
	region  *Region
	cleanup runtime.Cleanup
}

// NewSlab returns a slab of n elements. T holds no pointers (ErrPointers); n is
// at least 1 and the whole is at most 64 TiB (ErrSize).
func NewSlab[T any](n int) (*Slab[T], error) {
	if err := pointerFree(reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("ring: new slab: %w", err)
	}
	var zero T
	hi, bytes := bits.Mul64(uint64(max(n, 0)), uint64(unsafe.Sizeof(zero)))
	if hi != 0 || bytes == 0 || bytes > maxRegionBytes {
		return nil, fmt.Errorf("ring: new slab n=%d of %d bytes: %w", n, unsafe.Sizeof(zero), ErrSize)
	}
	region, err := Anonymous(int(bytes))
	if err != nil {
		return nil, err
	}
	s := &Slab[T]{
		slice:  unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(region.mem))), n),
		region: region,
	}
	s.cleanup = runtime.AddCleanup(s, func(r *Region) { r.Close() }, region)
	return s, nil
}

// Slice is the whole slab.
func (s *Slab[T]) Slice() []T { return s.slice }

// Close unmaps the slab; it is idempotent. The slice must not be used afterwards.
func (s *Slab[T]) Close() error {
	s.cleanup.Stop()
	s.slice = nil
	return s.region.Close()
}

// pointerFree returns ErrPointers, with the name of the field, when a value of type t can hold a
// pointer.
func pointerFree(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Array:
		if t.Len() == 0 {
			return nil
		}
		return pointerFree(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := pointerFree(t.Field(i).Type); err != nil {
				return fmt.Errorf("%s.%s: %w", t, t.Field(i).Name, err)
			}
		}
		return nil
	case reflect.Pointer, reflect.UnsafePointer, reflect.Map, reflect.Chan, reflect.Func,
		reflect.Interface, reflect.Slice, reflect.String:
		return fmt.Errorf("%s: %w", t, ErrPointers)
	default:
		return nil
	}
}
