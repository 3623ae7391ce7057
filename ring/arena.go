package ring

import (
	"errors"
	"io"
	"unsafe"
)

// Arena owns the slabs of one object that is built once. The memory is free of pointers, reserved
// at once, resident only where touched and invisible to the collector. The zero Arena is empty.
//
// The first failure sticks, so a constructor carves all its tables and calls Err once.
type Arena struct {
	held   []io.Closer
	begins []func() error // each makes the beginning of a table resident
	err    error
}

// Memory is an owner of slabs, such as an Arena.
type Memory interface {
	MakeResident() error
	Close() error
}

// Carve returns a zeroed table of n elements; nil when n is 0 and after a failure. It is for a
// table that is used from its beginning on, or all over, so the table gets large pages.
func Carve[T any](a *Arena, n int) []T {
	table := CarveSparse[T](a, n)
	if table != nil {
		LargePages(table)
		a.begins = append(a.begins,
			func() error { return MakeResident(table, 0, max(1, largePage/int(unsafe.Sizeof(table[0])))) })
	}
	return table
}

// CarveSparse is Carve for a table of which single, scattered places are used.
func CarveSparse[T any](a *Arena, n int) []T {
	if a.err != nil || n == 0 {
		return nil
	}
	slab, err := NewSlab[T](n)
	if err != nil {
		a.err = err
		return nil
	}
	a.held = append(a.held, slab)
	return slab.Slice()
}

// Hold makes m, which owns memory of its own, a part of the arena.
func (a *Arena) Hold(m Memory) {
	a.held = append(a.held, m)
	a.begins = append(a.begins, m.MakeResident)
}

// Err is the first failure; nil when every table has been carved.
func (a *Arena) Err() error { return a.err }

// MakeResident gives every table that is not sparse the memory for its beginning, the first
// large page. Any goroutine, while the arena is open.
func (a *Arena) MakeResident() error {
	var all []error
	for _, begin := range a.begins {
		all = append(all, begin())
	}
	return errors.Join(all...)
}

// Resident is how many bytes of the tables are resident: what the object costs. It does not change
// anything, and may run on any goroutine while no table is added and the arena is open.
func (a *Arena) Resident() (n int64) {
	for _, h := range a.held {
		if r, ok := h.(interface{ Resident() int64 }); ok {
			n += r.Resident()
		}
	}
	return n
}

// Close unmaps all tables; they must not be used afterwards.
func (a *Arena) Close() error {
	var all []error
	for _, c := range a.held {
		all = append(all, c.Close())
	}
	a.held, a.begins = nil, nil
	return errors.Join(all...)
}
