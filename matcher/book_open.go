package matcher

import (
	"errors"
	"fmt"
)

// Shelf is the memory that books share: room for a number of resting orders. The addresses are
// reserved at once; only what was used is resident. Ids are unique on a shelf. A shelf and all its
// books belong to one goroutine at a time.
type Shelf struct {
	pool  *orderPool
	pages *pages
	books uint32
}

// NewShelf returns a shelf for maxOrders resting orders, 1 to MaxOrders (ErrCapacity). Each order
// reserves about 1.5 KB of addresses. Resident memory follows the largest number of orders and
// prices that rested at one time.
func NewShelf(maxOrders int) (*Shelf, error) {
	pool, err := newOrderPool(maxOrders)
	if err != nil {
		return nil, err
	}
	pages, err := newPages(maxOrders)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return &Shelf{pool: pool, pages: pages}, nil
}

// NewBook returns an empty book on the shelf. sink receives its fills; nil drops them.
func (s *Shelf) NewBook(sink BookSink) (*Book, error) {
	if s.books == maxSecurity {
		return nil, fmt.Errorf("matcher: book %d on one shelf: %w", s.books+1, ErrCapacity)
	}
	if sink == nil {
		sink = deaf{}
	}
	s.books++
	return &Book{ladder: newLadder(s.pool, s.pages), sink: sink, homeMask: s.pool.homes - 1,
		number: s.books}, nil
}

// Len is the number of orders that rest on the shelf.
func (s *Shelf) Len() int { return s.pool.live() }

// Close gives the memory back; the shelf's books must not be used afterwards.
func (s *Shelf) Close() error { return errors.Join(s.pool.Close(), s.pages.Close()) }

// BookOptions describe a book that has its own shelf. The zero value is usable.
type BookOptions struct {
	MaxOrders int      // how many orders may rest at one time; 0 means 1,048,576
	Sink      BookSink // receives the fills; nil drops them
}

// NewBook returns an empty book that has its own shelf. Close gives its memory back.
func NewBook(o BookOptions) (*Book, error) {
	if o.MaxOrders == 0 {
		o.MaxOrders = 1 << 20
	}
	shelf, err := NewShelf(o.MaxOrders)
	if err != nil {
		return nil, err
	}
	b, err := shelf.NewBook(o.Sink)
	if err != nil {
		return nil, errors.Join(err, shelf.Close())
	}
	b.shelf = shelf
	return b, nil
}

// Len is the number of orders that rest on the book's shelf.
func (b *Book) Len() int { return b.ladder.pool.live() }

// Close gives back the memory of a book that NewBook made. A book on a shared shelf has no memory
// of its own. The book must not be used afterwards.
func (b *Book) Close() error {
	if b.shelf == nil {
		return nil
	}
	return b.shelf.Close()
}

// deaf is the sink of a book when the caller gives none.
type deaf struct{}

func (deaf) Filled(_, _ uint32, _ int64, _ int32) {}
func (deaf) Prevented(_, _ uint32, _ int32)       {}
