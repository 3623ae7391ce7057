//perf:hot

package matcher

import "unsafe"

// Book is the order book of one security as a library: price and time priority, any int64 as a
// price, no risk, no positions. The engine uses the same ladder. NewBook makes a book with its own
// memory; books of many securities share the memory of a Shelf.
//
// The caller names the orders: any uint32 but 0 that no resting order of its memory has. The book
// forgets a finished order, and the caller may use its id again. Ids that ascend in small steps are
// the cheapest: an order then lies at the place that its id gives, as in an array, unless an older
// order is there. Other orders lie where one has left last, and are found through a table. A book
// finds out by itself which ids its memory is given.
//
// The Outcome of a call states what became of its own order. The BookSink receives what the call
// does to resting orders. Apply does the same and writes everything down as events instead.
//
// One goroutine at a time uses a book. The books of one BookMemory share it, so this holds
// of all of them together. No call allocates.
type Book struct {
	ladder   ladder
	sink     BookSink
	homeMask uint32 // pool.homes - 1
	number   uint32 // of this book in its memory, kept as its orders' security
	taker    uint32 // id of the order being matched
	tape     bookTape
	memory   *BookMemory // made by NewBook for this book alone, else nil
	_        [104 - 4*unsafe.Sizeof(bound{})]byte
}

// Compile-time check: the size is a power of two, and the allocator aligns such a size. So a call
// touches the first two lines and no third.
var _ = [1]struct{}{}[unsafe.Sizeof(Book{})-256]

// BookSink receives what an order does to resting orders, before the call that brought the order
// returns. It must not call the book.
type BookSink interface {
	// Filled: taker traded qty with maker at px, the maker's price.
	Filled(maker, taker uint32, px int64, qty int32)
	// Prevented: maker has the owner of the taker; the book removed it with leaves open.
	Prevented(maker, taker uint32, leaves int32)
}

// BookOrder is an order for a Book. The book keeps a copy of what it needs; the caller may use the
// value again.
type BookOrder struct {
	ID    uint32 // the caller's, not 0
	Owner uint32 // for self-trade prevention; 0 trades with every owner
	Px    int64  // in the caller's unit; ignored with FlagMarket
	Qty   int32  // at least 1
	Side  Side
	Flags uint16 // FlagIOC, FlagFOK, FlagPostOnly, FlagMarket
}

// FlagMarket marks a BookOrder that takes any price and never rests. It is not a flag of a Command:
// there an order without a price is a market order.
const FlagMarket uint16 = 1 << 15

// BookReject says why a Book refused a call. The numbers are stable.
type BookReject uint8

// The refusals. A refused call has changed nothing.
const (
	BookOK BookReject = 0
	// id 0, quantity below 1, unknown flags, or flags that contradict each other
	BookInvalid     BookReject = 1
	BookDuplicateID BookReject = 2 // an order with that id rests
	BookUnknownID   BookReject = 3 // no order with that id rests in this book
	BookWouldCross  BookReject = 4 // post-only, and the price would trade
	BookFull        BookReject = 5 // the order might rest and the book has no room
)

// Outcome states what became of the order of a call. It says nothing of trades: the sink has
// received them by then. The zero Outcome is an order that has traded whole.
type Outcome struct {
	Reject BookReject // BookOK: accepted
	Rests  bool       // Leaves rest on the book; else they are cancelled
	Kept   bool       // of Modify: the order kept its place
	Leaves int32      // the quantity that has not traded
}

// New enters an order. It trades as far as it can, and its leaves rest unless its flags say
// otherwise.
func (b *Book) New(o BookOrder) Outcome {
	if o.Flags != 0 {
		return b.newFlagged(o)
	}
	return b.Limit(o.ID, o.Owner, o.Side, o.Px, o.Qty)
}

// Limit is New for an order without flags, with its arguments in registers. px is in the caller's
// unit, qty in the caller's lots, at least 1.
//
// It is refused with BookInvalid, BookDuplicateID or BookFull. BookFull comes before matching, so
// also for an order that would have traded whole: what is left of it could not rest.
//
// When ids ascend and no order is a guest, one load at the home of the id shows both that the id is
// not in use and where the order will rest.
func (b *Book) Limit(id, owner uint32, side Side, px int64, qty int32) Outcome {
	if id == 0 || qty < 1 {
		return Outcome{Reject: BookInvalid}
	}
	pool, i := b.ladder.pool, b.home(id)
	if !pool.ascends(id) || b.ladder.orders.at(i).ref != 0 {
		i = 0
	}
	if (i == 0 || pool.away != 0) && b.seek(id) != 0 {
		return Outcome{Reject: BookDuplicateID}
	}
	if pool.count == pool.room {
		return Outcome{Reject: BookFull}
	}
	if b.ladder.crosses(side, px) {
		b.taker = id
		qty = b.ladder.match(side, px, qty, owner, b)
		if qty == 0 {
			return Outcome{}
		}
	}
	pool.count++
	if i == 0 {
		i = pool.lodge(id)
	}
	h := b.ladder.orders.at(i)
	h.ref = id
	h.account = owner
	h.leaves = qty
	h.tag = b.number << 8
	b.ladder.rest(i, side, px, b.ladder.root)
	return Outcome{Rests: true, Leaves: qty}
}

// home is pool.homeOf without a load: the mask lies in the book's own line. A BookMemory never
// grows, so the mask stays right.
func (b *Book) home(id uint32) ix { return ix(id&b.homeMask) + 1 }

