package ring

import (
	"errors"
	"reflect"
	"testing"
	"unsafe"

	"posttrade/ring/must"
)

func TestSlabIsZeroedAndAligned(t *testing.T) {
	s := must.Get(NewSlab[event](100))(t)
	slice := s.Slice()
	if len(slice) != 100 || uintptr(unsafe.Pointer(&slice[0]))%pageBytes != 0 {
		t.Errorf("%d elements at %p, want 100 on a page boundary", len(slice), &slice[0])
	}
	for i := range slice {
		if slice[i] != (event{}) {
			t.Fatalf("element %d is not zero", i)
		}
	}
	slice[99].b.w[7] = 1
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if s.Slice() != nil {
		t.Error("the slice is still there after Close")
	}
}

func TestSlabRefusesBadSizes(t *testing.T) {
	for _, n := range []int{-1, 0, 1 << 62, maxRegionBytes} {
		if _, err := NewSlab[event](n); !errors.Is(err, ErrSize) {
			t.Errorf("n %d: got %v, want %v", n, err, ErrSize)
		}
	}
	if _, err := NewSlab[struct{}](1); !errors.Is(err, ErrSize) {
		t.Errorf("empty element: got %v, want %v", err, ErrSize)
	}
}

func TestPointersAreFoundWhereverTheyHide(t *testing.T) {
	tests := []struct {
		name  string
		value any
		want  error
	}{
		{"number", uint32(0), nil},
		{"nested numbers", struct{ A [3]struct{ B float64 } }{}, nil},
		{"array of no pointers", [0]*int{}, nil},
		{"string", "", ErrPointers},
		{"slice", []int{}, ErrPointers},
		{"map", map[int]int{}, ErrPointers},
		{"channel", make(chan int), ErrPointers},
		{"function", func() {}, ErrPointers},
		{"unsafe pointer", unsafe.Pointer(nil), ErrPointers},
		{"interface field", struct{ E error }{}, ErrPointers},
		{"pointer in an array in a struct", struct{ A [2]struct{ P *int } }{}, ErrPointers},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := pointerFree(reflect.TypeOf(tt.value)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if _, err := NewSlab[*int](1); !errors.Is(err, ErrPointers) {
		t.Errorf("slab of pointers: got %v, want %v", err, ErrPointers)
	}
}
