package session

import (
	"slices"

	"posttrade/blotter"
	"posttrade/matcher"
	"posttrade/matcher/session/wire"
)

// tops are the best levels of every security after the events that the feeder has processed. The
// feeder builds a book of its own from order events, so it needs neither the matcher nor the
// recorder.
//
// It begins in the middle of the stream, with the rows of the views. A row is read while the
// recorder continues, so each order carries the commands between which it was read: the row shows
// all decisions up to lo and none after hi. For an event between lo and hi the row is read again.
// Until the stream has passed seen, rows are ahead of it and no best level is shown.
//
// Invariants (check): a level is the sum of the orders that rest on it and holds at least one
// order; levels ascend by rank; orders that rest are open.
//
// Feeder only.
type tops struct {
	views   *blotter.Views
	seen    func() uint64 // at or above every sequence that a row may show
	orders  map[uint32]openOrder
	books   []book // by security
	touched []uint32
	rows    []blotter.OrderRow // of load, one piece

	exact   bool     // books are in the state after sequence
	barrier int64    // position of the tap that must be passed for exact; -1: not known yet
	until   uint64   // sequence that must be durable for exact
	ended   []uint32 // orders that are in the map only because their rows had ended

	sequence uint64 // the last command taken in
	millis   int64  // its time
	within   bool   // more of its events follow
}

// openOrder is an order that can still trade, or, with leaves 0, one whose row had ended before its
// events have come.
type openOrder struct {
	lo, hi      uint64 // the row shows all decisions up to lo and none after hi
	px          int64
	security    uint32
	qty, leaves int32
	side        matcher.Side
	rests       bool
}

// book is one security. told are the best levels that readers have been given last; a change back
// to them within a command is no change.
type book struct {
	sides   [2]ladder
	told    wire.Best
	used    bool // an order has rested here
	touched bool // by the command being processed
}

// loadSlots is how many of the views' order slots are read at a time.
const loadSlots = 1 << 13

// newTops begins from the views; the books are not exact before settle says so.
func newTops(views *blotter.Views, seen func() uint64) *tops {
	t := &tops{views: views, seen: seen, rows: make([]blotter.OrderRow, 0, loadSlots)}
	t.load()
	return t
}

// load begins from the views' open orders and forgets the earlier state. It looks at every slot
// once, in pieces, so that few events fall between lo and hi of a piece. An order that enters a
// slot after the look is in the stream. It costs the capacity of the views, and runs when the first
// reader joins or after lost events.
func (t *tops) load() {
	t.exact, t.barrier, t.within = false, -1, false
	t.orders, t.ended = map[uint32]openOrder{}, t.ended[:0]
	for i := range t.books {
		for side := range t.books[i].sides {
			t.books[i].sides[side].levels = t.books[i].sides[side].levels[:0]
		}
	}
	for slot, more := uint32(0), true; more; more = slot != 0 {
		lo := t.views.Applied()
		t.rows, slot = t.views.ScanOrders(blotter.OrderFilter{Statuses: blotter.OpenOrders}, slot,
			loadSlots, t.rows[:0])
		hi := t.views.Applied() + 1
		for i := range t.rows {
			t.enter(&t.rows[i], lo, hi)
		}
	}
	t.until = t.seen()
}

// enter adds an open order from its row. Between two commands an open order rests.
func (t *tops) enter(row *blotter.OrderRow, lo, hi uint64) {
	o := openOrder{lo: lo, hi: hi, px: row.LimitPx, security: row.SecurityID, side: row.Side,
		qty: row.Qty, leaves: row.Leaves}
	t.rest(&o)
	t.orders[row.Ref] = o
}

// again reads the row of an order again, if the old copy may or may not show an event. The books
// are not exact then until the stream has passed what the new row may show.
func (t *tops) again(ref uint32, o *openOrder) {
	t.leave(o)
	lo := t.views.Applied()
	row, ok := t.views.Order(ref)
	hi := t.views.Applied() + 1
	if ok && row.Open() {
		t.enter(&row, lo, hi)
	} else {
		t.orders[ref] = openOrder{lo: lo, hi: hi}
		t.ended = append(t.ended, ref)
	}
	t.exact, t.barrier, t.until = false, -1, max(t.until, t.seen())
}

