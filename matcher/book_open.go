package matcher

import (
	"errors"
	"fmt"
)

// BookMemory is the memory that books share: room for a number of resting orders. The addresses are
// reserved at once; only what was used is resident. Ids are unique among its books. A BookMemory
// and all its books belong to one goroutine at a time.
type BookMemory struct {
	pool  *orderPool
	pages *pages
	books uint32
}

// NewBookMemory returns the memory for maxOrders resting orders, 1 to MaxOrders (ErrCapacity). Each
// order reserves about 1.5 KB of addresses. Resident memory follows the largest number of orders
// and prices that rested at one time.
func NewBookMemory(maxOrders int) (*BookMemory, error) {
	pool, err := newOrderPool(maxOrders)
	if err != nil {
		return nil, err
	}
	pages, err := newPages(maxOrders)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &BookMemory{pool: pool, pages: pages}, nil
}

// NewBook returns an empty book in the memory. sink receives its fills; nil drops them.
func (s *BookMemory) NewBook(sink BookSink) (*Book, error) {
	if s.books == maxSecurity {
		return nil, fmt.Errorf("matcher: book %d on one shelf: %w", s.books+1, ErrCapacity)
	}
	if sink == nil {
		sink = discardSink{}
	}
	s.books++
	return &Book{ladder: newLadder(s.pool, s.pages), sink: sink, homeMask: s.pool.homes - 1,
		number: s.books}, nil
}

// Len is the number of orders that rest in the memory.
func (s *BookMemory) Len() int { return s.pool.live() }

// Close gives the memory back; its books must not be used afterwards.
func (s *BookMemory) Close() error { return errors.Join(s.pool.Close(), s.pages.Close()) }

// BookOptions describe a book that has its own memory. The zero value is usable.
type BookOptions struct {
	MaxOrders int      // how many orders may rest at one time; 0 means 1,048,576
	Sink      BookSink // receives the fills; nil drops them
}

// NewBook returns an empty book that has its own memory. Close gives its memory back.
func NewBook(o BookOptions) (*Book, error) {
	if o.MaxOrders == 0 {
		o.MaxOrders = 1 << 20
	}
	memory, err := NewBookMemory(o.MaxOrders)
	if err != nil {
		return nil, err
	}
	b, err := memory.NewBook(o.Sink)
	if err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	b.memory = memory
	return b, nil
}

// Len is the number of orders that rest in the book's memory.
func (b *Book) Len() int { return b.ladder.pool.live() }

// Close gives back the memory of a book that NewBook made. A book in a shared BookMemory has none
// of its own. The book must not be used afterwards.
func (b *Book) Close() error {
	if b.memory == nil {
		return nil
	}
	return b.memory.Close()
}

// discardSink is the sink of a book when the caller gives none.
type discardSink struct{}

func (discardSink) Filled(_, _ uint32, _ int64, _ int32) {}
func (discardSink) Prevented(_, _ uint32, _ int32)       {}