// newFlagged is New for an order that may not rest, or that may only rest. An order that cannot
// rest needs no place in the pool, so a full memory does not refuse it.
func (b *Book) newFlagged(o BookOrder) Outcome {
	switch o.Flags {
	case FlagMarket, FlagMarket | FlagIOC, FlagMarket | FlagFOK:
		o.Px = mirror(o.Side) ^ maxPx
	case FlagIOC, FlagFOK, FlagPostOnly:
	default:
		return Outcome{Reject: BookInvalid}
	}
	if o.ID == 0 || o.Qty < 1 {
		return Outcome{Reject: BookInvalid}
	}
	if b.seek(o.ID) != 0 {
		return Outcome{Reject: BookDuplicateID}
	}
	if o.Flags == FlagPostOnly {
		if b.ladder.crosses(o.Side, o.Px) {
			return Outcome{Reject: BookWouldCross}
		}
		return b.Limit(o.ID, o.Owner, o.Side, o.Px, o.Qty)
	}
	if o.Flags&FlagFOK != 0 && !b.ladder.fillable(o.Side, o.Px, o.Qty, o.Owner) {
		return Outcome{Leaves: o.Qty}
	}
	b.taker = o.ID
	return Outcome{Leaves: b.ladder.match(o.Side, o.Px, o.Qty, o.Owner, b)}
}

const maxPx = 1<<63 - 1

// Cancel takes a resting order off the book. Leaves is the quantity that was open. It is refused
// with BookUnknownID when no order with that id rests in this book, also when one rests in another
// book of the memory.
func (b *Book) Cancel(id uint32) Outcome {
	i := b.atHome(id)
	if i == 0 || b.ladder.orders.at(i).security() != b.number {
		if i = b.find(id); i == 0 {
			return Outcome{Reject: BookUnknownID}
		}
	}
	o := b.ladder.orders.at(i)
	leaves := o.leaves
	b.ladder.remove(i)
	b.drop(i, o)
	return Outcome{Leaves: leaves}
}

// Modify gives a resting order a new price and a new open quantity. The order keeps its place if
// the price stays and the quantity does not grow. Otherwise the book removes the order and enters
// it again like a new one, so it may trade at once. Side and owner stay.
//
// It is refused with BookUnknownID or BookInvalid, and never for want of room: the order has its
// place.
func (b *Book) Modify(id uint32, px int64, qty int32) Outcome {
	i := b.find(id)
	if i == 0 {
		return Outcome{Reject: BookUnknownID}
	}
	if qty < 1 {
		return Outcome{Reject: BookInvalid}
	}
	h := b.ladder.orders.at(i)
	if qty <= h.leaves && b.ladder.price(i) == px {
		if qty < h.leaves {
			b.ladder.reduce(i, h.leaves-qty)
		}
		return Outcome{Rests: true, Kept: true, Leaves: qty}
	}
	side := h.side()
	b.ladder.remove(i)
	left := qty
	if b.ladder.crosses(side, px) {
		b.taker = id
		left = b.ladder.match(side, px, qty, h.account, b)
		if left == 0 {
			b.ladder.pool.drop(i)
			return Outcome{}
		}
	}
	h.leaves = left
	b.ladder.rest(i, side, px, b.ladder.root)
	return Outcome{Rests: true, Leaves: left}
}

// find returns the order with an id if it rests in this book.
func (b *Book) find(id uint32) ix {
	i := b.seek(id)
	if i != 0 && b.ladder.orders.at(i).security() != b.number {
		return 0
	}
	return i
}

// seek is pool.find for orders that are never retired.
func (b *Book) seek(id uint32) ix {
	if i := b.atHome(id); i != 0 {
		return i
	}
	return b.ladder.pool.findGuest(id)
}

// atHome returns the order with an id if it lies in its home. It does not look there while all
// orders are guests.
func (b *Book) atHome(id uint32) ix {
	if pool := b.ladder.pool; pool.count != pool.away {
		if i := b.home(id); b.ladder.orders.at(i).ref == id && id != 0 {
			return i
		}
	}
	return 0
}

// drop is pool.drop with the usual case in line.
func (b *Book) drop(i ix, o *order) {
	if i-1 > ix(b.homeMask) {
		b.ladder.pool.drop(i)
		return
	}
	b.ladder.pool.count--
	o.ref = 0
}

// filled and prevented make a Book the fillSink of its ladder. The order leaves the pool before the
// sink hears of it, so the sink sees a book without the order.
func (b *Book) filled(maker ix, px int64, qty int32) {
	h := b.ladder.orders.at(maker)
	id := h.ref
	if h.leaves == 0 {
		b.drop(maker, h)
	}
	b.sink.Filled(id, b.taker, px, qty)
}

func (b *Book) prevented(maker ix) {
	pool := b.ladder.pool
	h := b.ladder.orders.at(maker)
	id := h.ref
	pool.drop(maker)
	b.sink.Prevented(id, b.taker, h.leaves)
}

// Best returns the best price of a side, false when the side is empty. One load; px means nothing
// then.
func (b *Book) Best(side Side) (px int64, ok bool) { return b.ladder.best(side) }

// BookLevel is one price of a book, in the caller's units.
type BookLevel struct {
	Px     int64
	Qty    int64 // the open quantity of all orders at the price
	Orders int
}

// Depth writes the best levels of a side into dst, best first, and returns their number. It counts
// the orders of each level, so it must not be on the path of an order.
func (b *Book) Depth(side Side, dst []BookLevel) int {
	n := 0
	l := &b.ladder
	for at := l.tops[side&1].level; at != 0 && n < len(dst); at = l.worse(side&1, at) {
		qty, orders := l.queue(at)
		dst[n] = BookLevel{Px: l.pages.price(at), Qty: qty, Orders: orders}
		n++
	}
	return n
}