// settle checks, between two commands, whether the books match the position in the stream. They do
// when every decision that a row may show is durable, so that the recorder has tapped it, and all
// events tapped by then are processed. It reports that the books have become exact. published and
// taken are positions of the tap: what the recorder has put in, and what the feeder has processed.
func (t *tops) settle(durable uint64, published, taken int64) bool {
	if !t.awaits(durable) {
		return false
	}
	if t.barrier < 0 {
		t.barrier = published
	}
	if taken < t.barrier {
		return false
	}
	for _, ref := range t.ended {
		if o := t.orders[ref]; o.leaves == 0 {
			delete(t.orders, ref)
		}
	}
	t.ended = t.ended[:0]
	t.sequence = max(t.sequence, t.until)
	for i := range t.books {
		t.books[i].told = t.books[i].best()
	}
	t.exact = true
	return true
}

// awaits reports that settle has something to check.
func (t *tops) awaits(durable uint64) bool { return !t.exact && !t.within && durable >= t.until }

// take applies an event. After an EventLast the next event begins a command.
func (t *tops) take(ev *matcher.Event) {
	if ev.Flags&matcher.EventFirst != 0 {
		t.begin()
	}
	if ev.OrderRef != 0 {
		t.about(ev)
	}
	t.sequence, t.millis = ev.InputSeq, ev.TimeMillis
	t.within = ev.Flags&matcher.EventLast == 0
}

// begin clears the securities that the previous command has touched.
func (t *tops) begin() {
	for _, security := range t.touched {
		t.books[security].touched = false
	}
	t.touched = t.touched[:0]
}

// about applies the change that an event makes to an order. While the books are not exact it skips
// what the order's row shows already.
func (t *tops) about(ev *matcher.Event) {
	o, known := t.orders[ev.OrderRef]
	if !t.exact && known && ev.InputSeq <= o.hi {
		if ev.InputSeq > o.lo {
			t.again(ev.OrderRef, &o)
		}
		return
	}
	switch {
	case ev.Kind == matcher.EventAccepted:
		o = openOrder{px: ev.Px, security: ev.SecurityID, side: ev.Side, qty: ev.Qty, leaves: ev.Qty}
		if ev.Flags&matcher.EventRests != 0 {
			t.rest(&o)
		}
	case !known:
		return // it ended before its row was read, or was never open
	case ev.Kind == matcher.EventFilled:
		t.fill(&o, ev)
	case ev.Kind == matcher.EventReplaced:
		t.leave(&o)
		o.leaves += ev.Qty - o.qty
		o.qty, o.px = ev.Qty, ev.Px
		if ev.Flags&(matcher.EventRests|matcher.EventKeptPlace) != 0 {
			t.rest(&o)
		}
	case ev.Kind == matcher.EventRested:
		t.rest(&o)
	case ev.Kind == matcher.EventCanceled:
		t.leave(&o)
		o.leaves = 0
	}
	if o.leaves == 0 {
		delete(t.orders, ev.OrderRef)
		return
	}
	t.orders[ev.OrderRef] = o
}

// fill subtracts an execution from an order and its level.
func (t *tops) fill(o *openOrder, ev *matcher.Event) {
	left := ev.Detail().Leaves
	if o.rests {
		t.at(o).take(rankOf(o.side, o.px), int64(o.leaves-left), left == 0)
		o.rests = left != 0
	}
	o.leaves = left
}

// rest adds an order to its level, leave removes it.
func (t *tops) rest(o *openOrder) {
	o.rests = true
	t.at(o).add(rankOf(o.side, o.px), int64(o.leaves))
}

func (t *tops) leave(o *openOrder) {
	if o.rests {
		o.rests = false
		t.at(o).take(rankOf(o.side, o.px), int64(o.leaves), true)
	}
}

// at is the side of the book on which an order rests. It marks the security as touched.
func (t *tops) at(o *openOrder) *ladder {
	if int(o.security) >= len(t.books) {
		t.books = slices.Grow(t.books, int(o.security)+1-len(t.books))[:o.security+1]
	}
	b := &t.books[o.security]
	b.used = true
	if !b.touched {
		b.touched = true
		t.touched = append(t.touched, o.security)
	}
	return &b.sides[o.side&1]
}

// record is a Top with the best levels of a security.
func (t *tops) record(security uint32, flags uint16) wire.Record {
	r := wire.Record{Kind: wire.Top, Flags: flags, InputSeq: t.sequence, TimeMillis: t.millis,
		SecurityID: security}
	r.SetBest(t.books[security].told)
	return r
}

// best is the book's best levels.
func (b *book) best() (best wire.Best) {
	if l, ok := b.sides[matcher.Buy].best(); ok {
		best.BidPx, best.BidQty, best.BidOrders = pxOf(matcher.Buy, l.rank), l.qty, l.orders
	}
	if l, ok := b.sides[matcher.Sell].best(); ok {
		best.AskPx, best.AskQty, best.AskOrders = pxOf(matcher.Sell, l.rank), l.qty, l.orders
	}
	return best
}
