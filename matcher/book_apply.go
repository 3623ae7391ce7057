package matcher

// BookCommand is a call on a Book as a value, for callers that keep or compare calls: a
// recorded sequence of calls, or the same call on a second book.
type BookCommand struct {
	Kind  BookCommandKind
	Order BookOrder // New: all of it; Cancel: ID; Modify: ID, Px, Qty
}

// BookCommandKind says which call a BookCommand is.
type BookCommandKind uint8

// The calls.
const (
	BookNew    BookCommandKind = 1
	BookCancel BookCommandKind = 2
	BookModify BookCommandKind = 3
)

// BookEventKind says what a BookEvent states.
type BookEventKind uint8

// The events. One call gives them in this order: first Accepted, Modified, Canceled or Rejected;
// then what matching did, in its order, as Filled and Prevented; then, for an order that did not
// trade whole, Rested or Canceled. An order that met no resting order and rests at once has no
// Rested: its Accepted or Modified states it.
const (
	BookAccepted BookEventKind = 1 // ID, Px, Leaves
	BookFilled   BookEventKind = 2 // ID the taker, Maker, Px the maker's price, Qty
	// Maker was removed with Leaves open; ID is the taker of the same owner
	BookPrevented BookEventKind = 3
	BookCanceled  BookEventKind = 4 // ID, Leaves: the quantity that can no longer trade
	BookRested    BookEventKind = 5 // ID, Px, Leaves: the open quantity after matching
	BookModified  BookEventKind = 6 // ID, Px, Leaves; Kept
	BookRejected  BookEventKind = 7 // ID, Reject
)

// BookEvent is one statement of Apply. Fields that its kind does not name are zero. Prices and
// quantities are in the caller's units.
type BookEvent struct {
	Kind   BookEventKind
	Reject BookReject
	Kept   bool
	ID     uint32
	Maker  uint32
	Px     int64
	Qty    int32
	Leaves int32
}

// bookTape is the sink that records events. It belongs to its book, so Apply allocates none; out is
// nil between two calls.
type bookTape struct {
	out []BookEvent
}

// Filled and Prevented implement BookSink.
func (t *bookTape) Filled(maker, taker uint32, px int64, qty int32) {
	t.out = append(t.out, BookEvent{Kind: BookFilled, ID: taker, Maker: maker, Px: px, Qty: qty})
}

func (t *bookTape) Prevented(maker, taker uint32, leaves int32) {
	t.out = append(t.out, BookEvent{Kind: BookPrevented, ID: taker, Maker: maker, Leaves: leaves})
}

// Apply carries out one command and appends all its events to out, at least one. The book's own
// sink receives none of them. It allocates only when out has to grow. A kind that does not exist is
// refused with BookInvalid.
//
// It writes the first event last: whether an order was accepted is known only when New returns, and
// by then the fills stand behind it.
func (b *Book) Apply(c BookCommand, out []BookEvent) []BookEvent {
	o := c.Order
	first := len(out)
	out = append(out, BookEvent{ID: o.ID})
	sink := b.sink
	b.sink, b.tape.out = &b.tape, out
	var result Outcome
	switch c.Kind {
	case BookNew:
		result = b.New(o)
	case BookCancel:
		result = b.Cancel(o.ID)
	case BookModify:
		result = b.Modify(o.ID, o.Px, o.Qty)
	default:
		result = Outcome{Reject: BookInvalid}
	}
	out = b.tape.out
	b.sink, b.tape.out = sink, nil

	e := &out[first]
	switch {
	case result.Reject != BookOK:
		e.Kind, e.Reject = BookRejected, result.Reject
		return out
	case c.Kind == BookCancel:
		e.Kind, e.Leaves = BookCanceled, result.Leaves
		return out
	case c.Kind == BookModify:
		e.Kind, e.Kept = BookModified, result.Kept
	default:
		e.Kind = BookAccepted
	}
	if c.Kind == BookNew && o.Flags&FlagMarket != 0 {
		o.Px = 0
	}
	e.Px, e.Leaves = o.Px, o.Qty
	met := len(out) > first+1
	switch {
	case result.Rests && met:
		out = append(out, BookEvent{Kind: BookRested, ID: o.ID, Px: o.Px, Leaves: result.Leaves})
	case !result.Rests && result.Leaves > 0:
		out = append(out, BookEvent{Kind: BookCanceled, ID: o.ID, Leaves: result.Leaves})
	}
	return out
}
